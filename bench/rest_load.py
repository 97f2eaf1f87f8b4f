"""Load on a REST proxy: HTTP requests that are made once and sent again and again on a few connections.

In: an address, requests as bytes, seconds. Out: how many responses there were. The client is as light as can
be, so that the proxy is measured: no parsing of responses beyond their length and status.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

Answer = tuple[int, bytes]


def request(method: str, path: str, body: bytes = b"", content: str = "", accept: str = "*/*") -> bytes:
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: {accept}\r\nContent-Length: {len(body)}\r\n"
    )
    if content:
        head += f"Content-Type: {content}\r\n"
    return head.encode() + b"\r\n" + body


class Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def ask(self, data: bytes) -> Answer:
        self._writer.write(data)
        head = await self._reader.readuntil(b"\r\n\r\n")
        status = int(head[9:12])
        lower = head.lower()
        at = lower.find(b"content-length:")
        if at >= 0:
            length = int(lower[at + 15 : lower.index(b"\r\n", at)])
            return status, await self._reader.readexactly(length)
        body = b""
        if b"chunked" in lower:
            while size := int(await self._reader.readline(), 16):
                body += await self._reader.readexactly(size)
                await self._reader.readline()
            await self._reader.readline()
        return status, body

    def close(self) -> None:
        self._writer.close()


async def connect(port: int) -> Connection:
    return Connection(*await asyncio.open_connection("127.0.0.1", port, limit=2**26))


async def repeat(port: int, data: bytes, connections: int, seconds: float) -> float:
    """Requests a second. RuntimeError for a response that is no success."""

    async def worker(connection: Connection, until: float) -> int:
        count = 0
        while time.perf_counter() < until:
            status, body = await connection.ask(data)
            if status != 200:
                raise RuntimeError(f"HTTP {status}: {body[:300]!r}")
            count += 1
        return count

    opened = [await connect(port) for _ in range(connections)]
    try:
        began = time.perf_counter()
        counts = await asyncio.gather(*(worker(each, began + seconds) for each in opened))
        return sum(counts) / (time.perf_counter() - began)
    finally:
        for each in opened:
            each.close()


async def drain(
    port: int, data: bytes, wanted: int, count: Callable[[bytes], int], seconds_max: float
) -> float:
    """Records a second of reads that go on until `wanted` records were read."""
    connection = await connect(port)
    try:
        began = time.perf_counter()
        found = 0
        while found < wanted and time.perf_counter() - began < seconds_max:
            status, body = await connection.ask(data)
            if status != 200:
                raise RuntimeError(f"HTTP {status}: {body[:300]!r}")
            found += count(body)
        return found / (time.perf_counter() - began)
    finally:
        connection.close()
