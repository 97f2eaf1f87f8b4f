"""GET /metrics: scraped over a socket, with bad requests too."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from time import perf_counter
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from barnabas.broker.metrics import Metrics, endpoint, serve_metrics
from barnabas.broker.metrics.applications import Applications
from barnabas.metrics.exposition import LINES_A_STEP, Page
from barnabas.runtime.pieces import Pieces


@asynccontextmanager
async def endpoint_of(metrics: Metrics) -> AsyncIterator[int]:
    server = await serve_metrics(metrics, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await server.wait_closed()


async def ask(port: int, request: bytes) -> tuple[str, str]:
    """Send bytes, read until the other side closes: status line and body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    answer = (await reader.read()).decode()
    writer.close()
    await writer.wait_closed()
    head, _, body = answer.partition("\r\n\r\n")
    return head.split("\r\n")[0], whole(body) if body and "chunked" in head else body


def whole(body: str) -> str:
    """The text of a body that was sent in chunks; its last chunk must be there."""
    parts = []
    while body:
        size, _, rest = body.partition("\r\n")
        if not int(size, 16):
            return "".join(parts)
        parts.append(rest[: int(size, 16)])
        body = rest[int(size, 16) + 2 :]
    raise AssertionError("the page was cut off")


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(scenario())


def test_a_scrape_reads_what_was_counted() -> None:
    async def scenario() -> None:
        metrics = Metrics()
        metrics.topic("orders").bytes_in += 7
        async with endpoint_of(metrics) as port:
            status, body = await ask(port, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        assert status == "HTTP/1.1 200 OK"
        families = {family.name: family for family in text_string_to_metric_families(body)}
        found = {
            tuple(s.labels.items()): s.value
            for s in families["kafka_server_brokertopicmetrics_bytesin"].samples
        }
        assert found == {(): 7.0, (("topic", "orders"),): 7.0}

    run(scenario)


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET /metrics?name[]=x HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK"),
        (b"GET /metrics?dialect=strimzi&partitions=false HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK"),
        (b"GET /metrics?dialect=esperanto HTTP/1.1\r\n\r\n", "HTTP/1.1 400 Bad Request"),
        (b"GET /metrics?partitions=maybe HTTP/1.1\r\n\r\n", "HTTP/1.1 400 Bad Request"),
        (b"HEAD /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK"),
        (b"GET /secrets HTTP/1.1\r\n\r\n", "HTTP/1.1 404 Not Found"),
        (b"POST /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 405 Method Not Allowed"),
        (b"\x00\x00\x00\x10garbage\r\n\r\n", "HTTP/1.1 404 Not Found"),
        (b"GET http://[x/metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 400 Bad Request"),
        (b"GET /metrics?" + b"name[]=x&" * 501 + b" HTTP/1.1\r\n\r\n", "HTTP/1.1 400 Bad Request"),
        (b"A" * (endpoint.REQUEST_BYTES_MAX * 2), ""),
    ],
    ids=[
        "query",
        "dialect",
        "other dialect",
        "not a boolean",
        "head",
        "other path",
        "other method",
        "garbage",
        "no address",
        "many names",
        "endless",
    ],
)
def test_a_request_gets_its_status(request_bytes: bytes, status: str) -> None:
    async def scenario() -> None:
        async with endpoint_of(Metrics()) as port:
            try:
                found, body = await ask(port, request_bytes)
            except ConnectionError:
                found, body = "", ""  # closed while the test was sending
        assert found == status
        if request_bytes.startswith(b"HEAD"):
            assert body == ""

    run(scenario)


def test_a_long_response_is_made_in_steps_and_sent_whole() -> None:
    async def scenario() -> None:
        metrics = Metrics()
        for number in range(5000):
            metrics.topic(f"t{number}").bytes_in += 1
        pauses = sum(1 for _ in Page(metrics.registry).parts())
        assert pauses >= 10 * 5000 // LINES_A_STEP
        async with endpoint_of(metrics) as port:
            _, body = await ask(port, b"GET /metrics HTTP/1.1\r\n\r\n")
            _, old = await ask(port, b"GET /metrics HTTP/1.0\r\n\r\n")
        assert len(body) > 2 * endpoint.CHUNK_CHARACTERS
        assert old == body
        assert body == "".join(Page(metrics.registry).parts())

    run(scenario)


def test_a_scrape_may_ask_for_single_names_in_a_dialect() -> None:
    async def scenario() -> None:
        metrics = Metrics()
        metrics.topic("orders").bytes_in += 7
        name = "kafka_server_brokertopicmetrics_bytesinpersec"
        query = f"GET /metrics?dialect=confluent&name[]={name}&name%5B%5D=other HTTP/1.1\r\n\r\n"
        async with endpoint_of(metrics) as port:
            _, body = await ask(port, query.encode())
        lines = [line for line in body.splitlines() if not line.startswith("#")]
        assert lines == [f"{name} 7", f'{name}{{topic="orders"}} 7']

    run(scenario)


def test_too_many_scrapes_get_status_503() -> None:
    async def scenario() -> None:
        async with endpoint_of(Metrics()) as port:
            waiting = [
                await asyncio.open_connection("127.0.0.1", port) for _ in range(endpoint.CONNECTIONS_MAX)
            ]
            status, _ = await ask(port, b"GET /metrics HTTP/1.1\r\n\r\n")
            for _, writer in waiting:
                writer.close()
                await writer.wait_closed()
        assert status == "HTTP/1.1 503 Service Unavailable"

    run(scenario)


def test_a_silent_connection_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        monkeypatch.setattr(endpoint, "HEAD_SECONDS_MAX", 0.01)
        async with endpoint_of(Metrics()) as port:
            assert await ask(port, b"GET") == ("", "")

    run(scenario)


class SlowPieces(Pieces):
    """Each piece of a page takes a while, as on a machine without a free processor."""

    async def run(self, steps: Any) -> Any:
        await asyncio.sleep(0.05)
        return await super().run(steps)


def test_a_scraper_that_gives_up_within_a_page_is_no_unexpected_error() -> None:
    """Prometheus does so after `scrape_timeout`."""
    uvloop = pytest.importorskip("uvloop", reason="only uvloop refuses to write to a closed connection")
    problems: list[object] = []

    async def scenario() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: problems.append(context))
        metrics = Metrics()
        for number in range(2_000):
            metrics.topic(f"topic-{number}").bytes_in += 1
        server = await serve_metrics(metrics, "127.0.0.1", 0, SlowPieces(perf_counter))
        port = server.sockets[0].getsockname()[1]
        for _ in range(5):
            with socket.create_connection(("127.0.0.1", port)) as scraper:
                scraper.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
                await asyncio.sleep(0.03)
                scraper.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await asyncio.sleep(0.5)
        server.close()
        await server.wait_closed()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(scenario())
    assert problems == []


def test_an_application_whose_reader_has_gone_sees_no_error() -> None:
    """Its log had a traceback for each of them."""
    ended: list[str] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200})
        for _ in range(1_000):
            await send({"type": "http.response.body", "body": b"x" * 100_000, "more_body": True})
            await asyncio.sleep(0)
        ended.append("whole")

    async def scenario() -> None:
        applications = Applications({"/beside": lambda: application})
        server = await serve_metrics(Metrics(), "127.0.0.1", 0, applications=applications)
        port = server.sockets[0].getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as reader:
            reader.sendall(b"GET /beside HTTP/1.1\r\n\r\n")
            await asyncio.sleep(0.05)
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        async with asyncio.timeout(30):
            while not ended:
                await asyncio.sleep(0.01)
        server.close()
        await server.wait_closed()

    run(scenario)
    assert ended == ["whole"]
