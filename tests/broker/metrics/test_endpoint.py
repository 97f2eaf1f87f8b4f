"""GET /metrics: scraped over a socket, with bad requests too."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from barnabas.broker.metrics import Metrics, endpoint, serve_metrics


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
    return head.split("\r\n")[0], body


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
        (b"HEAD /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK"),
        (b"GET /secrets HTTP/1.1\r\n\r\n", "HTTP/1.1 404 Not Found"),
        (b"POST /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 405 Method Not Allowed"),
        (b"\x00\x00\x00\x10garbage\r\n\r\n", "HTTP/1.1 404 Not Found"),
        (b"A" * (endpoint.REQUEST_BYTES_MAX * 2), ""),
    ],
    ids=["query", "head", "other path", "other method", "garbage", "endless"],
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


def test_a_long_response_does_not_block_the_loop() -> None:
    async def scenario() -> None:
        metrics = Metrics()
        for number in range(1000):
            metrics.topic(f"t{number}").bytes_in += 1
        pauses = sum(1 for _ in endpoint.render(metrics, 0))
        assert pauses >= 2 * 10 * 1000 // endpoint.LINES_A_STEP  # values looked up, and lines written

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
        monkeypatch.setattr(endpoint, "REQUEST_SECONDS_MAX", 0.01)
        async with endpoint_of(Metrics()) as port:
            assert await ask(port, b"GET") == ("", "")

    run(scenario)
