"""What a fault does in place of an honest answer."""

from __future__ import annotations

import asyncio
import contextlib
import zlib
from typing import TYPE_CHECKING

from fakes.olrapi.faults import Fault, Faults
from fakes.olrapi.http1 import Answer

if TYPE_CHECKING:
    from fakes.olrapi.server import Olrapi

PIECE = b"x" * 65536
POLL_SECONDS = 0.02


async def before(
    server: Olrapi, fault: Fault, streams: tuple[asyncio.StreamReader, asyncio.StreamWriter]
) -> Answer | None:
    """The answer a fault gives before any effect; None when it gave none, or when the request goes on (`slow`)."""
    reader, writer = streams
    if fault.kind == "hang":
        await until_gone(reader, server.faults, fault)
    elif fault.kind == "slow":
        await asyncio.sleep(fault.seconds)
    elif fault.kind == "error_before":
        return error(fault)
    elif fault.kind == "redirect":
        return Answer(fault.status or 307, {"location": fault.location, "content-length": "0"})
    elif fault.kind == "gzip_bomb":
        return bomb(fault.size)
    elif fault.kind == "endless":
        await _endless(server.faults, fault, writer)
    elif fault.kind == "garbage":
        writer.write(b"\x16\x03\x01 this is not HTTP\r\n\r\n")
        await writer.drain()
    return None


def error(fault: Fault) -> Answer:
    """A 5xx with a body that is no JSON, as from a proxy in between."""
    body = b"upstream is not well\n"
    headers = {"content-type": "text/plain", "content-length": str(len(body))}
    return Answer(fault.status or 503, headers, body)


def bomb(size: int) -> Answer:
    """A small answer that unpacks to `size` bytes."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    zeros = bytes(1 << 20)
    parts = [packer.compress(zeros) for _ in range(size >> 20)]
    body = b"".join([*parts, packer.compress(zeros[: size & ((1 << 20) - 1)]), packer.flush()])
    return Answer(200, {
        "content-type": "text/markdown; charset=utf-8", "content-encoding": "gzip", "content-length": str(len(body)),
    }, body)


async def _endless(faults: Faults, fault: Fault, writer: asyncio.StreamWriter) -> None:
    """A chunked body that ends only when the client goes or the fault is cleared."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/markdown; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n")
    while faults.is_on(fault):
        writer.write(b"%x\r\n%s\r\n" % (len(PIECE), PIECE))
        await writer.drain()
        await asyncio.sleep(0)


async def until_gone(reader: asyncio.StreamReader, faults: Faults | None = None, fault: Fault | None = None) -> None:
    """Say nothing until the client closes or the fault is cleared."""
    while faults is None or fault is None or faults.is_on(fault):
        with contextlib.suppress(TimeoutError):
            if not await asyncio.wait_for(reader.read(1), POLL_SECONDS):
                return
