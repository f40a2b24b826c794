"""Health and doctor: whatever is wrong becomes a row of the report, never an error."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from echo_bootstrap import bootstrap_op
from echo_context import OpContext
from echo_core.errors import VaultUnreachable
from echo_doctor import MOST_VIOLATIONS, doctor_op, health_op
from opsfixture import make_ctx, put, snapshot


def row(answer: dict[str, Any], name: str) -> dict[str, Any]:
    """The check of that name."""
    found = [check for check in answer["checks"] if check["name"] == name]
    assert len(found) == 1
    return dict(found[0])


@pytest.fixture
def ctx(tmp_path: Path) -> OpContext:
    """A context over a vault that was just set up."""
    made = make_ctx(tmp_path)
    bootstrap_op(ctx=made)
    return made


def test_a_new_vault_is_healthy(ctx: OpContext) -> None:
    """Every check is well and a deep look finds nothing."""
    answer = health_op(deep=True, ctx=ctx)
    assert answer["ok"] is True
    assert answer["healthy"] is True
    assert answer["violations"] == []
    assert all(check["ok"] and check["detail"] for check in answer["checks"])


def test_looking_changes_no_byte(ctx: OpContext, tmp_path: Path) -> None:
    """Health is a read."""
    before = snapshot(tmp_path)
    health_op(deep=True, ctx=ctx)
    assert snapshot(tmp_path) == before


def test_a_folder_that_is_gone_is_a_finding(ctx: OpContext, tmp_path: Path) -> None:
    """The report comes although nothing can be read, and every row is there."""
    (tmp_path / "vault").rename(tmp_path / "elsewhere")
    answer = health_op(deep=True, ctx=ctx)
    assert answer["ok"] is True
    assert answer["healthy"] is False
    assert row(answer, "vault")["detail"].startswith("vault-unreachable: ")
    assert row(answer, "clock")["ok"] is True
    assert str(tmp_path) not in str(answer)


def test_a_vault_that_was_never_set_up_says_what_to_run(tmp_path: Path) -> None:
    """The cure stands in the detail."""
    answer = health_op(ctx=make_ctx(tmp_path))
    assert row(answer, "marker") == {"name": "marker", "ok": False, "detail": "the vault has no marker; run bootstrap"}


@pytest.mark.parametrize(("version", "cure"), [("2", "run migrate"), ("4", "update ECHO"), ("x", "run migrate")])
def test_another_schema_version_says_what_to_run(version: str, cure: str, tmp_path: Path) -> None:
    """Older wants migrate, newer wants a newer program."""
    put(tmp_path, "_agent/echo-vault.md", f"---\nschema_version: {version}\n---\n")
    assert row(health_op(ctx=make_ctx(tmp_path)), "marker")["detail"].endswith(cure)


def test_a_corrupt_index_is_a_finding(ctx: OpContext, tmp_path: Path) -> None:
    """The broken file is named, and not touched."""
    put(tmp_path, "_agent/index/entities.json", "{broken")
    answer = health_op(ctx=ctx)
    assert row(answer, "index")["detail"].startswith("index-corrupt: ")
    assert answer["healthy"] is False
    assert snapshot(tmp_path)["_agent/index/entities.json"] == b"{broken"


def test_a_broken_route_map_is_a_finding(ctx: OpContext, tmp_path: Path) -> None:
    """The deep check names it among its findings and goes on with the default routes."""
    put(tmp_path, "_agent/routing.json", "[]")
    answer = health_op(deep=True, ctx=ctx)
    assert row(answer, "routes")["ok"] is False
    assert "route-map-broken" in {found["check"] for found in answer["violations"]}


def test_a_folder_that_cannot_be_read_is_named(ctx: OpContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unreadable place is not an empty place."""
    monkeypatch.setattr(ctx.catalog, "unreadable", lambda: ["resources/people/"])
    check = row(health_op(ctx=ctx), "notes")
    assert check["ok"] is False
    assert check["detail"].endswith("1 place cannot be read: resources/people/")


def test_a_link_out_of_the_vault_is_named(ctx: OpContext, tmp_path: Path) -> None:
    """The link is reported, nothing behind it is read, and the rest of the vault works."""
    (tmp_path / "secret.md").write_text("outside", encoding="utf-8")
    (tmp_path / "vault/link.md").symlink_to(tmp_path / "secret.md")
    check = row(health_op(ctx=ctx), "notes")
    assert check["ok"] is False
    assert "link.md" in check["detail"]


def test_somebody_holding_the_lock_is_shown(ctx: OpContext, tmp_path: Path) -> None:
    """A held lock is no fault; the row says who and until when."""
    lock = '{"holder": "laptop", "acquired": "2026-11-30T14:05:00+01:00", "ttl_s": 30, "token": "x"}\n'
    put(tmp_path, "_agent/locks/index.json", lock)
    assert row(health_op(ctx=ctx), "lock")["detail"] == "held by laptop until 2026-11-30T14:05:30+01:00"


def test_parked_writes_are_unhealthy(ctx: OpContext) -> None:
    """A write that needs a decision must not stay unseen."""
    ctx.queue = lambda: {"depth": 1, "parked": 2, "conflicts": 0}
    answer = health_op(ctx=ctx)
    assert row(answer, "queue") == {"name": "queue", "ok": False, "detail": "1 waiting, 2 parked"}


def test_a_check_that_breaks_is_a_row(ctx: OpContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even an unforeseen failure keeps the report from coming, and its text does not leak."""
    def broken() -> None:
        raise ZeroDivisionError("secret words")

    monkeypatch.setattr(ctx, "routes", broken)
    ctx.details = broken  # type: ignore[assignment]
    answer = health_op(deep=True, ctx=ctx)
    assert row(answer, "routes")["detail"] == "the check itself failed (ZeroDivisionError)"
    assert answer["warnings"] == ["the details could not be collected (ZeroDivisionError)"]
    assert "secret words" not in str(answer)


def test_details_of_the_server_are_passed_on(ctx: OpContext) -> None:
    """Whoever runs the op may add facts."""
    ctx.details = lambda: {"version": "1.0"}
    assert health_op(ctx=ctx)["details"] == {"version": "1.0"}


def test_a_deep_look_counts_what_it_cuts(ctx: OpContext, tmp_path: Path) -> None:
    """A cut is marked, with the full number and the counts of every check."""
    put(tmp_path, "notes.md", "".join(f"[[nowhere {number}]]\n" for number in range(MOST_VIOLATIONS + 5)))
    answer = health_op(deep=True, ctx=ctx)
    assert len(answer["violations"]) == MOST_VIOLATIONS
    assert answer["truncated"] is True
    assert answer["violations_total"] == sum(answer["counts"].values())
    assert answer["counts"]["broken-link"] == MOST_VIOLATIONS + 5


def test_a_malformed_note_is_found_by_name(ctx: OpContext, tmp_path: Path) -> None:
    """A bad note degrades alone: it is named, the others are counted."""
    put(tmp_path, "resources/people/bad.md", "---\ntags: [#abc, def]\n---\n\n# Bad\n")
    found = health_op(deep=True, ctx=ctx)["violations"]
    assert [each["path"] for each in found if each["check"] == "frontmatter-malformed"] == ["resources/people/bad.md"]


def test_doctor_says_which_python_and_format_it_speaks(ctx: OpContext) -> None:
    """What a bug report needs."""
    answer = doctor_op(ctx=ctx)
    assert answer["schema"] == 3
    assert answer["python"].startswith("3.")


def test_doctor_reports_a_vault_that_fails_in_the_middle(ctx: OpContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every check fails on its own."""
    def gone(*args: object) -> None:
        raise VaultUnreachable("the vault went away")

    monkeypatch.setattr(ctx.vault, "read", gone)
    answer = doctor_op(ctx=ctx)
    assert row(answer, "vault")["ok"] is True
    assert row(answer, "marker")["detail"] == "vault-unreachable: the vault went away"
