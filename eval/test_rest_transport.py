"""The connection to Obsidian's REST API: deadlines, broken and hostile answers, TLS (spec 6.1)."""
from __future__ import annotations

import contextlib
import datetime
import ipaddress
import socket
import ssl
import threading
import time

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from echo_core.errors import Misconfigured, NotFound, VaultAuth, VaultBadResponse, VaultTls, VaultUnreachable
from echo_core.vault import rest_client
from echo_core.vault.rest import RestVault
from echo_core.vault.rest_address import parse_address
from fakes.olrapi import Olrapi
from restvault import KEY, serving


@pytest.fixture
def rest(tmp_path):
    """A vault with one note and little patience."""
    with serving(tmp_path, timeout_s=1.0) as served:
        (served.folder / "a.md").write_bytes(b"one\n")
        yield served


@contextlib.contextmanager
def raw_server(serve):
    """A port whose connections are handed to `serve`, each in a thread of its own."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def accept():
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    threading.Thread(target=handle, args=(connection,), daemon=True).start()

        def handle(connection):
            with connection, contextlib.suppress(OSError):
                connection.recv(65536)
                serve(connection)

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(10)


def reading(url, timeout_s=0.5):
    """Read a note from a server that is no real vault; returns how long it took and the failure."""
    vault = RestVault(parse_address(url), KEY, timeout_s)
    started = time.monotonic()
    with pytest.raises((VaultUnreachable, VaultBadResponse)) as failure:
        vault.read("a.md")
    vault.close()
    return time.monotonic() - started, failure.value


@pytest.mark.parametrize("fault", ["hang", "hang_after"])
def test_a_hung_vault_is_given_up_at_the_deadline(rest, fault):
    """One second is one second, retries included."""
    rest.api.faults.add(fault)
    started = time.monotonic()
    with pytest.raises(VaultUnreachable) as failure:
        rest.vault.read("a.md")
    assert failure.value.data["reason"] == "timeout"
    assert time.monotonic() - started < 10  # without a deadline it would hang for good


@pytest.mark.parametrize("head", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"])
def test_a_byte_now_and_then_does_not_stretch_the_deadline(head):
    """In the status line, in the headers and in the body."""
    def drip(connection):
        connection.sendall(head)
        while True:
            connection.sendall(b"H")
            time.sleep(0.05)

    with raw_server(drip) as url:
        took, failure = reading(url)
    assert failure.data["reason"] == "timeout"
    assert took < 10  # the drip never ends


def test_a_queue_at_a_hung_vault_ends_with_the_first(rest):
    """Ten edits that wait for their turn do not each wait for the deadline."""
    rest.api.faults.add("hang")
    started = time.monotonic()
    failures = []

    def write(number):
        try:
            rest.vault.write(f"{number}.md", b"x", None)
        except VaultUnreachable as failure:
            failures.append(failure.data["reason"])

    threads = [threading.Thread(target=write, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(failures) == 10
    assert set(failures) <= {"timeout", "busy"}
    assert time.monotonic() - started < 9  # one after the other would take ten


@pytest.mark.parametrize("fault", ["reset_request", "reset_response", "half", "error_before"])
def test_a_broken_read_is_tried_again(rest, fault):
    """On a fresh connection; half an answer is never taken for the note."""
    rest.api.faults.add(fault, times=2, after=20)
    assert rest.vault.read("a.md") == b"one\n"


def test_reads_are_not_tried_for_ever(rest):
    """Three times."""
    rest.api.faults.add("reset_response", after=10)
    with pytest.raises(VaultUnreachable) as failure:
        rest.vault.read("a.md")
    assert failure.value.data["reason"] == "reset"
    assert rest.api.log.count("GET") == 3


def test_a_redirect_is_not_followed(rest, tmp_path):
    """The other host hears nothing, least of all the key."""
    (tmp_path / "other").mkdir()
    with Olrapi(str(tmp_path / "other"), key=KEY) as other:
        rest.api.faults.add("redirect", location=f"{other.url}/vault/a.md")
        for call in (lambda: rest.vault.read("a.md"), lambda: rest.vault.write("b.md", b"x", None), rest.vault.check):
            with pytest.raises(VaultBadResponse) as failure:
                call()
            assert failure.value.data["reason"] == "redirect"
        assert other.log.entries == []


def test_an_endless_body_is_cut(rest, monkeypatch):
    """At the size limit, long before memory or patience end."""
    monkeypatch.setattr(rest_client, "MAX_FILE_BYTES", 1024 * 1024)
    rest.api.faults.add("endless")
    with pytest.raises(VaultBadResponse) as failure:
        rest.vault.read("a.md")
    assert failure.value.data["reason"] == "too-large"


def test_compression_is_not_asked_for_and_not_unpacked(rest):
    """A bomb stays packed."""
    rest.api.faults.add("gzip_bomb", size=1 << 24)
    with pytest.raises(VaultBadResponse) as failure:
        rest.vault.read("a.md")
    assert failure.value.data["reason"] == "compressed"
    assert rest.transport.sent[0][2].get("Accept-Encoding") is None


def test_an_answer_without_a_length_is_no_note():
    """Nobody could tell whether all of it arrived."""
    def close_delimited(connection):
        connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Disposition: attachment; filename="a.md"\r\n\r\nhalf')

    with raw_server(close_delimited) as url:
        assert reading(url)[1].data["reason"] == "no-length"


def test_something_else_on_the_port_is_named_as_such(rest):
    """No HTTP at all, or HTTP of another program."""
    rest.api.faults.add("garbage")
    with pytest.raises(VaultBadResponse):
        rest.vault.read("a.md")

    def other_program(connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    with raw_server(other_program) as url:
        vault = RestVault(parse_address(url), KEY, 0.5)
        with contextlib.closing(vault), pytest.raises(VaultBadResponse) as failure:
            vault.check()
        assert failure.value.data["reason"] == "not-the-api"


@pytest.mark.parametrize("body", [b"[" * 100_000, b"nonsense", b"[1]", b'{"files": [1]}', b'{"files": {}}', b"\xff"])
def test_garbled_json_is_a_bad_response(body):
    """Whatever it is, it is neither a crash nor an empty folder."""
    def serve(connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    with raw_server(serve) as url:
        vault = RestVault(parse_address(url), KEY, 0.5)
        with contextlib.closing(vault), pytest.raises(VaultBadResponse):
            vault.list_folder("")


def test_a_name_that_does_not_resolve_is_told_apart(monkeypatch):
    """And a resolver that hangs does not hang us."""
    def unknown(host, port, *rest):
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert reading("http://vault.invalid:27123")[1].data["reason"] == "dns"
    asked = threading.Event()

    def hanging(host, port, family=0, kind=0, protocol=0, flags=0):
        if flags & socket.AI_NUMERICHOST:
            raise socket.gaierror(socket.EAI_NONAME, "not a number")
        asked.wait(10)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", hanging)
    took, failure = reading("http://vault.invalid:27123", 0.3)
    asked.set()
    assert failure.data["reason"] == "timeout"
    assert took < 8  # the resolver would take ten


def test_proxies_of_the_environment_are_ignored(rest, monkeypatch):
    """The vault is asked itself."""
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert rest.vault.read("a.md") == b"one\n"


def test_a_connection_that_the_vault_has_closed_serves_no_write(rest):
    """Obsidian was restarted: a write that nobody may repeat is not wasted on a dead socket."""
    assert rest.vault.read("a.md") == b"one\n"
    rest.api.drop_connections()
    rest.vault.delete("a.md", b"one\n")
    assert rest.api.log.count("DELETE") == 1
    assert not (rest.folder / "a.md").exists()


def test_many_threads_share_the_connections(rest):
    """Answers never get mixed up."""
    for number in range(20):
        (rest.folder / f"{number}.md").write_bytes(b"%d" % number)
    found = dict(rest.vault.read_many([f"{number}.md" for number in range(20)] * 5))
    assert found == {f"{number}.md": b"%d" % number for number in range(20)}


@pytest.mark.parametrize("base", [
    "http://", "https://user:pw@host", "http://host:99999", "http://host?x=1", "http://host/#a", "ftp://host",
    "http://ho st", "http://host/ö", "http://[::1",
    "http://127.0.0.1:27123/vault/", "http://127.0.0.1:27123/Vault", "https://h/proxy/vault/notes",
    "http://127.0.0.1:27123/search",
])
def test_an_address_that_cannot_be_used_is_refused_without_repeating_it(base):
    """It may hold a password."""
    with pytest.raises(Misconfigured) as refusal:
        parse_address(base)
    assert refusal.value.data["variable"] == "ECHO_BASE"
    assert base not in refusal.value.message


def test_an_address_may_have_a_path_and_ipv6():
    """As behind a reverse proxy."""
    address = parse_address("HTTPS://[::1]:27124/obsidian/")
    assert address == ("https", "::1", 27124, "/obsidian")
    assert address.host_header == "[::1]:27124"
    assert parse_address("https://vault.example").host_header == "vault.example"


def certificate(folder, *names):
    """A self-signed certificate like the plugin's: (PEM file, server context)."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Obsidian Local REST API")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
        .serial_number(1).not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=False)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(name)) for name in names]),
                       critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = made.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                serialization.NoEncryption())
    (folder / "cert.pem").write_bytes(pem)
    (folder / "both.pem").write_bytes(pem + private)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(str(folder / "both.pem"))
    return str(folder / "cert.pem"), context


def test_the_plugins_certificate_is_accepted_only_when_it_is_named(tmp_path):
    """With ECHO_CA_FILE all works; without it nothing is sent, and there is no fallback."""
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault/a.md").write_bytes(b"one\n")
    ca_file, context = certificate(tmp_path, "127.0.0.1")
    with Olrapi(str(tmp_path / "vault"), key=KEY, tls=context) as api:
        trusting = RestVault(parse_address(api.url), KEY, 5.0, ca_file)
        trusting.check()
        assert trusting.read("a.md") == b"one\n"
        assert trusting.describe()["tls"] == "verified"
        trusting.close()
        api.log.clear()
        with pytest.raises(VaultTls) as refusal:
            RestVault(parse_address(api.url), KEY, 5.0).read("a.md")
        assert refusal.value.data["reason"] == "certificate"
        assert api.log.entries == []


def test_a_certificate_of_another_host_is_refused(tmp_path):
    """The plugin's own names 127.0.0.1 only."""
    (tmp_path / "vault").mkdir()
    ca_file, context = certificate(tmp_path, "192.0.2.1")
    with Olrapi(str(tmp_path / "vault"), key=KEY, tls=context) as api, pytest.raises(VaultTls) as refusal:
        RestVault(parse_address(api.url), KEY, 5.0, ca_file).read("a.md")
    assert refusal.value.data["reason"] == "certificate"


def test_https_to_a_plain_port_is_tls_trouble(rest):
    """The answer says which port speaks what; nothing goes out in the clear."""
    with pytest.raises((VaultTls, VaultUnreachable)) as failure:
        RestVault(parse_address(rest.api.url.replace("http:", "https:")), KEY, 1.0).read("a.md")
    assert isinstance(failure.value, VaultTls) or failure.value.data["reason"] in ("reset", "timeout")
    assert not any(entry.has_authorization for entry in rest.api.log.entries)


def test_http_to_a_port_for_https_names_https(tmp_path):
    """However the port hangs up: the answer says which port speaks what."""
    (tmp_path / "vault").mkdir()
    _, context = certificate(tmp_path, "127.0.0.1")
    with Olrapi(str(tmp_path / "vault"), key=KEY, tls=context) as api:
        with pytest.raises((VaultBadResponse, VaultUnreachable)) as failure:
            RestVault(parse_address(api.url.replace("https:", "http:")), KEY, 2.0).read("a.md")
        assert failure.value.data["reason"] in ("not-http", "reset")
        assert "https" in failure.value.hint
        assert "ECHO_BASE" in failure.value.hint


def test_a_ca_file_that_is_no_certificate_is_a_setting_at_fault(tmp_path):
    """At once, not at the first request."""
    (tmp_path / "ca.pem").write_text("nothing")
    for name in ("ca.pem", "absent.pem"):
        with pytest.raises(Misconfigured) as refusal:
            RestVault(parse_address("https://127.0.0.1:27124"), KEY, 1.0, str(tmp_path / name))
        assert refusal.value.data["variable"] == "ECHO_CA_FILE"


def test_nothing_to_read_is_not_found_and_no_trouble(rest):
    """404 is an answer."""
    with pytest.raises(NotFound):
        rest.vault.read("b.md")
    rest.vault.check()


def test_a_key_that_is_refused_is_seen_by_the_check(rest):
    """`GET /` answers 200 even then."""
    rest.api.app.key = "another"
    with pytest.raises(VaultAuth):
        rest.vault.check()
