"""One client connection: requests in, answers out, and the faults that break either."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from typing import TYPE_CHECKING

from fakes.olrapi import breakage
from fakes.olrapi.faults import AFTER_EFFECT, BEFORE_EFFECT, BEFORE_READING, DURING, Fault
from fakes.olrapi.http1 import REASONS, Answer, BadRequest, Request, read_body, read_head, wire
from fakes.olrapi.replies import NoAnswer
from fakes.olrapi.requestlog import Entry

if TYPE_CHECKING:
    from fakes.olrapi.server import Olrapi

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def serve(server: Olrapi, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer requests until the client or a fault ends the connection."""
    try:
        while await _one(server, reader, writer):
            continue
    except BadRequest as bad:
        writer.write(f"HTTP/1.1 {bad.status} {REASONS[bad.status]}\r\nConnection: close\r\n\r\n".encode())
    except (ConnectionError, asyncio.IncompleteReadError, TimeoutError):
        pass  # the client is gone, or was idle for too long
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError, asyncio.CancelledError, TimeoutError):
            await asyncio.wait_for(writer.wait_closed(), 1)


async def _one(server: Olrapi, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """One request and its answer; False when the connection is over."""
    request = await asyncio.wait_for(read_head(reader), server.app.dialect.idle_seconds)
    if request is None:
        return False
    entry = server.log.add(Entry(request.method, request.path, "authorization" in request.headers))
    if fault := server.faults.due(request.method, request.path, BEFORE_READING):
        entry.fault = fault.kind
        await read_body(reader, request, max(0, fault.after - request.head_size))
        reset(writer)
        return False
    if request.header("expect").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    await read_body(reader, request)
    if fault := server.faults.due(request.method, request.path, BEFORE_EFFECT):
        entry.fault = fault.kind
        answer = await breakage.before(server, fault, (reader, writer))
        if answer is not None:
            return await _send(writer, request, answer, entry)
        if fault.kind not in ("slow", "wrong_key"):
            return False
    return await _effect(server, (reader, writer), request, entry)


async def _effect(server: Olrapi, streams: Streams, request: Request, entry: Entry) -> bool:
    """Let the request take effect, then send the answer or break it."""
    reader, writer = streams
    fault = server.faults.due(request.method, request.path, DURING)
    kind = fault.kind if fault else ""
    try:
        answer = await server.app.answer(
            request, kind == "cold", kind == "ignore_case", kind == "phantom",
            key="\0changed" if entry.fault == "wrong_key" else None,
        )
    except NoAnswer:
        await breakage.until_gone(reader)
        return False
    entry.fault = entry.fault or kind
    entry.dropped = answer.dropped
    after = server.faults.due(request.method, request.path, AFTER_EFFECT)
    if after is None:
        return await _send(writer, request, answer, entry)
    entry.fault = after.kind
    return await _broken(server, after, streams, (request, answer, entry))


async def _broken(
    server: Olrapi, fault: Fault, streams: Streams, exchange: tuple[Request, Answer, Entry]
) -> bool:
    """Break an answer whose effect is done."""
    reader, writer = streams
    request, answer, entry = exchange
    if fault.kind == "hang_after":
        await breakage.until_gone(reader, server.faults, fault)
        return False
    if fault.kind == "error_after":
        return await _send(writer, request, breakage.error(fault), entry)
    data = wire(answer, head_only=request.method == "HEAD")
    half = len(data) - (len(answer.body) + 1) // 2 if answer.body else len(data) // 2
    writer.write(data[: half if fault.after < 0 else fault.after])
    await writer.drain()
    if fault.kind == "reset_response":
        reset(writer)
    return False


async def _send(writer: asyncio.StreamWriter, request: Request, answer: Answer, entry: Entry) -> bool:
    entry.status = answer.status
    writer.write(wire(answer, request.keep_alive, request.method == "HEAD"))
    await writer.drain()
    return request.keep_alive


def reset(writer: asyncio.StreamWriter) -> None:
    """Close with a TCP reset instead of a farewell."""
    sock: socket.socket | None = writer.get_extra_info("socket")
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
