"""The desk that goes with the server's settings."""
from __future__ import annotations

from echo_core.vault.base import Vault

from echo_mcp.backup.desk import Desk
from echo_mcp.backup.folder_source import FolderSource
from echo_mcp.backup.shelf import Shelf
from echo_mcp.backup.source import Source
from echo_mcp.backup.vault_source import VaultSource
from echo_mcp.runs import Runs
from echo_mcp.settings import Settings


def desk(settings: Settings, vault: Vault | None = None) -> Desk:
    """The backups of the vault of `settings`. vault: an API that is open already."""
    shelf = Shelf(settings.state_dir)

    def source() -> Source:
        if settings.place.folder:
            return FolderSource(settings.place.folder, shelf.folder)
        return VaultSource(vault or settings.place.open())

    return Desk(shelf, source, settings.clock, settings.backup_keep, Runs(settings.state_dir, settings.clock))
