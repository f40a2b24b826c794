"""The double of the Local REST API races and breaks as tests tell it to, and says that it did."""

from __future__ import annotations

import gzip
import http.client
import json
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.olrapi import Olrapi

NOTE = "/vault/a.md"
TEXT = {"Content-Type": "text/markdown; charset=utf-8"}
WAIT_SECONDS = 0.3
Reply = tuple[int, dict[str, str], bytes]


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Olrapi]:
    """A double over a vault with one note."""
    (tmp_path / "a.md").write_text("one\n")
    with Olrapi(str(tmp_path)) as server:
        yield server


def call(api: Olrapi, method: str, path: str = NOTE, body: str | None = None, seconds: float = 10.0) -> Reply:
    """One request with the key; raises what http.client raises."""
    connection = http.client.HTTPConnection(api.host, api.port, timeout=seconds)
    try:
        headers = {"Authorization": f"Bearer {api.app.key}", **(TEXT if body is not None else {})}
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def note(api: Olrapi) -> str:
    """The note as it is on disk."""
    return (Path(api.app.root) / "a.md").read_text()


def append_all(api: Olrapi, count: int) -> int:
    """Append lines from as many clients at once; how many are in the note afterwards."""
    threads = [threading.Thread(target=call, args=(api, "POST", NOTE, f"line {number}\n")) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return note(api).count("line ")


def test_parallel_appends_lose_acknowledged_lines(api: Olrapi) -> None:
    """While the gap is open, one append overwrites another."""
    api.race.seconds = 0.05
    assert append_all(api, 12) < 12


def test_appends_with_the_race_switched_off_lose_nothing(api: Olrapi) -> None:
    """Without the gap every line arrives, so a loss is the race's work."""
    api.race.enabled = False
    assert append_all(api, 12) == 12


def test_a_put_overwrites_what_another_writer_wrote_in_its_gap(api: Olrapi) -> None:
    """PUT compares nothing; the other writer's text is gone."""
    seen = []

    def write_between(method: str, path: str) -> None:
        seen.append((method, path))
        (Path(api.app.root) / path).write_text("someone else\n")

    api.race.between = write_between
    assert call(api, "PUT", body="two\n")[0] == 204
    assert seen == [("PUT", "a.md")]
    assert note(api) == "two\n"


@pytest.mark.parametrize(("kind", "status", "after"), [("error_before", 503, "one\n"), ("error_after", 503, "two\n")])
def test_a_5xx_comes_before_or_after_the_effect(api: Olrapi, kind: str, status: int, after: str) -> None:
    """The same answer, with and without the write."""
    fault = api.faults.add(kind, method="PUT", times=1)
    assert call(api, "PUT", body="two\n")[0] == status
    assert note(api) == after
    assert fault.fired == api.faults.fired(kind) == 1
    assert call(api, "PUT", body="three\n")[0] == 204


@pytest.mark.parametrize("kind", ["hang", "hang_after"])
def test_a_hung_request_gets_no_answer_until_the_fault_is_cleared(api: Olrapi, kind: str) -> None:
    """The client's own deadline ends the wait; afterwards the server works."""
    api.faults.add(kind)
    with pytest.raises(TimeoutError):
        call(api, "PUT", body="two\n", seconds=WAIT_SECONDS)
    assert note(api) == ("one\n" if kind == "hang" else "two\n")
    api.faults.clear()
    assert call(api, "GET")[0] == 200


@pytest.mark.parametrize(("kind", "after"), [("reset_request", "one\n"), ("reset_response", "two\n")])
def test_a_reset_happens_in_the_request_or_in_the_answer(api: Olrapi, kind: str, after: str) -> None:
    """A reset of the request has no effect, one of the answer comes after it."""
    api.faults.add(kind, after=10, times=1)
    with pytest.raises((ConnectionError, http.client.HTTPException)):
        call(api, "PUT", body="two\n")
    assert note(api) == after


def test_half_an_answer_ends_in_the_middle_of_the_body(api: Olrapi) -> None:
    """Content-Length promises more than comes."""
    api.faults.add("half", times=1)
    with pytest.raises(http.client.IncompleteRead) as caught:
        call(api, "GET")
    assert caught.value.partial == b"on"


def test_a_phantom_put_says_204_and_writes_nothing(api: Olrapi) -> None:
    """Only a read back shows it."""
    api.faults.add("phantom", times=1)
    assert call(api, "PUT", body="two\n")[0] == 204
    assert note(api) == "one\n"


def test_a_cold_cache_hides_notes_from_reads_and_lists_but_not_from_writes(api: Olrapi) -> None:
    """A client that takes the 404 for a licence to create loses the note."""
    fault = api.faults.add("cold")
    assert call(api, "GET")[0] == 404
    assert json.loads(call(api, "GET", "/vault/")[2]) == {"files": []}
    assert call(api, "PUT", body="anew\n")[0] == 204
    assert note(api) == "anew\n"
    api.faults.remove(fault)
    assert call(api, "GET")[0] == 200


def test_names_of_any_case_lead_to_the_same_file(api: Olrapi) -> None:
    """As on a disk that ignores case: read in any spelling, created anew in none."""
    api.faults.add("ignore_case")
    assert call(api, "GET", "/vault/A.md")[2] == b"one\n"
    assert call(api, "PUT", "/vault/A.md", "two\n")[0] == 500
    assert note(api) == "one\n"


def test_a_redirect_leads_to_another_host_before_any_effect(api: Olrapi) -> None:
    """The request is not carried out."""
    api.faults.add("redirect", location="http://other-host.invalid/steal", times=1)
    status, headers, _ = call(api, "PUT", body="two\n")
    assert (status, headers["location"], note(api)) == (307, "http://other-host.invalid/steal", "one\n")


def test_a_changed_key_is_401(api: Olrapi) -> None:
    """The client's key stops counting."""
    api.faults.add("wrong_key", times=1)
    assert call(api, "GET")[0] == 401


def test_a_slow_answer_comes_whole_in_the_end(api: Olrapi) -> None:
    """The delay changes nothing else."""
    api.faults.add("slow", seconds=0.05, times=1)
    assert call(api, "GET")[2] == b"one\n"


def test_an_endless_body_outlasts_any_size_cap(api: Olrapi) -> None:
    """More than a note's worth of bytes comes, and then more."""
    api.faults.add("endless")
    connection = http.client.HTTPConnection(api.host, api.port, timeout=10)
    connection.request("GET", NOTE, headers={"Authorization": "Bearer KEY"})
    assert len(connection.getresponse().read(5_000_000)) == 5_000_000
    connection.close()


def test_a_gzip_bomb_is_small_on_the_wire_and_large_unpacked(api: Olrapi) -> None:
    """A client that unpacks without a cap pays for it."""
    api.faults.add("gzip_bomb", size=8_000_000)
    status, headers, body = call(api, "GET")
    assert (status, headers["content-encoding"], len(gzip.decompress(body))) == (200, "gzip", 8_000_000)
    assert len(body) < 20_000


def test_garbage_is_no_http(api: Olrapi) -> None:
    """What answers is not the plugin at all."""
    api.faults.add("garbage", times=1)
    with pytest.raises(http.client.HTTPException):
        call(api, "GET")


def test_a_refusing_server_comes_back_on_the_same_port(api: Olrapi) -> None:
    """As when Obsidian is closed and opened again."""
    port = api.port
    api.refuse()
    with pytest.raises(ConnectionError):
        call(api, "GET")
    api.accept()
    assert (api.port, call(api, "GET")[0]) == (port, 200)


def test_faults_meet_only_the_requests_they_name(api: Olrapi) -> None:
    """Method, path and the number of requests let through first all count."""
    api.faults.add("error_before", method="GET", path="a.md", skip=1, times=1, status=502)
    assert [call(api, "GET", "/vault/")[0], call(api, "GET")[0], call(api, "GET")[0], call(api, "GET")[0]] == [
        200, 200, 502, 200,
    ]
    with pytest.raises(ValueError, match="no fault"):
        api.faults.add("no such thing")


def test_the_log_counts_requests_and_tells_whether_a_key_was_sent(api: Olrapi) -> None:
    """Method, path, Authorization or not, status and fault; never a body or a key."""
    call(api, "GET")
    with urllib.request.urlopen(api.url + "/", timeout=10) as answer:
        assert json.loads(answer.read())["authenticated"] is False
    api.faults.add("error_after", times=1)
    call(api, "PUT", body="two\n")
    assert api.log.as_json() == [
        {"method": "GET", "path": NOTE, "has_authorization": True, "status": 200, "fault": "", "dropped": 0},
        {"method": "GET", "path": "/", "has_authorization": False, "status": 200, "fault": "", "dropped": 0},
        {"method": "PUT", "path": NOTE, "has_authorization": True, "status": 503, "fault": "error_after", "dropped": 1},
    ]
    assert (api.log.count(), api.log.count("GET"), api.log.count("PUT", "a.md")) == (3, 2, 1)
    api.log.clear()
    assert api.log.count() == 0


def ask_control(port: int, method: str, path: str, body: object = None) -> object:
    """One request to the control endpoint."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, method=method)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.loads(answer.read())


def test_a_double_in_its_own_process_is_controlled_over_a_second_port(tmp_path: Path) -> None:
    """It prints its ports, takes faults, tells its log, and ends on SIGTERM."""
    command = [sys.executable, "-m", "fakes.olrapi", "--root", str(tmp_path), "--version", "4.1.7", "--key", "other"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent) as process:
        try:
            assert process.stdout is not None
            ports = json.loads(process.stdout.readline())
            ask_control(ports["control"], "POST", "/faults", {"kind": "redirect", "times": 1})
            connection = http.client.HTTPConnection("127.0.0.1", ports["port"], timeout=10)
            connection.request("GET", "/vault/")
            assert connection.getresponse().status == 307
            connection.close()
            assert ask_control(ports["control"], "GET", "/fired?kind=redirect") == 1
            assert ask_control(ports["control"], "GET", "/requests") == [
                {"method": "GET", "path": "/vault/", "has_authorization": False, "status": 307, "fault": "redirect",
                 "dropped": 0},
            ]
        finally:
            process.terminate()
        assert process.wait(timeout=10) == 0
