"""What is answered while the vault is away: what was known, marked and dated, and nothing else (spec 3.2, 6.1)."""
from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import echo
import echo_known
import echo_tools
import pytest
from echo_context import OpContext
from echo_core.errors import EchoError, VaultAuth, VaultBadResponse, VaultTls, VaultUnreachable
from echo_core.vault.base import Stat
from echo_output import render
from fakes.memory_vault import MemoryVault
from fakes.olrapi import Olrapi
from opsfixture import make_ctx
from restvault import KEY

ADA = "resources/people/ada-lovelace.md"
REFUSED = VaultUnreachable("Nothing answers", hint="Start Obsidian.", reason="refused")


def opened(folder: Path, backend: MemoryVault, **more: Any) -> OpContext:
    """A context as on an API: what it meets is kept in files of `folder`/state."""
    files = {name: str(folder / f"state/{name}.sqlite3") for name in ("facts_cache", "notes_cache")}
    return make_ctx(folder, backend=backend, trust_s=60, keep_all=True, **files, **more)


def ask(ctx: OpContext, tool: str, **arguments: Any) -> dict[str, Any]:
    return echo_known.run(echo_tools.BY_NAME[f"echo_{tool}"], arguments, ctx)


@pytest.fixture
def memory() -> MemoryVault:
    """A vault with a few notes, as somebody else left them."""
    return MemoryVault({
        ADA: b"---\naliases: [AL]\n---\n# Ada Lovelace\n\nWrote the first program.\n",
        "notes/engine.md": b"# Engine\n\nA machine of brass. See [[ada-lovelace]].\n",
        "_agent/context/current-context.md": b"---\nscope: looms\n---\n# Current Context\n",
        "_agent/index/entities.json":
            b'{"version": 1, "entities": {"ada": {"aliases": ["Countess"], "kind": "person", "path": "'
            + ADA.encode() + b'", "title": "Ada Lovelace", "updated": ""}}}\n',
    })


@pytest.fixture
def ctx(tmp_path: Path, memory: MemoryVault) -> OpContext:
    """A context that has met all notes."""
    made = opened(tmp_path, memory)
    assert ask(made, "recall", query="first program")["primary"]
    assert ask(made, "resolve", mention="Countess")["path"] == ADA
    return made


def test_a_note_is_answered_as_it_was_met_last_and_says_so(ctx: OpContext, memory: MemoryVault) -> None:
    """Content and version are those of then; `offline` and `age_s` are said in structure and text."""
    fresh = ask(ctx, "get_note", path="Ada Lovelace")
    memory.down = REFUSED
    answer = ask(ctx, "get_note", path="Ada Lovelace")
    assert {key: answer[key] for key in fresh} == fresh
    assert (answer["offline"], answer["age_s"]) == (True, 0)
    assert answer["hint"] == "The vault does not answer; this is what ECHO knew a few seconds ago."
    assert render("echo_get_note", answer).startswith("OFFLINE, as of a few seconds ago: resources/people/")
    assert "offline" not in fresh


def test_recall_resolve_and_scope_are_answered_and_marked(ctx: OpContext, memory: MemoryVault) -> None:
    """And unmarked again as soon as the vault is back."""
    for marked in (True, False):
        memory.down = REFUSED if marked else None
        for tool, arguments in (("recall", {"query": "brass machine"}), ("resolve", {"mention": "AL"}),
                                ("get_scope", {}), ("note_history", {"path": ADA})):
            answer = ask(ctx, tool, **arguments)
            assert answer["ok"], tool
            assert answer.get("offline", False) is marked, tool
        assert ask(ctx, "recall", query="brass machine")["primary"][0]["path"] == "notes/engine.md"


def test_what_is_not_known_fails_as_the_vault_did_with_what_to_do(ctx: OpContext, memory: MemoryVault) -> None:
    """Nobody can say that it is not there; the failure tells a model how to go on."""
    memory.down = REFUSED
    for path in ("notes/other.md", "Nobody"):
        answer = ask(ctx, "get_note", path=path)
        assert (answer["code"], answer["reason"]) == ("vault-unreachable", "refused")
        assert answer["hint"] == "Start Obsidian. Proceed without memory."


def test_a_name_that_is_ambiguous_is_so_offline_too(tmp_path: Path) -> None:
    """The candidates are worth as much."""
    memory = MemoryVault({"a/x.md": b"# Same\n", "b/x.md": b"# Same\n"})
    ctx = opened(tmp_path, memory)
    ctx.catalog.refresh()
    memory.down = REFUSED
    answer = ask(ctx, "get_note", path="Same")
    assert (answer["code"], answer["offline"], len(answer["candidates"])) == ("ambiguous", True, 2)


def test_bytes_that_are_known_to_be_out_of_date_are_never_shown(
    ctx: OpContext, memory: MemoryVault, tmp_path: Path
) -> None:
    """The walk saw the change, the new text was not read by anybody who keeps it: then there is no text to show."""
    memory.put(ADA, b"# Ada Lovelace\n\nNew text.\n")
    ctx.catalog.touch(ADA, b"# Ada Lovelace\n\nNew text.\n")
    memory.down = REFUSED
    answer = ask(ctx, "get_note", path=ADA)
    assert (answer["ok"], answer["code"]) == (False, "vault-unreachable")


def test_a_write_is_based_on_what_the_vault_holds_now(ctx: OpContext, memory: MemoryVault) -> None:
    """However much is remembered: it fails while the vault is away, and keeps what came in meanwhile."""
    memory.down = REFUSED
    assert ask(ctx, "append_note", path=ADA, line="- one")["code"] == "vault-unreachable"
    memory.down = None
    memory.put(ADA, b"# Ada Lovelace\n\nSomebody else's text.\n")
    assert ask(ctx, "append_note", path=ADA, line="- one")["action"] == "appended"
    assert memory.snapshot()[ADA] == b"# Ada Lovelace\n\nSomebody else's text.\n- one\n"
    memory.down = REFUSED
    assert ask(ctx, "get_note", path=ADA)["content"] == "# Ada Lovelace\n\nSomebody else's text.\n- one\n"


def test_a_start_while_the_vault_is_away_knows_what_the_last_run_knew(
    ctx: OpContext, memory: MemoryVault, tmp_path: Path
) -> None:
    """Names of index and notes, texts, scope, own last writes; a deleted note is not brought back."""
    ask(ctx, "append_note", path=ADA, line="- liked trains")
    memory.remove("notes/engine.md")
    ctx.catalog.refresh()
    ctx.close()
    memory.down = REFUSED
    later = opened(tmp_path, memory)
    assert "- liked trains" in ask(later, "get_note", path="Countess")["content"]
    assert ask(later, "resolve", mention="AL")["path"] == ADA
    found = ask(later, "recall", query="trains")
    assert (found["primary"][0]["path"], found["offline"], found["searched"]) == (ADA, True, 2)
    assert ask(later, "recall", query="brass machine")["primary"] == []
    loaded = ask(later, "load")
    assert (loaded["sections"]["scope"], loaded["offline"]) == ("looms", True)
    assert "never set up" not in loaded["hint"]
    later.close()


def test_the_age_is_that_of_the_last_look_and_survives_the_run(
    ctx: OpContext, memory: MemoryVault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not that of the file's last reading: the vault has said since that nothing changed."""
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 3600)
    ctx.catalog.refresh()
    ctx.close()
    memory.down = REFUSED
    monkeypatch.setattr(time, "time", lambda: now + 3 * 3600)
    later = opened(tmp_path, memory)
    answer = ask(later, "get_note", path=ADA)
    assert answer["age_s"] in (7199, 7200)
    assert "what ECHO knew 119 minutes ago" in answer["hint"] or "what ECHO knew 2 hours ago" in answer["hint"]
    assert ask(later, "recall", query="first program")["age_s"] in (7199, 7200)
    later.close()


def test_an_offline_load_stays_small_and_names_what_waits(
    tmp_path: Path, memory: MemoryVault
) -> None:
    """At most 6,000 characters in brief form, notice included."""
    memory.put("_agent/memory/semantic/operator-preferences.md", b"# Operator Preferences\n\n" + b"- likes tea\n" * 900)
    ctx = opened(tmp_path, memory)
    ask(ctx, "load")
    ctx.queue = lambda: {"depth": 2, "parked": 0, "conflicts": 0}
    memory.down = REFUSED
    answer = ask(ctx, "load")
    assert answer["offline"] is True
    assert "Not in it: 2 writes waiting for the vault." in answer["hint"]
    assert len(render("echo_load", answer)) <= 3500
    assert len(str(answer)) + len(render("echo_load", answer)) <= 6000


def test_a_load_of_which_nothing_is_known_fails(tmp_path: Path) -> None:
    """An empty orientation would look like an empty memory."""
    memory = MemoryVault({"notes/a.md": b"# A\n"})
    ctx = opened(tmp_path, memory)
    ctx.catalog.refresh()
    memory.down = REFUSED
    assert ask(ctx, "load")["code"] == "vault-unreachable"


def test_a_first_start_while_the_vault_is_away_knows_nothing(tmp_path: Path, memory: MemoryVault) -> None:
    """Every look fails; nothing is answered with an empty list."""
    memory.down = REFUSED
    ctx = opened(tmp_path, memory)
    for tool, arguments in (("recall", {"query": "x"}), ("resolve", {"mention": "x"}), ("load", {}),
                            ("get_note", {"path": "x"}), ("get_scope", {}), ("rollup_data", {"period": "week"})):
        assert ask(ctx, tool, **arguments)["code"] == "vault-unreachable", tool


def test_recall_names_the_notes_whose_text_it_does_not_know(tmp_path: Path) -> None:
    """A folder's texts are kept only where a tool has read them: the others are named, not passed over."""
    memory = MemoryVault({"notes/a.md": b"# A\n\nbrass\n", "notes/b.md": b"# B\n\nbrass\n"})
    ctx = opened(tmp_path, memory)
    ctx.catalog.refresh()
    ctx.known.notes.drop(["notes/b.md"])
    memory.down = REFUSED
    answer = ask(ctx, "recall", query="brass")
    assert [hit["path"] for hit in answer["primary"]] == ["notes/a.md"]
    assert answer["warnings"] == ["not searched, since the text is not kept: 1 note"]
    assert ask(ctx, "recall", query="nothing")["warnings"] == answer["warnings"]


def test_recall_without_a_single_text_fails(tmp_path: Path) -> None:
    """It would look like a memory in which nothing fits."""
    memory = MemoryVault({"notes/a.md": b"# A\n\nbrass\n"})
    ctx = opened(tmp_path, memory)
    ctx.catalog.refresh()
    ctx.known.notes.drop(["notes/a.md"])
    memory.down = REFUSED
    assert ask(ctx, "recall", query="brass")["code"] == "vault-unreachable"
    assert ask(ctx, "resolve", mention="a")["match"] is True


def test_a_vault_that_is_still_being_read_is_not_away(ctx: OpContext, memory: MemoryVault) -> None:
    """Nor is one in which another write takes long: old text would be shown for nothing."""
    for reason in ("starting", "busy"):
        memory.down = VaultUnreachable("wait", reason=reason)
        assert ask(ctx, "get_note", path=ADA)["code"] == "vault-unreachable"


def test_what_is_known_is_told_while_a_refresh_hangs(ctx: OpContext, memory: MemoryVault) -> None:
    """Whoever asks does not wait for the thread that waits for the vault."""
    hangs, goes_on = threading.Event(), threading.Event()
    walk = memory.walk

    def hanging() -> Iterator[Stat]:
        hangs.set()
        goes_on.wait(60)
        return walk()

    memory.walk = hanging  # type: ignore[method-assign]
    refresh = threading.Thread(target=ctx.catalog.refresh)
    refresh.start()
    hangs.wait(60)
    answer = echo_known.known(echo_tools.BY_NAME["echo_get_note"], {"path": ADA}, ctx)
    assert answer is not None
    assert answer["offline"] is True
    goes_on.set()
    refresh.join()


def test_the_command_line_knows_what_it_met_with_obsidian_closed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """So does the hook at the start of a session; what is not known is exit code 69."""
    (tmp_path / "vault").mkdir()
    with Olrapi(str(tmp_path / "vault"), key=KEY) as api:
        env = {"ECHO_BASE": api.url, "ECHO_KEY": KEY, "ECHO_STATE_DIR": str(tmp_path / "state")}

        def line(*words: str) -> tuple[int, dict[str, Any]]:
            code = echo.main([*words, "--json"], env)
            return code, json.loads(capsys.readouterr().out)

        assert line("bootstrap")[0] == line("scope", "looms")[0] == 0
        assert line("capture", "Ada Lovelace", "--kind", "person", "--body", "Wrote the first program.")[0] == 0
        assert line("load")[1]["offline"] is False
        api.refuse()
        api.drop_connections()
        code, loaded = line("load")
        assert (code, loaded["offline"], loaded["sections"]["scope"]) == (0, True, "looms")
        code, found = line("recall", "first program")
        assert (code, found["offline"], found["primary"][0]["title"]) == (0, True, "Ada Lovelace")
        assert line("get", "ada-lovelace")[1]["offline"] is True
        assert line("get", "nobody")[0] == 69


@pytest.mark.parametrize("failure", [VaultBadResponse("No", reason="redirect"), VaultTls("No", reason="handshake")])
def test_what_answers_in_the_vaults_place_hides_nothing_that_is_known(
    ctx: OpContext, memory: MemoryVault, failure: EchoError
) -> None:
    """Every read is marked, names the reason, and is unmarked when the vault answers again."""
    for marked in (True, False):
        memory.down = failure if marked else None
        for tool, arguments in (("get_note", {"path": ADA}), ("get_scope", {}), ("load", {}),
                                ("recall", {"query": "brass machine"}), ("resolve", {"mention": "AL"})):
            answer = ask(ctx, tool, **arguments)
            assert answer["ok"], tool
            assert answer.get("offline", False) is marked, tool
            named = [warning for warning in answer.get("warnings", []) if warning.startswith(failure.code)]
            assert len(named) == marked, tool
    memory.down = failure
    assert ask(ctx, "get_note", path="notes/other.md")["code"] == failure.code


def test_a_wrong_key_is_loud_and_named_by_what_answers_from_memory(ctx: OpContext, memory: MemoryVault) -> None:
    """Only the operator can mend it. What looks for changes itself, as the command line does, fails as loudly."""
    memory.down = VaultAuth("The vault refuses the key", reason="key")
    assert ask(ctx, "get_note", path=ADA)["code"] == "vault-auth"
    for tool, arguments in (("recall", {"query": "brass machine"}), ("resolve", {"mention": "AL"})):
        answer = ask(ctx.varied(refresh=lambda: None), tool, **arguments)
        assert (answer["ok"], answer["offline"]) == (True, True)
        assert answer["warnings"] == ["vault-auth: The vault refuses the key"]
    memory.down = None
    ask(ctx, "get_note", path=ADA)
    assert "offline" not in ask(ctx, "resolve", mention="AL")


def test_health_without_the_vault_fails_its_check_and_tells_the_rest(ctx: OpContext, memory: MemoryVault) -> None:
    """Nothing is asked of a vault that does not answer in time."""
    before = memory.calls.total()
    answer = echo_known.health(echo_tools.BY_NAME["echo_health"], {"deep": True}, ctx)
    assert memory.calls.total() == before
    assert (answer["ok"], answer["healthy"]) == (True, False)
    rows = {row["name"]: row for row in answer["checks"]}
    assert rows["vault"]["ok"] is False
    assert rows["vault"]["detail"].startswith("vault-unreachable: ")
    assert (rows["queue"]["ok"], rows["notes"]["ok"]) == (True, True)
