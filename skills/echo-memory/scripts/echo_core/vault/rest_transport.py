"""HTTP to the Local REST API: the seam, and a transport of the standard library (spec 6.1).

The transport sends one request and answers with what came back, whole. It never follows a redirect, never asks for
compression, ignores the environment's proxies, reads no more than it is told to, and is done at the deadline.
"""
from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
from typing import Dict, List, Mapping, NamedTuple, Optional

from echo_core.errors import EchoError, Misconfigured, VaultBadResponse, VaultTls, VaultUnreachable
from echo_core.vault.rest_address import Address
from echo_core.vault.rest_socket import Connection, tls_context

IDLE_S = 4.0
"""A connection that was idle for longer is not used again: plugins before 4.0.3 close it after 5 seconds."""
MOST_IDLE = 16
_CHUNK = 256 * 1024

PORTS = "Port 27124 speaks https, port 27123 http: check ECHO_BASE."
PLAIN = f"Try again. When it never answers, the port may speak https where ECHO_BASE says http. {PORTS}"
"""What to do about a connection in the clear that broke: a port for https just hangs up."""


class Answer(NamedTuple):
    """A whole HTTP answer; header names are lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Transport:
    """The seam. Implementations are thread-safe."""

    def send(self, method: str, target: str, headers: Mapping[str, str], body: Optional[bytes], deadline: float,
             limit: int, fresh: bool = False) -> Answer:
        """Send one request, once, and return its whole answer.

        target: path and query, encoded. deadline: monotonic seconds. limit: most bytes of body. fresh: on a new
        connection. Raises VaultUnreachable with `reason` refused, dns, timeout or reset, VaultTls and
        VaultBadResponse; after timeout and reset the request may have had its effect.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Let go of all connections."""


class HttpTransport(Transport):
    """A pool of http.client connections. ca_file: PEM with the CA or certificate of an https vault; "" the system's.

    Raises Misconfigured when ca_file cannot be used.
    """

    def __init__(self, address: Address, ca_file: str = "") -> None:
        self._address = address
        self._lock = threading.Lock()
        self._idle: List[Connection] = []
        self._tls = _context(ca_file) if address.scheme == "https" else None

    def send(self, method: str, target: str, headers: Mapping[str, str], body: Optional[bytes], deadline: float,
             limit: int, fresh: bool = False) -> Answer:
        connection = self._connection(fresh)
        connection.deadline = deadline
        try:
            answer = _exchange(connection, method, self._address.prefix + target, self._dressed(headers), body, limit)
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise _translate(error, self._tls is not None) from None
        except BaseException:
            connection.close()
            raise
        self._put_back(connection)
        return answer

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _dressed(self, headers: Mapping[str, str]) -> Dict[str, str]:
        return {"Host": self._address.host_header, "Accept-Encoding": "identity", **headers}

    def _connection(self, fresh: bool) -> Connection:
        """An idle connection that is surely alive, else a new one; fresh: drop the idle ones, they may be dead too."""
        if fresh:
            self.close()
        with self._lock:
            while self._idle:
                connection = self._idle.pop()
                if time.monotonic() - connection.idle_since < IDLE_S and connection.quiet():
                    return connection
                connection.close()
        return Connection(self._address, self._tls)

    def _put_back(self, connection: Connection) -> None:
        if connection.sock is None:
            return
        connection.idle_since = time.monotonic()
        with self._lock:
            if len(self._idle) < MOST_IDLE:
                self._idle.append(connection)
                return
        connection.close()


def _exchange(connection: Connection, method: str, target: str, headers: Mapping[str, str], body: Optional[bytes],
              limit: int) -> Answer:
    """One request and its answer on a connection, which is closed when it cannot serve another."""
    connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
    for name, value in headers.items():
        connection.putheader(name, value)
    if body is not None:
        connection.putheader("Content-Length", str(len(body)))
    connection.endheaders(body)
    response = connection.getresponse()
    try:
        if connection.ended:
            raise http.client.IncompleteRead(b"")  # the headers themselves are cut off, which http.client lets pass
        fields = {name.lower(): value for name, value in response.getheaders()}
        content = _content(response, fields, limit)
        if response.will_close:
            connection.close()
        return Answer(response.status, fields, content)
    finally:
        response.close()


def _content(response: http.client.HTTPResponse, fields: Mapping[str, str], limit: int) -> bytes:
    if fields.get("content-encoding", "identity").lower() != "identity":
        raise VaultBadResponse("The vault sent a compressed answer that nobody asked for", reason="compressed")
    if response.length is None and not response.chunked:
        raise VaultBadResponse("The vault sent an answer without a length", reason="no-length")
    chunks: List[bytes] = []
    size = 0
    while True:
        chunk = response.read(_CHUNK)
        if not chunk:
            break
        size += len(chunk)
        if size > limit:
            raise VaultBadResponse(f"The vault sent more than {limit // 1024 ** 2} MiB", reason="too-large")
        chunks.append(chunk)
    if response.length:
        raise http.client.IncompleteRead(b"", response.length)
    return b"".join(chunks)


def _context(ca_file: str) -> ssl.SSLContext:
    try:
        return tls_context(ca_file)
    except (OSError, ValueError):
        raise Misconfigured(
            "ECHO_CA_FILE cannot be used as certificates", variable="ECHO_CA_FILE",
            hint="Name a readable PEM file, such as the certificate that the plugin offers for download.",
        ) from None


def _translate(error: Exception, secure: bool) -> EchoError:
    """What a failure of the connection means; names no host. secure: it was to speak https."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return VaultTls(
            f"The vault's certificate was refused: {error.verify_message}", reason="certificate",
            hint="Name its CA or the certificate itself in ECHO_CA_FILE. The plugin's own certificate is valid for "
                 "127.0.0.1 only.",
        )
    if isinstance(error, (socket.timeout, TimeoutError)):
        return VaultUnreachable("The vault did not answer in time", hint="Is Obsidian running?", reason="timeout")
    if isinstance(error, ssl.SSLError) and not isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError)):
        return VaultTls("No secure connection to the vault", reason="handshake",
                        hint=PORTS)
    if isinstance(error, socket.gaierror):
        return VaultUnreachable("The vault's host name is not known", hint="Check ECHO_BASE.", reason="dns")
    if isinstance(error, ConnectionRefusedError):
        return VaultUnreachable("Nothing answers at the vault's address", reason="refused",
                                hint="Start Obsidian with the Local REST API plugin, or check ECHO_BASE.")
    if isinstance(error, (ConnectionError, http.client.IncompleteRead, ssl.SSLError)):
        return VaultUnreachable("The connection to the vault broke", hint="Try again." if secure else PLAIN,
                                reason="reset")
    if isinstance(error, http.client.HTTPException):
        return VaultBadResponse("What answers at the vault's address does not speak HTTP", reason="not-http",
                                hint=PORTS)
    return VaultUnreachable("The vault's address cannot be reached", hint="Check ECHO_BASE and the network.",
                            reason="network")
