"""GET /metrics on the broker's event loop: as much HTTP as a scrape needs.

In: metrics, an address. Out: an asyncio server; its sockets tell the port if 0 was configured. The query may
say `dialect=jmx|strimzi|confluent`, `name[]=NAME` (only these families; repeatable) and `partitions=false`.
The size, the number and the time of requests are bounded. The response is written in pieces
(`runtime.pieces`) and sent as it is made, so that clients of the broker do not wait, and no page is in memory
as a whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter
from urllib.parse import SplitResult, parse_qs, urlsplit

from barnabas.broker.metrics import applications as beside
from barnabas.broker.metrics.applications import Applications, NotServed
from barnabas.broker.metrics.metrics import Metrics
from barnabas.metrics.dialects import DEFAULT, DIALECTS
from barnabas.metrics.exposition import CONTENT_TYPE, Page
from barnabas.runtime.pieces import Pieces, Steps

REQUEST_BYTES_MAX = 8192
REQUEST_SECONDS_MAX = 30.0
HEAD_SECONDS_MAX = 5.0
CONNECTIONS_MAX = 16  # that are served at a time
REFUSED_MAX = 16  # more that get status 503; all others are closed unread
BACKLOG = 16
NAMES_MAX = 500  # of `name[]` and other fields
CHUNK_CHARACTERS = 256 * 1024  # made before the scraper must have read them
TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class PageOptions:
    """The content of a scrape unless its query says something else."""

    dialect: str = DEFAULT
    with_partitions: bool = True


class BadQuery(ValueError):
    """The query of a scrape, and what it may be."""


async def serve_metrics(
    metrics: Metrics,
    host: str,
    port: int,
    pieces: Pieces | None = None,
    options: PageOptions | None = None,
    applications: Applications | None = None,
) -> asyncio.Server:
    """Serve until the returned server is closed. OSError: the address cannot be bound."""
    long_work = pieces if pieces is not None else Pieces(perf_counter)
    shown = options or PageOptions()
    others = applications or Applications({})
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
                served = Served(metrics, long_work, shown, others)
                await one_request(served, reader, writer, crowded=is_crowded)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            writer.transport.abort()  # the scraper disconnected, was too slow or sent too much
        finally:
            open_connections -= 1
            writer.close()

    return await asyncio.start_server(serve, host, port, limit=REQUEST_BYTES_MAX, backlog=BACKLOG)


@dataclass(frozen=True, slots=True)
class Served:
    """All that the port serves."""

    metrics: Metrics
    pieces: Pieces
    options: PageOptions
    applications: Applications


async def one_request(
    served: Served,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    *,
    crowded: bool,
) -> None:
    async with asyncio.timeout(HEAD_SECONDS_MAX):
        head = await reader.readuntil(b"\r\n\r\n")
    method, _, rest = head.partition(b" ")
    target = target_of(rest.split(b" ", 1)[0])
    in_chunks = b" HTTP/1.1\r\n" in head  # they tell the scraper whether it got the whole page
    page = None
    status, body = "", ""
    if target is None:
        status, body = "400 Bad Request", "The target is no path.\n"
    elif not crowded:
        try:
            application = served.applications.find(target.path)
            if application is not None:
                await beside.run(application, head, target, reader, writer)
                return
        except NotServed as error:
            status, body = error.status, str(error)
    if target is None or status:
        pass
    elif crowded:
        status, body = "503 Service Unavailable", "Too many scrapes at a time.\n"
    elif target.path not in ("/metrics", "/"):
        status, body = "404 Not Found", "Metrics are at /metrics.\n"
    elif method not in (b"GET", b"HEAD"):
        status, body = "405 Method Not Allowed", "Only GET and HEAD.\n"
    else:
        try:
            page = page_of(served.metrics, target.query, served.options)
            status, body = "200 OK", ""
        except BadQuery as error:
            status, body = "400 Bad Request", f"{error}\n"
    kind = CONTENT_TYPE if page is not None else TEXT
    length = f"Content-Length: {len(body)}\r\n" if page is None else ""
    if page is not None and in_chunks:
        length = "Transfer-Encoding: chunked\r\n"
    head_text = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{length}Connection: close\r\n\r\n"
    beside.write(writer, head_text.encode())
    if method != b"HEAD":
        beside.write(writer, body.encode())
        if page is not None:
            served.metrics.forget_old_values()
            await send_page(page, served.pieces, writer, in_chunks=in_chunks)
    await writer.drain()


async def send_page(page: Page, pieces: Pieces, writer: asyncio.StreamWriter, *, in_chunks: bool) -> None:
    text = page.parts()
    while chunk := await pieces.run(next_chunk(text)):
        beside.write(writer, b"%x\r\n%b\r\n" % (len(chunk), chunk) if in_chunks else chunk)
        await writer.drain()
    if in_chunks:
        beside.write(writer, b"0\r\n\r\n")


def target_of(text: bytes) -> SplitResult | None:
    """The path and the query of a request; None for what is neither a path nor an address."""
    try:
        return urlsplit(text.decode("latin-1"))
    except ValueError:
        return None


def page_of(metrics: Metrics, query: str, options: PageOptions) -> Page:
    try:
        asked = parse_qs(query, keep_blank_values=True, max_num_fields=NAMES_MAX)
    except ValueError:
        raise BadQuery(f"at most {NAMES_MAX} fields, name[] among them.") from None
    dialect = asked.get("dialect", [options.dialect])[-1]
    if dialect not in DIALECTS:
        raise BadQuery(f"dialect={dialect}: it must be one of {', '.join(DIALECTS)}.")
    partitions = asked.get("partitions", [str(options.with_partitions).lower()])[-1]
    if partitions not in ("true", "false"):
        raise BadQuery(f"partitions={partitions}: it must be true or false.")
    return Page(metrics.registry, dialect, names=asked.get("name[]", ()), with_details=partitions == "true")


def next_chunk(text: Iterator[str]) -> Steps[bytes]:
    """The next bytes of a page; none at its end."""
    parts: list[str] = []
    size = 0
    for part in text:
        parts.append(part)
        size += len(part)
        if size >= CHUNK_CHARACTERS:
            break
        yield
    return "".join(parts).encode()
