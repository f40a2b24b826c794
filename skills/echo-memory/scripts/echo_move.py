"""Moving or renaming a note, with every link to it (spec 3.2)."""
from __future__ import annotations

import contextlib
import posixpath
from typing import Any, Dict, List, Mapping, Optional, Tuple

from echo_context import Envelope, OpContext, bounded, ok, preview
from echo_core import frontmatter
from echo_core.catalog.notebytes import decode
from echo_core.errors import Conflict, InvalidArgument, InvalidPath, NotFound
from echo_core.kinds import is_entity, is_system, status_of
from echo_core.markdown.links import Link, links, rewrite
from echo_core.paths import is_note, without_extension
from echo_edits import diff_of, edit_note, index_notes, move_file, must_exist, refuse_unportable
from echo_notes import writable_note

DIFF_CHARS = 12000
"""Longest diff a preview answers with; the list of notes is always complete."""


def move_op(path: str, new_path: str, confirm: bool = False, *, ctx: OpContext) -> Envelope:
    """Move a note and rewrite `[[links]]`, `![[embeds]]` and `[md](links)` to it, alias and heading kept.

    Without `confirm`: `action: preview` with `links_changed` (paths) and a diff, nothing written. A project
    moved between status folders gets that status when its note states one. Raises NotFound, Ambiguous,
    InvalidPath, Conflict (the target exists) and vault errors.
    """
    ctx.fresh()
    if ctx.resumed:
        return _carried_out(Mentions.remembered(ctx.resumed.plan, ctx), ctx)
    source = writable_note(path, ctx)
    target = _target(new_path, source, ctx)
    mentions = Mentions.found(source, target, ctx)
    if not confirm:
        return preview("move", path=source, new_path=target, links_changed=mentions.paths(),
                       hint="Call again with confirm: true after the operator agreed.",
                       **bounded("diff", mentions.diff(), DIFF_CHARS))
    ctx.remember(**mentions.plan())
    return _carried_out(mentions, ctx)


def _carried_out(mentions: Mentions, ctx: OpContext) -> Envelope:
    """The move itself, then the links, then the index."""
    source, target = mentions.source, mentions.target
    move_file(ctx, source, target)
    changed = mentions.apply()
    warnings = index_notes(ctx, [target] if is_entity(target) else [], gone=[source])
    return ok("moved", path=source, new_path=target, links_changed=changed, warnings=warnings)


def _target(new_path: str, source: str, ctx: OpContext) -> str:
    target = new_path if is_note(new_path) else f"{new_path}.md"
    if target == source:
        raise InvalidArgument("new_path is where the note already is", hint="Nothing has to be done.", field="new_path")
    if is_system(source):
        raise InvalidPath(f"{source} is one of ECHO's own files and stays where it is",
                          hint="Move another note, or leave it.", field="path")
    if is_system(target):
        raise InvalidPath(f"{target} lies in a folder ECHO keeps for itself", field="new_path",
                          hint="Choose a folder of the layout or one of your own.")
    refuse_unportable(target, "new_path", ctx)
    if ctx.catalog.facts(target) is not None:
        raise Conflict(f"there is already a note {target}", hint="Choose another name.", path=target)
    return target


class Mentions:
    """Every note that links to the moved one, and what its text becomes.

    Link targets are resolved before the move, as Obsidian does: by path, by unique file name.
    """

    def __init__(
        self, source: str, target: str, means: Dict[str, Dict[str, Optional[str]]], stem_is_free: bool, ctx: OpContext,
    ) -> None:
        """means: linking note -> link target as written -> path of the note it means. stem_is_free: whether the new
        name alone is enough for a link."""
        self.source = source
        self.target = target
        self._means = means
        self._stem_is_free = stem_is_free
        self._ctx = ctx

    @classmethod
    def found(cls, source: str, target: str, ctx: OpContext) -> Mentions:
        """The mentions as the vault has them now, before the move."""
        free = ctx.catalog.resolve_link(posixpath.basename(without_extension(target)), "") is None
        linking = sorted({source, *ctx.catalog.backlinks(source)})
        means = {path: _meanings(path, decode(data)[0], ctx) for path, data in ctx.vault.read_many(linking)}
        return cls(source, target, means, free, ctx)

    @classmethod
    def remembered(cls, plan: Mapping[str, Any], ctx: OpContext) -> Mentions:
        """The mentions as they were before the move, from `plan`."""
        return cls(plan["source"], plan["target"], plan["means"], plan["stem_is_free"], ctx)

    def plan(self) -> Dict[str, Any]:
        """What a later run cannot find out any more once the note has moved, as JSON values."""
        return {"source": self.source, "target": self.target, "means": self._means,
                "stem_is_free": self._stem_is_free}

    def paths(self) -> List[str]:
        """The notes whose bytes change beside the move itself, sorted; the moved note under its old path."""
        return [path for path, before, after in self._changes()]

    def diff(self) -> str:
        """Unified diff over all of them."""
        return "".join(diff_of(path, before, after) for path, before, after in self._changes())

    def apply(self) -> List[str]:
        """Rewrite them, the moved note at its new path; returns the changed paths, sorted."""
        changed = []
        for path in sorted(self._means):
            place = self.target if path == self.source else path

            def surgery(text: Optional[str], path: str = path) -> str:
                return self._after(path, must_exist(path, text, self._ctx))

            with contextlib.suppress(NotFound):  # a note that somebody removed meanwhile links to nothing any more
                if edit_note(self._ctx, place, surgery).changed:
                    changed.append(place)
        return sorted(changed)

    def _changes(self) -> List[Tuple[str, str, str]]:
        """`(path, text, text after the move)` of every note that changes."""
        texts = [(path, decode(data)[0]) for path, data in self._ctx.vault.read_many(sorted(self._means))]
        both = [(path, text, self._after(path, text)) for path, text in texts]
        return [(path, before, after) for path, before, after in both if after != before]

    def _after(self, path: str, text: str) -> str:
        place = self.target if path == self.source else path

        def new_target(link: Link) -> Optional[str]:
            meant = self._means[path].get(link.target)
            if meant is None:
                return None
            if meant == self.source:
                return self._written(link, self.target, place)
            # A moved note's own relative links have to point where they pointed before.
            moved_relative = path == self.source and link.kind == "markdown" and place != path
            return self._written(link, meant, place) if moved_relative else None

        renamed = rewrite(text, new_target)
        return self._with_status(renamed) if path == self.source else renamed

    def _written(self, link: Link, meant: str, place: str) -> str:
        """`meant` written the way the link was: bare name, vault path or relative path; extension as before."""
        had_extension = link.target.endswith(".md")
        name = meant if had_extension else without_extension(meant)
        if link.kind == "markdown":
            return posixpath.relpath(name, posixpath.dirname(place) or ".")
        if "/" not in link.target and self._stem_is_free:
            return posixpath.basename(name)
        return name

    def _with_status(self, text: str) -> str:
        """Folder and `status` of a project agree (spec 2.1)."""
        status = status_of(self.target)
        block = frontmatter.parse(text)
        if not status or block.malformed or "status" not in block.values or block.values["status"] == status:
            return text
        return frontmatter.set_key(text, "status", status)


def _meanings(path: str, text: str, ctx: OpContext) -> Dict[str, Optional[str]]:
    """Link target as written -> path of the note it means, for the links of one note."""
    meanings: Dict[str, Optional[str]] = {}
    for link in links(text):
        meant = ctx.catalog.resolve_link(link.target, path)
        meanings[link.target] = meant if isinstance(meant, str) else None
    return meanings
