"""GET /metrics on the broker's event loop: as much HTTP as a scrape needs.

In: metrics, an address. Out: an asyncio server; its sockets tell the port if 0 was configured. The size, the
number and the time of requests are bounded. Long responses are built in pieces (`runtime.pieces`), so that
clients of the broker do not wait.
"""

from __future__ import annotations

import asyncio
from time import perf_counter

from barnabas.broker.metrics.families import CONTENT_TYPE
from barnabas.broker.metrics.metrics import Metrics
from barnabas.runtime.pieces import Pieces, Steps

REQUEST_BYTES_MAX = 8192
REQUEST_SECONDS_MAX = 5.0
CONNECTIONS_MAX = 16  # that are served at a time
REFUSED_MAX = 16  # more that get status 503; all others are closed unread
BACKLOG = 16
LINES_A_STEP = 64


async def serve_metrics(
    metrics: Metrics, host: str, port: int, pieces: Pieces | None = None
) -> asyncio.Server:
    """Serve until the returned server is closed. OSError: the address cannot be bound."""
    long_work = pieces if pieces is not None else Pieces(perf_counter)
    open_connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal open_connections
        if open_connections >= CONNECTIONS_MAX + REFUSED_MAX:
            writer.transport.abort()
            return
        open_connections += 1
        try:
            async with asyncio.timeout(REQUEST_SECONDS_MAX):
                is_crowded = open_connections > CONNECTIONS_MAX
                await one_request(metrics, long_work, reader, writer, crowded=is_crowded)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the scraper disconnected, was too slow or sent too much
        finally:
            open_connections -= 1
            writer.close()

    return await asyncio.start_server(serve, host, port, limit=REQUEST_BYTES_MAX, backlog=BACKLOG)


async def one_request(
    metrics: Metrics,
    pieces: Pieces,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    *,
    crowded: bool,
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
        now_ms = int(asyncio.get_running_loop().time() * 1000)
        status, body = "200 OK", await pieces.run(render(metrics, now_ms))
    kind = CONTENT_TYPE if status.startswith("200") else "text/plain; charset=utf-8"
    writer.write(
        f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
        "Connection: close\r\n\r\n".encode()
    )
    if method != b"HEAD":
        writer.write(body)
    await writer.drain()


def render(metrics: Metrics, now_ms: int) -> Steps[bytes]:
    """Build the text of one scrape."""
    text: list[str] = []
    for family in metrics.families(now_ms):
        yield
        for count, line in enumerate(family.lines() if family is not None else (), 1):
            text.append(line)
            if not count % LINES_A_STEP:
                yield
    return "".join(text).encode()
