"""What only the CLI offers, as rows of the same shape as the memory tools (spec 3.3).

One shape, so that the command line is taken apart, checked and answered in one way. None of these rows is
registered with a server: vault-wide maintenance, whole-file writes and deletion stay with the operator.
"""
from __future__ import annotations

from typing import Dict, Tuple

from echo_arguments import Param
from echo_bootstrap import bootstrap_op
from echo_check import check_session_op
from echo_doctor import doctor_op
from echo_locking import lock_op, unlock_op
from echo_maintenance import decay_op, lint_op, reindex_op, sweep_op
from echo_migrate import migrate_op
from echo_raw import bump_op, delete_op, fm_op, ls_op, map_op, post_op, put_op, search_op
from echo_replay import flush_op, queue_op
from echo_tools import Tool

_PATH = Param("path", help="Vault path, slug, or exact title.", required=True, form="note")
_BODY = Param("body", form="body", required=True, help="Markdown.")
_FOLDER = Param("folder", form="folder", default="", help="Folder of the vault; default all of it.")

ADMIN_TOOLS: Tuple[Tool, ...] = (
    Tool("map", "cli", map_op, "What a patch of a note can aim at: headings, block ids and frontmatter keys.",
         (_PATH,), {}, reads=True),
    Tool("ls", "cli", ls_op, "The folders and files directly inside a folder of the vault.", (_FOLDER,), {},
         reads=True),
    Tool("search", "cli", search_op, "Lines of notes that hold a text as it stands; case is ignored.",
         (Param("text", required=True, empty_ok=False), _FOLDER,
          Param("limit", "integer", default=50, least=1, most=1000)), {}, reads=True),
    Tool("put", "cli", put_op, "Write a whole note. One that is there is replaced only with --replace or --if-match.",
         (Param("path", required=True, form="path", help="Vault path ending in .md."), _BODY,
          Param("replace", "boolean", "Overwrite a note that is there.", default=False),
          Param("if_match", default="", help="Overwrite only this version.")), {}, destructive=True),
    Tool("post", "cli", post_op, "Add a block of Markdown at the end of an existing note or of one section.",
         (_PATH, _BODY, Param("section", default="", help="Heading to add it under.")), {}),
    Tool("fm", "cli", fm_op, "Show the frontmatter of a note, or set or remove one key; all other bytes stay.",
         (_PATH, Param("key", default=""), Param("value", "any", help="Text; --value-json for anything else."),
          Param("remove", "boolean", "Remove the key.", default=False)), {}, destructive=True),
    Tool("bump", "cli", bump_op, "Stamp a note as updated today.", (_PATH,), {}, again=True),
    Tool("delete", "cli", delete_op, "Delete a note. Only shows what links to it unless --confirm is given.",
         (_PATH, Param("confirm", "boolean", default=False)), {}, destructive=True),
    Tool("doctor", "cli", doctor_op, "Check vault, marker, index, routes, lock, history and settings; never fails.",
         (Param("deep", "boolean", "Also check all notes.", default=False),), {}, reads=True),
    Tool("lint", "cli", lint_op, "Every check of the notes; changes nothing.",
         (Param("checks", "string[]", help="Only these checks."),), {}, reads=True),
    Tool("sweep", "cli", sweep_op, "Check the notes and write the findings into the vault's health note.",
         (Param("fast", "boolean", "Only the cheap checks, over notes changed lately.", default=False),
          Param("hours", "integer", "With --fast: how long ago a note may have changed.", default=48, least=1,
                most=8784)), {}, again=True),
    Tool("decay", "cli", decay_op, "Working memory, active projects, inbox items left alone for long; proposes only.",
         (), {}, reads=True),
    Tool("reindex", "cli", reindex_op, "Rebuild the entity index from the notes.", (), {}, again=True),
    Tool("bootstrap", "cli", bootstrap_op, "Set a vault up: create what is missing, overwrite nothing.", (), {},
         again=True),
    Tool("migrate", "cli", migrate_op, "What an older or unmarked vault needs. Only a plan unless --apply is given.",
         (Param("apply", "boolean", "Do what the plan says.", default=False),), {}, destructive=True),
    Tool("lock", "cli", lock_op, "Take the vault's advisory lock, so that other clients leave the index alone.",
         (Param("holder", default="", help="Your name in the lock; default this host."),), {}),
    Tool("unlock", "cli", unlock_op, "Give the advisory lock back.",
         (Param("holder", default="", help="The name it was taken with."),
          Param("force", "boolean", "Also somebody else's lock.", default=False)), {}, again=True),
    Tool("session-check", "cli", check_session_op, "Whether a session log newer than the last load exists.", (), {},
         reads=True),
    Tool("queue", "cli", queue_op, "The writes that wait for the vault, and those that need a decision.",
         (Param("do", default="list", enum=("list", "retry", "drop"),
                help="`list`; `retry` replays a parked write again; `drop` forgets a write, or a conflict."),
          Param("id", default="", help="Of the write (op_id) or the conflict.")), {}),
    Tool("flush", "cli", flush_op, "Replay the waiting writes now, in order, with their original times.", (), {}),
)

ADMIN_BY_NAME: Dict[str, Tool] = {tool.name: tool for tool in ADMIN_TOOLS}
