"""`python -m fakes.olrapi --root DIR --version 5.1.0 --port 0 --key KEY`: the double as a process of its own.

Prints one JSON line `{"port": …, "control": …, "url": …}` and runs until its standard input or the process ends.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading

from fakes.olrapi.control import Control
from fakes.olrapi.dialects import DIALECTS
from fakes.olrapi.race import Race
from fakes.olrapi.server import Olrapi


def main() -> None:
    """Serve until SIGTERM or Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m fakes.olrapi", description=__doc__)
    parser.add_argument("--root", required=True, help="the vault folder")
    parser.add_argument("--version", default="5.1.0", choices=sorted(DIALECTS))
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--control-port", type=int, default=0)
    parser.add_argument("--key", default="KEY")
    parser.add_argument("--race-seconds", type=float, default=0.0, help="how long the gap of a write stays open")
    parser.add_argument("--no-race", action="store_true", help="close the gap of a write")
    values = parser.parse_args()
    race = Race(not values.no_race, values.race_seconds)
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    with (
        Olrapi(values.root, values.version, values.key, values.port, race=race) as server,
        Control(server, values.control_port) as control,
    ):
        sys.stdout.write(json.dumps({"port": server.port, "control": control.port, "url": server.url}) + "\n")
        sys.stdout.flush()
        ended.wait()


if __name__ == "__main__":
    main()
