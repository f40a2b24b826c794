"""Ops called directly: each answers with an envelope or raises an EchoError, and prints nothing (seed, phase 0)."""
from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
from echo_admin import ADMIN_TOOLS
from echo_bootstrap import bootstrap_op
from echo_context import OpContext
from echo_core.errors import Ambiguous, EchoError, InvalidTarget, NotFound
from echo_doctor import doctor_op, health_op
from echo_history import note_history_op, restore_note_op
from echo_load import load_op
from echo_move import move_op
from echo_note_edits import append_op, patch_op
from echo_notes import get_note_op
from echo_ops import capture_op, link_op, resolve_op
from echo_recall import recall_op
from echo_reflect import apply_op
from echo_rollup import rollup_data_op
from echo_scope import scope_set_op, scope_show_op
from echo_session import session_end_op
from echo_tools import TOOLS, run
from echo_triage import triage_op
from opsfixture import get, make_ctx, put, snapshot


@pytest.fixture
def ctx(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Any:
    """A context over a vault with a person and a project; nothing may be printed while it is used."""
    made = make_ctx(tmp_path)
    bootstrap_op(ctx=made)
    capture_op("Ada Lovelace", kind="person", body="Writes programs for the engine.", aliases=["Countess"], ctx=made)
    capture_op("Engine", kind="project", body="## Status\n\nGears cut.\n", ctx=made)
    yield made
    assert capfd.readouterr() == ("", "")


def test_capture_creates_once(ctx: OpContext) -> None:
    """The note, then `unchanged` for the identical repeat."""
    answer = capture_op("Charles Babbage", kind="person", body="Builds engines.", ctx=ctx)
    assert (answer["ok"], answer["action"], answer["path"]) == (True, "created", "resources/people/charles-babbage.md")
    assert capture_op("Charles Babbage", kind="person", body="Builds engines.", ctx=ctx)["action"] == "unchanged"


def test_the_gate_is_data_and_not_an_error(ctx: OpContext) -> None:
    """`ok: false`, the action, the candidates; merging resolves it."""
    answer = capture_op("Countess", kind="person", body="Loves flying machines.", ctx=ctx)
    assert (answer["ok"], answer["action"]) == (False, "duplicate-gate")
    assert answer["candidates"][0]["path"] == "resources/people/ada-lovelace.md"
    merged = capture_op("Countess", kind="person", body="Loves flying machines.", merge_into="ada-lovelace", ctx=ctx)
    assert (merged["action"], merged["path"]) == ("updated", "resources/people/ada-lovelace.md")


def test_no_kind_becomes_an_inbox_line(ctx: OpContext, tmp_path: Path) -> None:
    """Dated, with its tags at the end."""
    assert capture_op("buy milk", tags=["shop"], ctx=ctx)["action"] == "inbox"
    assert get(tmp_path, "inbox/captures/inbox.md").endswith("- 2026-11-30: buy milk #shop\n")


def test_a_dry_run_shows_the_diff_and_writes_nothing(ctx: OpContext, tmp_path: Path) -> None:
    """Preview changes no byte."""
    before = snapshot(tmp_path)
    answer = capture_op("Loom", kind="concept", body="Weaves.", dry_run=True, ctx=ctx)
    assert "+# Loom" in answer["diff"]
    assert snapshot(tmp_path) == before


def test_resolve_answers_match_no_match_and_several(ctx: OpContext, tmp_path: Path) -> None:
    """Three shapes, all of them `ok`."""
    assert resolve_op("countess", ctx=ctx)["path"] == "resources/people/ada-lovelace.md"
    answer = resolve_op("Nobody Known", ctx=ctx)
    assert (answer["match"], answer["suggest_slug"]) == (False, "nobody-known")
    put(tmp_path, "resources/companies/engine.md", "---\ntitle: Engine\n---\n")
    assert resolve_op("Engine", ctx=ctx)["ambiguous"] is True


def test_link_works_both_ways_once(ctx: OpContext, tmp_path: Path) -> None:
    """Both notes get the line; the repeat changes nothing."""
    answer = link_op("Countess", "Engine", relation="programs it", ctx=ctx)
    assert (answer["a_changed"], answer["b_changed"]) == (True, True)
    assert "[[projects/active/engine|Engine]]: programs it" in get(tmp_path, "resources/people/ada-lovelace.md")
    assert link_op("Countess", "Engine", relation="programs it", ctx=ctx)["action"] == "unchanged"


def test_recall_finds_or_says_nothing(ctx: OpContext) -> None:
    """The passage that answers, or `primary: []`."""
    assert recall_op("who writes programs", ctx=ctx)["primary"][0]["path"] == "resources/people/ada-lovelace.md"
    assert recall_op("sourdough bread recipe", ctx=ctx)["primary"] == []


def test_get_append_and_patch_know_the_version(ctx: OpContext, tmp_path: Path) -> None:
    """Each answer's version is the note's; a stale one is refused and nothing is written."""
    version = get_note_op("Engine", ctx=ctx)["version"]
    appended = append_op("Engine", "- first run", section="Status", if_match=version, ctx=ctx)
    assert appended["action"] == "appended"
    before = snapshot(tmp_path)
    with pytest.raises(EchoError) as stale:
        patch_op("Engine", "replace", "heading", "Status", "Lost.", if_match=version, ctx=ctx)
    assert (stale.value.code, stale.value.data["version"]) == ("conflict", appended["version"])
    assert snapshot(tmp_path) == before


def test_a_missing_heading_is_answered_with_the_real_ones(ctx: OpContext) -> None:
    """The worst silent loss becomes a correction."""
    with pytest.raises(InvalidTarget) as missing:
        patch_op("Engine", "replace", "heading", "Stats", "x", ctx=ctx)
    assert missing.value.data["headings"] == ["Engine", "Engine::Status"]


def test_writes_never_go_to_a_guess(ctx: OpContext, tmp_path: Path) -> None:
    """A name that means nothing, or two things, is an error with candidates."""
    with pytest.raises(NotFound):
        append_op("Engin", "x", ctx=ctx)
    put(tmp_path, "resources/companies/engine.md", "---\ntitle: Engine\n---\n")
    with pytest.raises(Ambiguous) as several:
        append_op("Engine", "x", ctx=ctx)
    assert len(several.value.data["candidates"]) == 2


def test_scope_switches_and_keeps_the_old_one(ctx: OpContext) -> None:
    """Set, set again, show."""
    assert scope_set_op("Build the engine", ctx=ctx)["action"] == "updated"
    assert scope_set_op("Build the engine", ctx=ctx)["action"] == "unchanged"
    assert scope_set_op("Run the engine", ctx=ctx)["previous"] == "Build the engine"
    assert scope_show_op(ctx=ctx)["scope"] == "Run the engine"


def test_triage_lists_previews_and_applies(ctx: OpContext, tmp_path: Path) -> None:
    """Three calls; the preview writes nothing, the applied line leaves the inbox."""
    capture_op("Grace Hopper: compilers", ctx=ctx)
    item = triage_op([], ctx=ctx)["items"][0]
    proposals: list[dict[str, Any]] = [{"line": item["id"], "action": "capture", "title": "Grace Hopper",
                                        "kind": "person", "body": "Compilers."}]
    before = snapshot(tmp_path)
    preview = triage_op(proposals, ctx=ctx)
    assert snapshot(tmp_path) == before
    done = triage_op(proposals, apply=True, preview_token=preview["preview_token"], ctx=ctx)
    assert done["results"][0]["ok"] is True
    assert triage_op([], ctx=ctx)["items"] == []


def test_reflect_refuses_a_preview_that_is_out_of_date(ctx: OpContext) -> None:
    """A decision, not an error: look again."""
    proposals = [{"action": "append", "path": "Engine", "line": "- note"}]
    token = apply_op(proposals, ctx=ctx)["preview_token"]
    append_op("Engine", "- meanwhile", ctx=ctx)
    answer = apply_op(proposals, apply=True, preview_token=token, ctx=ctx)
    assert (answer["ok"], answer["action"]) == (False, "stale-preview")


def test_a_session_is_logged_and_seen_by_the_next_load(ctx: OpContext) -> None:
    """The heartbeat is written last; load shows the session, the scope and the inbox count."""
    answer = session_end_op("engine work", "Cut the gears.", "cut gears", scope="Run it", apply=True, ctx=ctx)
    assert all(row["ok"] for row in answer["results"])
    sections = load_op(ctx=ctx)["sections"]
    assert "Cut the gears." in sections["last_session"]
    assert sections["scope"] == "Run it"


def test_rollup_data_of_a_week(ctx: OpContext) -> None:
    """What the model needs to write the prose."""
    answer = rollup_data_op("week", ctx=ctx)
    assert [row["path"] for row in answer["projects"]] == ["projects/active/engine.md"]


def test_history_brings_back_the_exact_bytes(ctx: OpContext, tmp_path: Path) -> None:
    """Replace, look, restore; the restore is itself a version."""
    before = get(tmp_path, "projects/active/engine.md")
    patch_op("Engine", "replace", "heading", "Status", "Broken.", ctx=ctx)
    version = note_history_op("Engine", ctx=ctx)["versions"][0]["id"]
    assert restore_note_op("Engine", version, ctx=ctx)["action"] == "preview"
    assert restore_note_op("Engine", version, confirm=True, ctx=ctx)["action"] == "restored"
    assert get(tmp_path, "projects/active/engine.md") == before
    assert len(note_history_op("Engine", ctx=ctx)["versions"]) >= 2


def test_a_move_takes_its_links_along(ctx: OpContext, tmp_path: Path) -> None:
    """Preview first; then every link is rewritten."""
    link_op("Countess", "Engine", ctx=ctx)
    assert move_op("Engine", "projects/archived/engine.md", ctx=ctx)["action"] == "preview"
    moved = move_op("Engine", "projects/archived/engine.md", confirm=True, ctx=ctx)
    assert "resources/people/ada-lovelace.md" in moved["links_changed"]
    assert "[[projects/archived/engine|Engine]]" in get(tmp_path, "resources/people/ada-lovelace.md")


def test_health_and_doctor_report(ctx: OpContext) -> None:
    """Both are `ok`, whatever they find."""
    assert health_op(deep=True, ctx=ctx)["ok"] is True
    assert doctor_op(ctx=ctx)["healthy"] is True


def test_an_op_takes_exactly_the_parameters_that_are_declared() -> None:
    """One table: every declared parameter exists on the op, every other one of the op has a default."""
    for tool in [*TOOLS, *ADMIN_TOOLS]:
        parameters = inspect.signature(tool.op).parameters
        declared = {param.name for param in tool.params}
        assert declared <= set(parameters), tool.name
        assert parameters["ctx"].kind is inspect.Parameter.KEYWORD_ONLY
        for name in set(parameters) - declared - {"ctx"}:
            assert parameters[name].default is not inspect.Parameter.empty, (tool.name, name)


def test_an_op_says_what_it_returns_and_raises() -> None:
    """The docstring is the op's page in the documentation."""
    assert [tool.name for tool in [*TOOLS, *ADMIN_TOOLS] if not inspect.getdoc(tool.op)] == []


def test_a_call_without_arguments_is_an_envelope_for_every_tool(ctx: OpContext) -> None:
    """Required parameters are named; nothing is raised."""
    for tool in TOOLS:
        answer = run(tool, {}, ctx)
        required = [param.name for param in tool.params if param.required]
        assert answer["ok"] is (not required), tool.name
        if required:
            assert (answer["code"], answer["field"]) == ("invalid-argument", required[0])
