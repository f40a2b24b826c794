"""Sockets with a total deadline: a server that sends a byte now and then cannot stretch a request."""
from __future__ import annotations

import io
import queue
import select
import socket
import ssl
import threading
import time
from http.client import HTTPConnection
from typing import Any, Callable, List, Optional, Tuple, cast

from echo_core.vault.rest_address import Address

_SEND_BYTES = 64 * 1024
_Place = Tuple[Any, ...]


class Connection(HTTPConnection):
    """One kept-alive connection.

    deadline: monotonic seconds, set anew before each request. idle_since: when it was put back into the pool.
    ended: whether the other side has closed it.
    """

    def __init__(self, address: Address, tls: Optional[ssl.SSLContext]) -> None:
        super().__init__(address.host, address.port)
        self._address = address
        self._tls = tls
        self.deadline = 0.0
        self.idle_since = 0.0
        self.ended = False

    def quiet(self) -> bool:
        """Whether nothing has arrived while it was idle; what arrives then is its end, or an answer nobody asked for.
        """
        return isinstance(self.sock, _Timed) and self.sock.quiet()

    def connect(self) -> None:
        """Connect to the first address of the host that answers; all of it before the deadline."""
        failure: OSError = OSError("no address")
        for family, kind, protocol, _, place in _resolved(self._address, self.deadline):
            raw = socket.socket(family, kind, protocol)
            try:
                raw.settimeout(_remaining(self.deadline))
                raw.connect(place)
                raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if self._tls is not None:
                    raw = self._tls.wrap_socket(raw, server_hostname=self._address.host)
                self.sock = cast(socket.socket, _Timed(raw, self))
                return
            except OSError as error:
                raw.close()
                if isinstance(error, ssl.SSLError):
                    raise
                failure = error
            except BaseException:
                raw.close()
                raise
        raise failure


class _Timed:
    """What http.client needs of a socket, each step under the connection's deadline.

    Like a real socket it stays open until its readers are closed too: http.client counts on that when an answer is
    the connection's last.
    """

    def __init__(self, raw: socket.socket, owner: Connection) -> None:
        self._raw = raw
        self._owner = owner
        self._users = 1

    def sendall(self, data: bytes) -> None:
        """Send everything before the deadline."""
        view = memoryview(data)
        for start in range(0, len(view), _SEND_BYTES):
            self._raw.settimeout(_remaining(self._owner.deadline))
            self._raw.sendall(view[start:start + _SEND_BYTES])

    def quiet(self) -> bool:
        """Whether there is nothing to read now, not even the end."""
        if hasattr(select, "poll"):
            poll = select.poll()  # knows no limit on the number of descriptors
            poll.register(self._raw, select.POLLIN)
            return not poll.poll(0)
        return not select.select([self._raw], [], [], 0)[0]

    def makefile(self, mode: str) -> io.BufferedReader:
        """A buffered reader of the answer."""
        self._users += 1
        return io.BufferedReader(_TimedReader(self._raw, self._owner, self._left))

    def close(self) -> None:
        """Close the socket as soon as nobody reads from it."""
        self._left()

    def _left(self) -> None:
        self._users -= 1
        if self._users == 0:
            self._raw.close()


class _TimedReader(io.RawIOBase):
    """The reading half. on_close: told once when it is closed."""

    def __init__(self, raw: socket.socket, owner: Connection, on_close: Callable[[], None]) -> None:
        super().__init__()
        self._raw = raw
        self._owner = owner
        self._on_close = on_close

    def close(self) -> None:
        if not self.closed:
            super().close()
            self._on_close()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._raw.settimeout(_remaining(self._owner.deadline))
        size = self._raw.recv_into(buffer)
        self._owner.ended = self._owner.ended or size == 0
        return size


def tls_context(ca_file: str) -> ssl.SSLContext:
    """A context that verifies chain and host name. ca_file: PEM that replaces the system's roots; "" keeps them.

    Raises OSError or ssl.SSLError when the file cannot be used.
    """
    context = ssl.create_default_context(cafile=ca_file or None)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if ca_file:
        # The plugin's own certificate lacks extensions that the strict mode of newer Pythons asks of a CA.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def _remaining(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise socket.timeout("the deadline has passed")
    return left


def _resolved(address: Address, deadline: float) -> List[_Place]:
    """`getaddrinfo` that gives up at the deadline: the system's resolver knows no timeout."""
    try:
        return socket.getaddrinfo(address.host, address.port, 0, socket.SOCK_STREAM, 0, socket.AI_NUMERICHOST)
    except socket.gaierror:
        pass  # a name, not a number
    answers: "queue.Queue[Any]" = queue.Queue()

    def ask() -> None:
        try:
            answers.put(socket.getaddrinfo(address.host, address.port, 0, socket.SOCK_STREAM))
        except OSError as error:
            answers.put(error)

    threading.Thread(target=ask, name="resolve", daemon=True).start()
    try:
        found = answers.get(timeout=_remaining(deadline))
    except queue.Empty:
        raise socket.timeout("the name was not resolved in time") from None
    if isinstance(found, OSError):
        raise found
    return list(found)
