"""The verbs of the CLI: which tool each one calls and which parameters are plain words (spec 3.3).

A table without imports, so that `echo.py --help` answers at once. Parameters, their checks and their help come
from the tools themselves: `echo_tools` for the memory tools, `echo_admin` for what only the CLI has.
"""
from __future__ import annotations

from typing import Dict, NamedTuple, Optional, Tuple


class Verb(NamedTuple):
    """One verb.

    tool: name of the tool it calls. help: one line. words: the parameters that may be given as plain words, in
    order; None stands for the tool's required ones.
    """

    tool: str
    help: str
    words: Optional[Tuple[str, ...]] = None


VERBS: Dict[str, Verb] = {
    "load": Verb("echo_load", "who the operator is, what they are on, what happened last"),
    "recall": Verb("echo_recall", "search the memory for the passages that answer a question"),
    "resolve": Verb("echo_resolve", "find the note that a name means"),
    "get": Verb("echo_get_note", "read one note, or one section of it"),
    "map": Verb("map", "headings, blocks and frontmatter keys of a note"),
    "ls": Verb("ls", "what a folder of the vault holds", ("folder",)),
    "search": Verb("search", "lines of notes that hold a text, as it stands"),
    "put": Verb("put", "write a whole note", ("path", "body")),
    "post": Verb("post", "add a block of text to an existing note", ("path", "body")),
    "append": Verb("echo_append_note", "add one line to an existing note"),
    "patch": Verb("echo_patch_note", "change one section, frontmatter key or block"),
    "fm": Verb("fm", "show the frontmatter of a note, or set one key", ("path", "key", "value")),
    "bump": Verb("bump", "stamp a note as updated today"),
    "delete": Verb("delete", "delete a note, with --confirm; history keeps it"),
    "capture": Verb("echo_capture", "remember something in the right place"),
    "link": Verb("echo_link", "connect two notes in both directions"),
    "move": Verb("echo_move_note", "move or rename a note and rewrite the links to it"),
    "triage": Verb("echo_triage_inbox", "list the inbox, or sort it by proposals"),
    "reflect": Verb("echo_reflect", "store what a conversation taught"),
    "scope": Verb("echo_get_scope", "show what the operator is on; `scope TEXT` sets it"),
    "session-end": Verb("echo_log_session", "write the session log; --check only looks whether there is one"),
    "rollup": Verb("echo_rollup_data", "what a week or month rollup needs"),
    "history": Verb("echo_note_history", "the kept versions of a note"),
    "restore": Verb("echo_restore_note", "bring back a kept version"),
    "doctor": Verb("doctor", "check vault, marker, index, lock, history and settings"),
    "lint": Verb("lint", "every check of the notes"),
    "sweep": Verb("sweep", "lint, and write the findings into the vault's health note"),
    "decay": Verb("decay", "what has been left alone for long; changes nothing"),
    "reindex": Verb("reindex", "rebuild the entity index from the notes"),
    "bootstrap": Verb("bootstrap", "set a vault up: create what is missing"),
    "migrate": Verb("migrate", "plan what an older vault needs; --apply does it"),
    "lock": Verb("lock", "take the vault's advisory lock"),
    "unlock": Verb("unlock", "give the advisory lock back"),
    "queue": Verb("queue", "writes that wait or need a decision; `queue retry ID`, `queue drop ID`", ("do", "id")),
    "flush": Verb("flush", "replay the waiting writes now"),
}
