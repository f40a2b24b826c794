"""The desk that goes with the server's settings."""
from __future__ import annotations

from echo_core.vault.rest import RestVault

from echo_mcp.backup.desk import Desk
from echo_mcp.backup.folder_source import FolderSource
from echo_mcp.backup.shelf import Shelf
from echo_mcp.backup.source import Source
from echo_mcp.backup.vault_source import VaultSource
from echo_mcp.runs import Runs
from echo_mcp.settings import Settings


def desk(settings: Settings) -> Desk:
    """The backups of the vault of `settings`.

    It opens the vault for itself, without the wrappers of the server: what a cache or a queue holds is no vault.
    """
    shelf, place = Shelf(settings.state_dir), settings.place

    def source() -> Source:
        if place.address is None:
            return FolderSource(place.folder, shelf.folder)
        return VaultSource(RestVault(place.address, place.key, place.timeout_s, place.ca_file,
                                     probes=not settings.read_only))

    return Desk(shelf, source, settings.clock, settings.backup_keep, Runs(settings.state_dir, settings.clock))
