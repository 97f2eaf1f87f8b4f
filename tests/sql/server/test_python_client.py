"""The client `ksqldb` from PyPI against our API: statements over HTTP/1.1, rows and inserts over HTTP/2."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from sql.server.running import RunningServer, running

ksqldb = pytest.importorskip("ksqldb")
PATIENCE_S = 60.0
STREAM = "CREATE STREAM s (k STRING KEY, v INT) WITH (KAFKA_TOPIC='s', PARTITIONS=1, VALUE_FORMAT='JSON');"


@pytest.fixture(scope="module")
def server(broker: str) -> Iterator[RunningServer]:
    with running(broker, "python_") as found:
        found.wait_until_leading()
        yield found
        with warnings.catch_warnings():  # the client leaves its connections to the garbage collector
            warnings.simplefilter("ignore")
            gc.collect()


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client inserts with the 5 s that httpx waits by default for each step. An insert needs 20 ms of
    processor for client and server together. A process of idle priority beside busy ones of normal priority
    gets three parts in a thousand, so those 20 ms take 7 s."""
    for step in ("connect", "read", "write", "pool"):
        monkeypatch.setattr(httpx._config.DEFAULT_TIMEOUT_CONFIG, step, PATIENCE_S)


def test_the_client_of_pypi_makes_inserts_reads_and_closes(server: RunningServer) -> None:
    client = ksqldb.KSQLdbClient(server.url)
    assert client.ksql(STREAM)[0]["commandStatus"]["status"] == "SUCCESS"
    assert any(each["name"] == "ksql.service.id" for each in client.get_properties())
    assert client.inserts_stream("s", [{"k": "a", "v": 1}, {"k": "b", "v": 2}]) == [
        {"status": "ok", "seq": 0},
        {"status": "ok", "seq": 1},
    ]
    head, *rows = client.query_sync("SELECT * FROM s;", timeout=PATIENCE_S)
    assert (head["columnNames"], rows) == (["K", "V"], [["a", 1], ["b", 2]])

    async def follow() -> list[Any]:
        seen: list[Any] = []
        async for each in client.query_async("SELECT * FROM s EMIT CHANGES;", timeout=PATIENCE_S):
            seen.append(each)
            if len(seen) == 3:
                assert await asyncio.to_thread(client.close_query, seen[0]["queryId"])
        return seen[1:]

    assert asyncio.run(follow()) == [["a", 1], ["b", 2]]
