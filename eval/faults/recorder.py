"""A pytest plugin that writes each finished test into the file FAULTS_RESULTS, so that a long run can go on later."""
from __future__ import annotations

import json
import os

import pytest


class Recorder:
    """One JSON line for each test: `item`, `outcome` (passed, failed, skipped), `seconds`, `figures`, `why`."""

    def __init__(self, file: str, state: str) -> None:
        self._file, self._state = file, state
        self._failed: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failure of any phase; write the line when the test is over."""
        item = report.nodeid.removeprefix("eval/")
        if report.skipped:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
            self._failed.setdefault(item, f"skipped {reason}")
        elif report.failed:
            self._failed[item] = f"failed in {report.when}"
        if report.when != "teardown":
            if report.when == "call":
                self._call = report
            return
        why = self._failed.pop(item, "")
        call = getattr(self, "_call", None)
        figures = dict(call.user_properties) if call is not None and call.nodeid == report.nodeid else {}
        row = {"state": self._state, "item": item, "outcome": why.split(" ")[0] or "passed", "why": why,
               "seconds": round(call.duration, 2) if figures or call is not None else 0.0, "figures": figures}
        with open(self._file, "a", encoding="utf-8") as out:
            out.write(json.dumps(row) + "\n")


def pytest_configure(config: pytest.Config) -> None:
    """Record where the runner asks for it."""
    file = os.environ.get("FAULTS_RESULTS")
    if file:
        config.pluginmanager.register(Recorder(file, os.environ["FAULTS_STATE"]), "faults-recorder")
