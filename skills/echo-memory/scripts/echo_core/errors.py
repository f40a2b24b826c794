"""Every failure ECHO can answer with, and how each door shows it (spec 3.1).

EchoError
 |- InvalidArgument      a value of the call is wrong; `field` names it
 |   |- InvalidPath      a path that is refused before any request (spec 2.3)
 |   `- TooLarge         beyond a size limit; `limit` in bytes or items
 |- SecretSuspected      a value looks like a live credential; `shape`, `field`
 |- ActiveContent        text would plant live template or plugin code
 |- NotFound             no such note; `path`, `candidates`
 |- Ambiguous            a name means several things; `candidates`
 |- InvalidTarget        heading, block or key is not in the note; `headings`
 |- MalformedNote        the note's YAML does not parse; `line`, `column` (1-based)
 |- Conflict             the note is not the version the caller saw; `version`
 |   `- Overtaken         our write was sent, and somebody else's bytes stand there now
 |- NoUndo               no version could be kept, so nothing was replaced
 |- IndexCorrupt         the entity index is broken and cannot be rebuilt now
 |- StorageFailed        the state folder's disk is full or refuses us; `reason`
 |- BadBackup            a zip that is damaged, hostile or no backup of ours; `reason`
 |- Misconfigured        the deployment lacks a setting
 |- VaultError
 |   |- VaultUnreachable the vault is missing, down or too slow
 |   |- VaultAuth        the vault refuses our key, or the folder our user
 |   |- VaultTls         TLS trouble
 |   `- VaultBadResponse the vault answered with something else than its protocol
 `- InternalError        anything else; constant text, `error_id` finds the log entry

A message names what was attempted and on which vault-relative path; never a path of the host, a key or a
body. Callers read `code`; they never search the message.
"""
from __future__ import annotations

from typing import Any, Dict, NamedTuple


class Outcome(NamedTuple):
    """How one kind of answer looks at each door."""

    exit_code: int
    http_status: int
    is_error: bool


class EchoError(Exception):
    """A failure with a code.

    message: one line, what was attempted on what and why it failed. hint: what to do next, "" for what helps against
    most failures of the kind (`way_out`). data: further fields of the envelope (`path`, `field`, `candidates`, ...),
    all JSON values.
    """

    code = "internal"
    outcome = Outcome(1, 500, True)
    way_out = ""

    def __init__(self, message: str, hint: str = "", **data: Any) -> None:
        super().__init__(message)
        self.message = " ".join(message.split())
        self.hint = hint or self.way_out
        self.data: Dict[str, Any] = data

    def envelope(self) -> Dict[str, Any]:
        """The failure as an envelope: `{"ok": false, "code", "error", "hint"?, ...data}` (spec 3.1)."""
        answer: Dict[str, Any] = {"ok": False, "code": self.code, "error": self.message}
        if self.hint:
            answer["hint"] = self.hint
        answer.update(self.data)
        return answer


class InvalidArgument(EchoError):
    code = "invalid-argument"
    outcome = Outcome(2, 422, True)
    way_out = "Correct the value of `field` and call again."


class InvalidPath(InvalidArgument):
    code = "invalid-path"
    way_out = "Give a vault-relative path such as projects/active/engine.md."


class TooLarge(InvalidArgument):
    code = "too-large"
    outcome = Outcome(2, 413, True)
    way_out = "Send less in one call."


class SecretSuspected(EchoError):
    code = "secret-suspected"
    outcome = Outcome(65, 422, True)
    way_out = "Leave the credential out; only the operator may allow it."


class ActiveContent(EchoError):
    code = "active-content"
    outcome = Outcome(65, 422, True)
    way_out = "Leave the template or plugin code out."


class NotFound(EchoError):
    code = "not-found"
    outcome = Outcome(44, 404, True)
    way_out = "Use one of the candidates, or look for it with echo_recall."


class Ambiguous(EchoError):
    code = "ambiguous"
    outcome = Outcome(65, 409, True)
    way_out = "Use the path of one of the candidates."


class InvalidTarget(EchoError):
    code = "invalid-target"
    outcome = Outcome(65, 422, True)
    way_out = "Use one of `headings`."


class MalformedNote(EchoError):
    code = "malformed-note"
    outcome = Outcome(65, 422, True)
    way_out = "Ask the operator to repair the frontmatter by hand."


class Conflict(EchoError):
    code = "conflict"
    outcome = Outcome(79, 412, True)
    way_out = "Read the note again and repeat the edit on what it says now."


class Overtaken(Conflict):
    """A conflict found out after our write had been sent: it may have had its effect for a moment."""


class NoUndo(EchoError):
    code = "no-undo"
    outcome = Outcome(74, 507, True)
    way_out = "Ask the operator to free space in the state folder, then call again."


class NotKept(NoUndo):
    """The write itself could not be kept before it began, so it did not begin."""


class IndexCorrupt(EchoError):
    code = "index-corrupt"
    outcome = Outcome(65, 500, True)
    way_out = "Ask the operator to run the CLI's `reindex`."


class StorageFailed(EchoError):
    code = "storage-failed"
    outcome = Outcome(74, 507, True)
    way_out = "Ask the operator to free or mend the storage, then call again."


class BadBackup(EchoError):
    code = "bad-backup"
    outcome = Outcome(65, 422, True)
    way_out = "Ask the operator for another backup."


class Misconfigured(EchoError):
    code = "misconfigured"
    outcome = Outcome(64, 500, True)
    way_out = "Ask the operator to correct the setting."


class VaultError(EchoError):
    """The vault itself is the trouble, not the call."""


class VaultUnreachable(VaultError):
    code = "vault-unreachable"
    outcome = Outcome(69, 503, True)
    way_out = "Go on without memory and try again later."


class VaultAuth(VaultError):
    code = "vault-auth"
    outcome = Outcome(77, 502, True)
    way_out = "Ask the operator to check the key, or the rights of the vault's folder."


class VaultTls(VaultError):
    code = "vault-tls"
    outcome = Outcome(69, 502, True)
    way_out = "Ask the operator to check the certificate and ECHO_CA_FILE."


class VaultBadResponse(VaultError):
    code = "vault-bad-response"
    outcome = Outcome(69, 502, True)
    way_out = "Ask the operator whether the address of the vault is that of its REST API."


class InternalError(EchoError):
    code = "internal"
    outcome = Outcome(1, 500, True)
    way_out = "Tell the operator; the log of the server holds the details."


ERRORS: Dict[str, Outcome] = {
    cls.code: cls.outcome
    for cls in (
        InvalidArgument, InvalidPath, TooLarge, SecretSuspected, ActiveContent, NotFound, Ambiguous,
        InvalidTarget, MalformedNote, Conflict, NoUndo, IndexCorrupt, StorageFailed, BadBackup, Misconfigured,
        VaultUnreachable, VaultAuth, VaultTls, VaultBadResponse, InternalError,
    )
}
"""Every error code and its outcome."""

DECISIONS: Dict[str, Outcome] = {
    "duplicate-gate": Outcome(76, 409, False),
    "lock-held": Outcome(75, 423, False),
    "stale-preview": Outcome(78, 409, False),
}
"""Actions that are no error: the caller has to decide something before it calls again."""

FINE = Outcome(0, 200, False)
QUEUED = Outcome(0, 202, False)


def outcome_of(envelope: Dict[str, Any]) -> Outcome:
    """How to show `envelope` at each door: exit code, HTTP status, MCP `isError` (spec 3.1)."""
    if envelope.get("ok"):
        return QUEUED if envelope.get("queued") else FINE
    if envelope.get("action") in DECISIONS:
        return DECISIONS[envelope["action"]]
    return ERRORS.get(str(envelope.get("code")), InternalError.outcome)
