"""Restoring a backup into the empty vault behind Obsidian's REST API (spec 6.4)."""
from __future__ import annotations

from echo_core.errors import Conflict, EchoError, TooLarge
from echo_core.paths import check_path
from echo_core.vault.rest import RestVault
from echo_core.vault.rest_client import MAX_FILE_BYTES

from echo_mcp.backup.archive import Archive
from echo_mcp.backup.restoring import Restored
from echo_mcp.backup.watch import Watch


def restore_rest(archive: Archive, vault: RestVault, watch: Watch) -> Restored:
    """Create every file of the archive through the API, each read back and compared.

    Every byte of the archive is verified before the first one is sent, and every name checked. Raises BadBackup,
    Conflict when the vault is not empty, InvalidPath and TooLarge for what the API cannot take, the vault's errors, and
    Stopped; after those of the vault some files have been created, as the error says.
    """
    vault.check()
    if any(True for _ in vault.walk()):
        raise Conflict("The target of the restore is not empty, and nothing is restored over what is there",
                       hint="Open an empty vault in Obsidian first.")
    archive.check(watch)
    for entry in archive.files():
        check_path(entry.path)
        if entry.size > MAX_FILE_BYTES:
            raise TooLarge(f"{entry.path} is larger than the API can carry", field="into", limit=MAX_FILE_BYTES,
                           hint="Restore into a folder.")
    done = Restored(not_kept="The API has no file modes, no times and no empty folders; those were not restored.")
    for entry in archive.files():
        watch.tell("restored", done.files, archive.summary.files)
        try:
            vault.place(entry.path, b"".join(archive.blocks(entry)))
        except EchoError as failure:
            failure.message += f" ({done.files} of {archive.summary.files} files had been created before)"
            raise
        done.files += 1
        done.bytes += entry.size
    return done
