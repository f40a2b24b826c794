"""One message to the webhook of `ECHO_NOTIFY_URL`: JSON that Slack-shaped receivers, ntfy and Uptime Kuma take.

The address is the operator's secret: it stands in no log. Redirects are not followed, so the message goes to that
address and no other.
"""
from __future__ import annotations

import base64
import http.client
import json
import socket
import ssl
import threading
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit

TIMEOUT_S = 10.0
"""Total time of one try."""
_KUMA = "/api/push/"


class NotTold(Exception):
    """The message did not arrive; the text says why in a word or a status, never where it should have gone."""


class Webhook:
    """The receiver at `url`, http or https, with a user and password in it if there must be."""

    def __init__(self, url: str) -> None:
        self._url: SplitResult = urlsplit(url)

    @property
    def is_monitor(self) -> bool:
        """Whether it is a push monitor of Uptime Kuma, which wants to hear of good news too."""
        return _KUMA in self._url.path

    def send(self, event: str, title: str, text: str, well: bool) -> None:
        """Post one message. event: a word for machines; well: whether nothing is wrong any more. Raises NotTold."""
        body = json.dumps({"event": event, "title": title, "text": text, "message": text,
                           "status": "up" if well else "down"})
        connection = self._connection()
        # The library's time-out is one for each read; a receiver that drips would hold us for hours.
        deadline = threading.Timer(TIMEOUT_S, _cut, [connection])
        deadline.daemon = True
        deadline.start()
        try:
            connection.request("POST", self._target(text, well), body.encode("ascii"), self._headers())
            status = connection.getresponse().status
        except (OSError, http.client.HTTPException, ValueError) as failure:
            raise NotTold(type(failure).__name__) from None
        finally:
            deadline.cancel()
            connection.close()
        if not 200 <= status < 300:
            raise NotTold(f"status {status}")

    def _connection(self) -> http.client.HTTPConnection:
        host = self._url.hostname or ""
        if self._url.scheme == "https":
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(host, self._url.port, timeout=TIMEOUT_S, context=context)
        return http.client.HTTPConnection(host, self._url.port, timeout=TIMEOUT_S)

    def _target(self, text: str, well: bool) -> str:
        """Path and query; a push monitor reads the query and no body."""
        query = self._url.query
        if self.is_monitor:
            kept = [(name, value) for name, value in parse_qsl(query) if name not in ("status", "msg", "ping")]
            query = urlencode([*kept, ("status", "up" if well else "down"), ("msg", text)])
        return (self._url.path or "/") + (f"?{query}" if query else "")

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "User-Agent": "echo-mcp"}
        if self._url.username is not None:
            pair = f"{unquote(self._url.username)}:{unquote(self._url.password or '')}"
            headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode("ascii")
        return headers


def is_webhook(url: str) -> bool:
    """Whether messages can be sent to the address at all."""
    try:
        parts = urlsplit(url)
        return (parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and url.isascii()
                and " " not in url)
    except ValueError:
        return False


def _cut(connection: http.client.HTTPConnection) -> None:
    """End whatever the connection waits for."""
    if connection.sock is not None:
        try:
            connection.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            connection.close()
