"""GET /metrics on the broker's own loop: as much HTTP as a scrape needs.

In: metrics, an address. Out: an asyncio server; its sockets tell the port when 0 was asked for. Requests,
their number and their time are bounded; long answers are written piece by piece, so that clients of the
broker do not wait.
"""

from __future__ import annotations

import asyncio

from barnabas.broker.metrics.families import CONTENT_TYPE
from barnabas.broker.metrics.metrics import Metrics

REQUEST_BYTES_MAX = 8192
REQUEST_SECONDS_MAX = 5.0
CONNECTIONS_MAX = 16  # that are answered
REFUSED_MAX = 16  # more that hear that they are too many; all others are closed unread
BACKLOG = 16
LINES_PER_PIECE = 256


async def serve_metrics(metrics: Metrics, host: str, port: int) -> asyncio.Server:
    """Listen and answer until the returned server is closed; OSError when the address cannot be bound."""
    open_connections = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal open_connections
        if open_connections >= CONNECTIONS_MAX + REFUSED_MAX:
            writer.transport.abort()
            return
        open_connections += 1
        try:
            async with asyncio.timeout(REQUEST_SECONDS_MAX):
                await one_request(metrics, reader, writer, crowded=open_connections > CONNECTIONS_MAX)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # a scraper that went away, was too slow or talked too much: nobody to answer
        finally:
            open_connections -= 1
            writer.close()

    return await asyncio.start_server(answer, host, port, limit=REQUEST_BYTES_MAX, backlog=BACKLOG)


async def one_request(
    metrics: Metrics, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, crowded: bool
) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    method, _, rest = head.partition(b" ")
    path = rest.split(b" ", 1)[0].split(b"?", 1)[0]
    if crowded:
        status, body = "503 Service Unavailable", b"Too many scrapes at a time.\n"
    elif path not in (b"/metrics", b"/"):
        status, body = "404 Not Found", b"Metrics are at /metrics.\n"
    elif method not in (b"GET", b"HEAD"):
        status, body = "405 Method Not Allowed", b"Only GET and HEAD.\n"
    else:
        status, body = "200 OK", await render(metrics)
    kind = CONTENT_TYPE if status.startswith("200") else "text/plain; charset=utf-8"
    writer.write(
        f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
        "Connection: close\r\n\r\n".encode()
    )
    if method != b"HEAD":
        writer.write(body)
    await writer.drain()


async def render(metrics: Metrics) -> bytes:
    """The text of one scrape, made in pieces with the loop free in between."""
    pieces: list[str] = []
    lines = 0
    now_ms = int(asyncio.get_running_loop().time() * 1000)
    for family in metrics.families(now_ms):
        for line in family.lines():
            pieces.append(line)
            lines += 1
            if lines % LINES_PER_PIECE == 0:
                await asyncio.sleep(0)
    return "".join(pieces).encode()
