"""Walking a vault behind Obsidian's REST API: one search, honest doubts (spec 6.1)."""
from __future__ import annotations

import os

import pytest
from echo_core.catalog.catalog import Catalog
from echo_core.errors import VaultUnreachable
from echo_core.vault import rest_scan
from echo_core.vault.base import Stat
from restvault import serving


@pytest.fixture
def rest(tmp_path):
    """Twenty notes in three folders, and an image."""
    with serving(tmp_path) as served:
        for number in range(20):
            path = served.folder / ("x", "x/y", "z")[number % 3] / f"{number:02}.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"# Note %d\n" % number)
            os.utime(path, ns=(1_700_000_000_123_000_000 + number * 10 ** 9,) * 2)
        (served.folder / "z/picture.png").write_bytes(b"png")
        yield served


def test_a_walk_is_one_request_when_the_other_files_are_known(rest):
    """Sizes and times come with the search; names of other files are asked for once in a while."""
    first = list(rest.vault.walk())
    assert len(first) == 21
    assert first[0] == Stat("x/00.md", 9, 1_700_000_000_123_000_000)
    assert [stat.path for stat in first] == sorted(stat.path for stat in first)
    assert [stat for stat in first if stat.path.endswith(".png")] == [Stat("z/picture.png", 0, 0)]
    rest.api.log.clear()
    assert list(rest.vault.walk()) == first
    assert [(entry.method, entry.path) for entry in rest.api.log.entries] == [("POST", "/search/")]


@pytest.mark.parametrize("status", [404, 500])
def test_without_the_search_the_walk_gives_the_same(rest, status):
    """Folders are listed, notes are asked for one by one; nothing looks changed."""
    first = list(rest.vault.walk())
    rest.api.faults.add("error_before", path="/search/", status=status)
    assert list(rest.vault.walk()) == first


def test_a_search_that_is_too_slow_is_left_alone_for_a_while(tmp_path):
    """A vault that answers everything else is walked by its listings."""
    with serving(tmp_path, timeout_s=0.4) as served:
        served.vault.write("a.md", b"one", None)
        served.api.faults.add("hang", path="/search/")
        assert [stat.path for stat in served.vault.walk()] == ["a.md"]
        served.api.log.clear()
        assert [stat.path for stat in served.vault.walk()] == ["a.md"]
        assert served.api.log.count("POST") == 0


def test_a_hung_vault_is_not_walked_by_other_means(tmp_path):
    """Neither way answers, so the walk says so."""
    with serving(tmp_path, timeout_s=0.3) as served:
        served.api.faults.add("hang")
        with pytest.raises(VaultUnreachable) as failure:
            list(served.vault.walk())
        assert failure.value.data["reason"] == "timeout"


def test_the_catalog_sees_what_changes_and_reads_nothing_else(rest):
    """A changed note, a new one and a deleted one."""
    catalog = Catalog(rest.vault)
    assert len(catalog.refresh().added) == 20
    rest.api.log.clear()
    assert catalog.refresh() == ([], [], [], {})
    assert rest.api.log.count("GET", ".md") == 0
    (rest.folder / "x/00.md").write_bytes(b"# Nota 0\n")  # as long as before
    (rest.folder / "new.md").write_bytes(b"# New\n")
    (rest.folder / "z/02.md").unlink()
    changes = catalog.refresh()
    assert (changes.added, changes.changed, changes.removed) == (["new.md"], ["x/00.md"], ["z/02.md"])
    assert catalog.facts("x/00.md").title == "Nota 0"


def test_a_loading_vault_loses_no_note_of_the_catalog(rest):
    """While the plugin's cache is cold nothing is forgotten."""
    catalog = Catalog(rest.vault)
    catalog.refresh()
    fault = rest.api.faults.add("cold")
    with pytest.raises(VaultUnreachable) as failure:
        catalog.refresh()
    assert failure.value.data["reason"] in ("emptied", "loading")
    assert len(catalog.paths()) == 20
    rest.api.faults.remove(fault)
    assert catalog.refresh().removed == []


def test_many_missing_notes_are_believed_only_after_a_while(rest, monkeypatch):
    """A half loaded vault looks like a folder that somebody deleted."""
    list(rest.vault.walk())
    for path in (rest.folder / "x/y").iterdir():
        path.unlink()
    with pytest.raises(VaultUnreachable) as failure:
        list(rest.vault.walk())
    assert failure.value.data["reason"] == "loading"
    monkeypatch.setattr(rest_scan, "CONFIRM_S", 0.0)
    assert len(list(rest.vault.walk())) == 14


def test_names_that_echo_refuses_are_left_out(rest):
    """Nothing that could not be asked for is promised."""
    (rest.folder / "ends with a dot.").mkdir()
    (rest.folder / "ends with a dot./a.md").write_bytes(b"kept")
    (rest.folder / "back\\slash.md").write_bytes(b"x")
    (rest.folder / ".hidden").mkdir()
    (rest.folder / ".hidden/a.md").write_bytes(b"x")
    assert len(list(rest.vault.walk())) == 22
    assert rest.vault.read("ends with a dot./a.md") == b"kept"
