"""The search index survives restarts, kills, damage and a full disk; every engine answers alike (spec 5.1, 5.5)."""
from __future__ import annotations

import random
import shutil
import sqlite3
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from echo_config import read_settings
from echo_context import OpContext
from echo_core.bm25 import Bm25Index
from echo_core.catalog.note import facts
from echo_core.recall import feed, opening
from echo_core.recall.faults import IndexLost
from echo_core.recall.fts_engine import FtsEngine, has_fts5
from echo_core.recall.search import SearchIndex
from echo_core.recall.store import PassageStore
from echo_mcp.recall.engines import PLAIN, TANTIVY, opener
from echo_mcp.recall.tantivy_engine import TantivyEngine
from echo_offline import open_cli
from opsfixture import call, make_ctx, put
from serverproc import environment, running_server, spawned

FTS5 = "fts5"
KEPT = [TANTIVY, pytest.param(FTS5, marks=pytest.mark.skipif(not has_fts5(), reason="SQLite without FTS5"))]
"""Engines that keep something beside the passages."""
COUNT = 40
WORDS = [first + second for first in ("zor", "quil", "mef", "tasp", "vren") for second in ("ba", "nok", "lim", "dor")]


def own(number: int) -> str:
    """A word of its own for each number below 60."""
    return f"{'bdfgklmnprst'[number % 12]}{'aeiou'[number % 5]}{'bdfgklmnprst'[number // 12]}ozul"


def note(number: int, word: str = "") -> str:
    """A note with a word of its own."""
    return f"# {own(number)}\n\nAll about {own(number)} and {word or 'the coast'}.\n"


def write_vault(folder: Path, count: int = COUNT) -> None:
    """Notes 0 to count - 1 in `folder/vault`."""
    for number in range(count):
        put(folder, f"notes/n{number}.md", note(number))


def opened(folder: Path, engine: str = TANTIVY, notes: list[str] | None = None) -> OpContext:
    """A context like the server's over `folder`; notes: where to put what the operator is told."""
    told = notes if notes is not None else []
    kept = str(folder / "state/recall")
    if engine == FTS5:
        return make_ctx(folder, search=opening.opener(kept, FtsEngine, lambda: "2026-11-30", told.append))
    return make_ctx(folder, search=opener(engine, kept, lambda: "2026-11-30", told.append))


def in_memory(engine: str) -> SearchIndex:
    """An index that nobody keeps."""
    store = PassageStore()
    found = {PLAIN: Bm25Index, TANTIVY: TantivyEngine, FTS5: lambda: FtsEngine(store)}[engine]()
    return SearchIndex(found, lambda: "2026-11-30", store)


def recalled(ctx: OpContext, query: str, **arguments: Any) -> list[str]:
    """The paths that recall answers, of an index that is complete."""
    answer = call(ctx, "recall", query=query, **arguments)
    assert "index" not in answer
    return [hit["path"] for hit in answer["primary"]]


def texts_read(ctx: OpContext) -> list[str]:
    """From now on, the paths the search index reads from the vault."""
    read: list[str] = []
    inner = ctx.feed._vault

    class Counting:
        def __getattr__(self, name: str) -> Any:
            return getattr(inner, name)

        def read_many(self, paths: list[str]) -> Iterator[tuple[str, bytes]]:
            read.extend(paths)
            return inner.read_many(paths)

    ctx.feed._vault = Counting()
    return read


@pytest.mark.parametrize("engine", [PLAIN, *KEPT])
def test_the_next_start_reads_only_what_has_changed(tmp_path: Path, engine: str) -> None:
    """Changed, new and removed notes are noticed; of all others nothing is read or cut into words again."""
    write_vault(tmp_path)
    ctx = opened(tmp_path, engine)
    assert recalled(ctx, own(7)) == ["notes/n7.md"]
    ctx.feed.close()

    put(tmp_path, "notes/n7.md", note(7, "a narwhal"))
    put(tmp_path, "notes/new.md", "# New\n\nThe manatee moved in.\n")
    (tmp_path / "vault/notes/n8.md").unlink()
    again = opened(tmp_path, engine)
    read = texts_read(again)
    assert recalled(again, "narwhal") == ["notes/n7.md"]
    assert recalled(again, "manatee") == ["notes/new.md"]
    assert recalled(again, own(8)) == []
    assert recalled(again, own(9)) == ["notes/n9.md"]
    assert sorted(read) == ["notes/n7.md", "notes/new.md"]
    again.feed.close()


def test_every_engine_gives_the_same_answers_through_every_change(tmp_path: Path) -> None:
    """tantivy, FTS5 and the engine in memory, after notes were written, rewritten and deleted in any order."""
    chance = random.Random(5)
    indexes = [in_memory(engine) for engine in (PLAIN, TANTIVY, *[FTS5] * has_fts5())]
    for step in range(150):
        path = f"n{chance.randrange(40)}.md"
        text = f"# {chance.choice(WORDS)}\n\n" + " ".join(chance.choices(WORDS, k=chance.randint(3, 60)))
        for index in indexes:
            if step % 4 == 3:
                index.delete(path)
            else:
                index.upsert(facts(path, text), text)
        if step % 10 == 0:
            query = " ".join(chance.sample(WORDS, 3))
            answers = [[(hit.path, hit.score, hit.coverage, hit.fit) for hit in index.search(query, 5, everything=True)]
                       for index in indexes]
            assert answers[0]
            assert all(other == answers[0] for other in answers[1:])


def test_filters_choose_before_the_best_are_taken_by_every_engine() -> None:
    """The one note of its kind is found among many that match better."""
    for engine in (PLAIN, TANTIVY, *[FTS5] * has_fts5()):
        index = in_memory(engine)
        for number in range(300):
            text = "---\ntype: project\nupdated: 2026-01-02\n---\n\nlighthouse lighthouse\n"
            index.upsert(facts(f"p{number}.md", text), text)
        text = "---\ntype: concept\nupdated: 2025-05-05\n---\n\nA lighthouse among other things on the coast.\n"
        index.upsert(facts("c.md", text), text)
        assert [hit.path for hit in index.search("lighthouse", 5, kinds=["concept"])] == ["c.md"]
        assert [hit.path for hit in index.search("lighthouse", 5, until="2025-12-31")] == ["c.md"]
        assert index.search("lighthouse", 5, kinds=["person"]) == []
        assert len(index.search("lighthouse", 5, kinds=["project"])) == 5


def index_files(folder: Path) -> list[Path]:
    """Every file the index keeps."""
    return sorted(path for path in (folder / "state/recall").rglob("*") if path.is_file())


@pytest.mark.parametrize("engine", KEPT)
@pytest.mark.parametrize("damage", [b"", b"garbage", "half", "flipped", "removed"])
def test_whatever_happened_to_its_files_recall_finds_what_the_vault_holds(
    tmp_path: Path, damage: Any, engine: str,
) -> None:
    """Each file in turn is emptied, overwritten, cut, changed in its middle or removed; no answer is wrong."""
    write_vault(tmp_path, 12)
    ctx = opened(tmp_path, engine)
    assert recalled(ctx, own(7)) == ["notes/n7.md"]
    ctx.feed.close()
    shutil.copytree(tmp_path / "state/recall", tmp_path / "good")
    for number, path in enumerate(index_files(tmp_path)):
        data = path.read_bytes()
        if damage == "removed":
            path.unlink()
        elif damage == "half":
            path.write_bytes(data[:len(data) // 2])
        elif damage == "flipped":
            path.write_bytes(bytes(byte ^ 0x5a if abs(place - len(data) // 2) < 40 else byte
                                   for place, byte in enumerate(data)))
        else:
            path.write_bytes(damage)
        put(tmp_path, "notes/n3.md", note(3, own(20 + number)))
        again = opened(tmp_path, engine)
        assert recalled(again, own(7)) == ["notes/n7.md"], path.name
        assert recalled(again, own(20 + number)) == ["notes/n3.md"], path.name
        assert recalled(again, own(19 + number)) == [], path.name
        again.feed.close()
        shutil.rmtree(tmp_path / "state/recall")
        shutil.copytree(tmp_path / "good", tmp_path / "state/recall")


@pytest.mark.parametrize("engine", KEPT)
def test_an_index_of_other_tokens_is_made_anew(tmp_path: Path, engine: str) -> None:
    """Another version of the format or of the tokens is not mixed with this one."""
    write_vault(tmp_path, 5)
    ctx = opened(tmp_path, engine)
    assert recalled(ctx, own(2)) == ["notes/n2.md"]
    ctx.feed.close()
    database = sqlite3.connect(tmp_path / "state/recall/passages.sqlite3")
    with database:
        database.execute("UPDATE format SET value = 'another'")
    database.close()
    again = opened(tmp_path, engine)
    read = texts_read(again)
    assert recalled(again, own(2)) == ["notes/n2.md"]
    assert len(read) == 5
    again.feed.close()


@pytest.mark.parametrize("moment", ["upsert", "commit", "finish"])
def test_a_process_that_ends_at_any_moment_leaves_nothing_wrong(tmp_path: Path, moment: str) -> None:
    """What the engine did not get it gets at the next start; what was deleted is not found."""
    engine, store = TantivyEngine(str(tmp_path / "t")), PassageStore(str(tmp_path / "p"))
    index = SearchIndex(engine, store=store)
    for number in range(5):
        index.upsert(facts(f"n{number}.md", note(number)), note(number), version="1")
    index.commit()
    index.upsert(facts("n1.md", "# N\n\nnarwhal"), "# N\n\nnarwhal", version="2")
    index.delete("n2.md")
    if moment != "upsert":
        store.commit()
    if moment == "finish":
        engine.commit()
    engine.close()
    store.close()

    again = SearchIndex(TantivyEngine(str(tmp_path / "t")), store=PassageStore(str(tmp_path / "p")))
    again.restore()
    done = moment != "upsert"
    assert again.versions() == {f"n{number}.md": "2" if number == 1 and done else "1"
                                for number in range(5) if number != 2 or not done}
    assert [hit.path for hit in again.search("narwhal")] == (["n1.md"] if done else [])
    assert [hit.path for hit in again.search(own(2))] == ([] if done else ["n2.md"])
    assert [hit.path for hit in again.search(own(3))] == ["n3.md"]
    again.close()


def cli_context(folder: Path) -> OpContext:
    """The context of one call of the command line on `folder/vault`."""
    return open_cli(read_settings({"ECHO_BASE": str(folder / "vault"), "ECHO_STATE_DIR": str(folder / "state")}))


@pytest.mark.skipif(not has_fts5(), reason="SQLite without FTS5")
def test_the_command_line_reads_only_what_has_changed_since_its_last_search(tmp_path: Path) -> None:
    """Its index is kept in the state folder, private to its owner, and several calls at once share it."""
    write_vault(tmp_path)
    first = cli_context(tmp_path)
    assert recalled(first, own(7)) == ["notes/n7.md"]
    first.close()
    put(tmp_path, "notes/n8.md", note(8, "a narwhal"))
    calls = [cli_context(tmp_path) for _ in range(2)]
    read = [texts_read(ctx) for ctx in calls]
    assert [recalled(ctx, "narwhal") for ctx in calls] == [["notes/n8.md"]] * 2
    assert read[0] == ["notes/n8.md"]
    put(tmp_path, "notes/new.md", "# New\n\nThe manatee moved in.\n")
    (tmp_path / "vault/notes/n9.md").unlink()
    assert [recalled(ctx, "manatee") for ctx in reversed(calls)] == [["notes/new.md"]] * 2
    assert [recalled(ctx, own(9)) for ctx in calls] == [[], []]
    for ctx in calls:
        ctx.close()
    (kept,) = (tmp_path / "state").glob("cli-recall-*/passages.sqlite3")
    assert kept.stat().st_mode & 0o077 == 0


@pytest.mark.skipif(not has_fts5(), reason="SQLite without FTS5")
def test_a_command_line_that_dies_while_it_indexes_leaves_nothing_half_done(tmp_path: Path) -> None:
    """Passages and what is found of them are committed together."""
    store = PassageStore(str(tmp_path / "p"))
    index = SearchIndex(FtsEngine(store), store=store)
    index.upsert(facts("n1.md", note(1)), note(1), version="1")
    index.commit()
    index.upsert(facts("n1.md", note(2)), note(2), version="2")
    index.upsert(facts("n3.md", note(3)), note(3), version="1")
    store.close()
    store = PassageStore(str(tmp_path / "p"))
    again = SearchIndex(FtsEngine(store), store=store)
    again.restore()
    assert again.versions() == {"n1.md": "1"}
    assert [[hit.path for hit in again.search(own(number))] for number in (1, 2, 3)] == [["n1.md"], [], []]
    again.close()


class HeldEngine(TantivyEngine):
    """Its commits wait until they are let go, and are counted."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.let_go, self.commits = threading.Event(), threading.Event(), 0

    def commit(self) -> None:
        self.commits += 1
        self.begun.set()
        assert self.let_go.wait(20)
        super().commit()


def test_while_the_engine_commits_notes_are_written_removed_and_found() -> None:
    """Nobody waits for it, and what it takes in is found once: before, meanwhile and afterwards."""
    engine = HeldEngine()
    index = SearchIndex(engine)

    def found() -> list[list[str]]:
        return [[hit.path for hit in index.search(own(number))] for number in (1, 2, 3)]

    for number in (1, 2):
        index.upsert(facts(f"n{number}.md", note(number)), note(number))
    assert found() == [["n1.md"], ["n2.md"], []]
    committing = threading.Thread(target=index.commit)
    committing.start()
    assert engine.begun.wait(20)
    index.delete("n1.md")
    index.upsert(facts("n3.md", note(3)), note(3))
    assert found() == [[], ["n2.md"], ["n3.md"]]
    engine.let_go.set()
    committing.join()
    assert found() == [[], ["n2.md"], ["n3.md"]]
    index.commit()
    assert found() == [[], ["n2.md"], ["n3.md"]]
    assert len(engine) == 2


def test_a_search_after_a_write_needs_no_commit_of_the_engine() -> None:
    """Not until there is so much that taking it in is quicker than searching it."""
    engine = HeldEngine()
    engine.let_go.set()
    index = SearchIndex(engine)
    for number in range(50):
        index.upsert(facts(f"n{number}.md", note(number)), note(number))
        assert [hit.path for hit in index.search(own(number))] == [f"n{number}.md"]
    assert engine.commits == 0
    for number in range(50, 320):
        index.upsert(facts(f"n{number}.md", "text"), "text")
    assert index.search(own(7))
    assert engine.commits == 1


def test_writes_are_given_to_the_engine_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind the server each write is kept at once; the engine's files, which cost many syncs, follow later."""
    monkeypatch.setattr(feed, "SETTLE_S", float("inf"))
    write_vault(tmp_path, 3)
    engine = HeldEngine()
    engine.let_go.set()
    ctx = make_ctx(tmp_path, search=lambda _: SearchIndex(engine, store=PassageStore(str(tmp_path / "p"))))
    assert recalled(ctx, own(1)) == ["notes/n1.md"]
    commits = engine.commits
    for number in range(10):
        made = call(ctx, "capture", title=own(20 + number), kind="concept", body=f"On {own(30 + number)}.", force=True)
        assert made["action"] == "created"
        ctx.feed.settle()
        assert recalled(ctx, own(30 + number)) == [made["path"]]
    assert engine.commits == commits
    ctx.feed.close()
    assert engine.commits == commits + 1


def test_the_index_of_another_store_is_noticed(tmp_path: Path) -> None:
    """Passages that never were are an error and not an empty answer."""
    engine = TantivyEngine()
    engine.upsert(77, {"body": ["walrus"]})
    engine.commit()
    index = SearchIndex(engine)
    index.upsert(facts("n.md", "walrus"), "walrus")
    with pytest.raises(IndexLost):
        index.search("walrus")


def test_a_second_server_on_one_state_folder_answers_from_memory(tmp_path: Path) -> None:
    """It says so once; neither disturbs the other."""
    write_vault(tmp_path, 5)
    told: list[str] = []
    first, second = opened(tmp_path), opened(tmp_path, notes=told)
    assert recalled(first, own(1)) == recalled(second, own(1)) == ["notes/n1.md"]
    assert len(told) == 1
    assert "memory" in told[0]
    first.feed.close()
    second.feed.close()


def test_an_index_lost_while_it_is_used_is_rebuilt_in_the_same_answer(tmp_path: Path) -> None:
    """The engine fails in the middle of the day; the next question is answered all the same."""
    write_vault(tmp_path, 5)
    ctx = opened(tmp_path)
    for number in range(4):
        def fail(*_: Any) -> Any:
            raise IndexLost("the engine is broken")

        assert recalled(ctx, own(number)) == [f"notes/n{number}.md"]
        ctx.feed.search._engine.search = fail  # type: ignore[method-assign]
    assert recalled(ctx, own(4)) == ["notes/n4.md"]
    ctx.feed.close()


@pytest.mark.skipif(sys.platform == "win32", reason="limits and signals of POSIX")
def test_a_server_without_room_for_the_index_answers_from_memory(tmp_path: Path) -> None:
    """The disk takes no file of more than 64 kB: every note is found, and the log says why nothing is kept."""
    for number in range(60):
        put(tmp_path, f"notes/n{number}.md", note(number) + f"Filler {number} about the weather. " * 60)
    full = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))"
    with running_server(tmp_path, patch=full) as server:
        assert server.call("echo_recall", query=own(59))["primary"][0]["path"] == "notes/n59.md"
        assert server.call("echo_recall", query=own(0))["primary"][0]["path"] == "notes/n0.md"
        assert any("in memory only" in line for line in server.lines)


@pytest.mark.skipif(sys.platform == "win32", reason="kills by signal")
def test_a_killed_server_has_all_notes_at_once_when_it_is_back(tmp_path: Path) -> None:
    """Also the note captured a moment before; the first question after the start needs no building."""
    write_vault(tmp_path, 10)
    with running_server(tmp_path) as server:
        made = server.call("echo_capture", title="Sea cow", kind="concept", body="The manatee grazes.")
        assert server.call("echo_recall", query="manatee grazes")["primary"][0]["path"] == made["path"]
        server.process.kill()
        server.process.wait()
    with running_server(tmp_path, ready=False) as server:
        assert server.call("echo_recall", query="manatee grazes")["primary"][0]["path"] == made["path"]
        assert server.call("echo_recall", query=own(9))["primary"][0]["path"] == "notes/n9.md"


def test_the_engine_is_a_setting(tmp_path: Path) -> None:
    """`rank-bm25` answers like tantivy; another word is refused by name."""
    write_vault(tmp_path, 5)
    with running_server(tmp_path, ECHO_RECALL_ENGINE=PLAIN) as server:
        assert server.call("echo_recall", query=own(4))["primary"][0]["path"] == "notes/n4.md"
    env = environment(tmp_path / "vault", tmp_path / "state", ECHO_RECALL_ENGINE="lucene")
    refused = spawned([sys.executable, "-m", "echo_mcp", "serve"], env, tmp_path, tmp_path)
    assert refused.process.wait(30) == 64
    refused.stop()
    assert "ECHO_RECALL_ENGINE" in "\n".join(refused.lines)
