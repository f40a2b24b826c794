"""Two machines with a queue each, on one vault: each keeps its own order, and none overwrites the other (INV5)."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import echo
import pytest
from echo_bootstrap import bootstrap_op
from opsfixture import INSTANT, ZONE, get, make_ctx, put


@pytest.fixture
def machines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """`call(name, words)` on a machine of that name; the vault is away until `back()`."""
    bootstrap_op(ctx=make_ctx(tmp_path))
    put(tmp_path, "areas/business/list.md", "# List\n\n## Plan\n\nold\n\n## Log\n")

    def call(name: str, *words: str) -> dict[str, Any]:
        environ = {"ECHO_BASE": str(tmp_path / "vault"), "ECHO_STATE_DIR": str(tmp_path / name), "ECHO_TZ": ZONE,
                   "ECHO_CLOCK": INSTANT}
        echo.main([*words, "--json"], environ)
        return dict(json.loads(capsys.readouterr().out))

    for name in ("server", "cli"):
        call(name, "load")
    (tmp_path / "vault").rename(tmp_path / "away")
    return call, lambda: (tmp_path / "away").rename(tmp_path / "vault"), tmp_path


def test_lines_that_waited_on_two_machines_all_arrive_each_machines_in_its_order(machines: Any) -> None:
    """What a machine writes when the vault is back comes behind what it had waiting, wherever the other's lines go."""
    call, back, folder = machines
    for turn in (1, 2):
        for name in ("server", "cli"):
            assert call(name, "append", "areas/business/list.md", f"- {name} {turn}")["queued"]
    back()
    assert call("cli", "append", "areas/business/list.md", "- cli 3")["action"] == "appended"
    assert call("server", "append", "areas/business/list.md", "- server 3")["action"] == "appended"
    lines = [line for line in get(folder, "areas/business/list.md").splitlines() if line.startswith("- ")]
    assert lines == ["- cli 1", "- cli 2", "- cli 3", "- server 1", "- server 2", "- server 3"]


def test_a_replacement_that_waited_never_takes_the_place_of_a_newer_text_unseen(machines: Any) -> None:
    """The other machine wrote first when the vault was back; its text is still there, or kept as a version."""
    call, back, folder = machines
    assert call("server", "patch", "areas/business/list.md", "replace", "heading", "Plan", "from the server")["queued"]
    back()
    assert call("cli", "patch", "areas/business/list.md", "replace", "heading", "Plan", "from the shell")["ok"]
    call("server", "flush")
    text = get(folder, "areas/business/list.md")
    if "from the shell" not in text:
        versions = call("server", "history", "areas/business/list.md")["versions"]
        kept = [call("server", "restore", "areas/business/list.md", version["id"])["diff"] for version in versions]
        assert any("+from the shell" in diff for diff in kept)
