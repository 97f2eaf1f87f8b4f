"""What the engine does in its own process: inserts, push queries, reads to the end, pull queries, facts."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from barnabas.plans.expressions import col
from barnabas.sql.analysis.work import Bound, Range
from barnabas.sql.errors import SqlError
from barnabas.sql.execution.port import LIMIT_REACHED, QUERY_COMPLETED, Row, SelectKind, TopicNeeded
from barnabas.sql.metastore.metastore import Metastore, PutSource
from barnabas.sql.metastore.schemas import WindowedKeys
from barnabas.sql.running import pulls
from barnabas.sql.running.engine import SparkEngine
from barnabas.sql.running.settings import EngineSettings
from barnabas.streams.views.partition_view import PartitionView
from barnabas.testing.broker import Broker
from sql.running.works import COUNT, ID, V, pulled, rows_of, selected, source

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as found:
        yield found


@asynccontextmanager
async def engine(broker: Broker, folder: Path) -> AsyncIterator[SparkEngine]:
    settings = EngineSettings.of(
        {"bootstrap.servers": broker.bootstrap, "ksql.streams.state.dir": str(folder)}
    )
    found = SparkEngine(settings)
    try:
        yield found
    finally:
        await found.close()


def stream(broker: Broker, partitions: int = 1) -> Any:
    topic = f"topic-{next(_numbers)}"
    broker.create_topic(topic, partitions)
    return source("S", topic, ID, V)


def test_rows_inserted_as_json_are_read_to_the_end(broker: Broker, tmp_path: Path) -> None:
    made = stream(broker, 2)

    async def main() -> None:
        async with engine(broker, tmp_path) as found:
            store = Metastore().apply([PutSource(made)])
            for number in range(5):
                await found.insert_row(store, "S", {"id": f"k{number}", "v": number}, {})
            select = found.select(selected(rows_of(made), least=2, kind=SelectKind.STREAM_PULL))
            rows = sorted([row.values async for row in select])
            assert rows == [["k2", 4], ["k3", 6], ["k4", 8]]
            assert select.end == QUERY_COMPLETED

    asyncio.run(main())


def test_a_push_query_gives_rows_as_they_come_until_its_limit(broker: Broker, tmp_path: Path) -> None:
    made = stream(broker)

    async def main() -> None:
        async with engine(broker, tmp_path) as found:
            store = Metastore().apply([PutSource(made)])
            await found.insert_row(store, "S", {"ID": "before", "V": 1}, {})
            select = found.select(selected(rows_of(made), limit=2))
            await select.begun()
            rows: list[Row] = []
            reading = asyncio.create_task(gather(select, rows))
            for number in (1, 2, 3):
                await found.insert_row(store, "S", {"ID": "a", "V": number}, {})
            await reading
            assert [row.values for row in rows] == [["a", 2], ["a", 4]]
            assert select.end == LIMIT_REACHED
            early = found.select(selected(rows_of(made), limit=1, **{"auto.offset.reset": "earliest"}))
            assert [row.values async for row in early] == [["before", 2]]

    asyncio.run(main())


async def gather(select: Any, rows: list[Row]) -> None:
    async for row in select:
        rows.append(row)


def test_closing_a_push_query_ends_its_reader(broker: Broker, tmp_path: Path) -> None:
    made = stream(broker)

    async def main() -> None:
        async with engine(broker, tmp_path) as found:
            select = found.select(selected(rows_of(made)))
            reading = asyncio.create_task(gather(select, []))
            await select.begun()
            await select.close()
            await asyncio.wait_for(reading, 10)

    asyncio.run(main())


def test_a_slow_reader_gets_every_row_and_the_queue_stays_small(broker: Broker, tmp_path: Path) -> None:
    made = stream(broker)

    async def main() -> None:
        async with engine(broker, tmp_path) as found:
            store = Metastore().apply([PutSource(made)])
            begun = [
                await found.begin_row(store, "S", {"ID": "a", "V": number}, {}) for number in range(1500)
            ]
            await asyncio.gather(*begun)
            select = found.select(selected(rows_of(made), kind=SelectKind.STREAM_PULL))
            rows = [row.values[1] async for row in select]
            assert rows == [2 * number for number in range(1500)], "not in the order in which they were begun"

    asyncio.run(main())


def test_rows_that_do_not_parse_are_left_out(broker: Broker, tmp_path: Path) -> None:
    made = stream(broker)

    async def main() -> None:
        async with engine(broker, tmp_path) as found:
            producer = await raw(found, made.topic, [(b"a", b"{}"), (b"b", b"no json"), (b"c", b'{"V":"7"}')])
            await producer
            select = found.select(selected(rows_of(made), kind=SelectKind.STREAM_PULL))
            assert [row.values async for row in select] == [["c", 14]]
            assert select.dropped == {"deserialization": 1}

    asyncio.run(main())


async def raw(
    found: SparkEngine, topic: str, records: list[tuple[bytes | None, bytes | None]]
) -> Awaitable[None]:
    from barnabas.client.producer import NewRecord, Producer

    async def send() -> None:
        async with Producer(found._cluster) as producer:
            await producer.send_all(topic, [NewRecord(None, key, value) for key, value in records])

    return send()


def test_a_table_is_pulled_by_key_by_condition_and_whole(broker: Broker, tmp_path: Path) -> None:
    topic = f"topic-{next(_numbers)}"
    broker.create_topic(topic, 2)
    table = source("T", topic, ID, COUNT, is_table=True)

    async def main() -> None:
        async with engine(broker, tmp_path) as found:
            rows = [(f"k{n}".encode(), json.dumps({"CNT": n}).encode()) for n in range(4)]
            await (
                await raw(found, topic, [*rows, (b"k0", None), (b"k1", b"broken"), (b"k2", b'{"cnt":20}')])
            )
            asked = rows_of(table)
            assert (await found.pull(pulled(asked, "k3", "k9"))).rows == [["k3", 3]]
            assert (await found.pull(pulled(asked, "k0"))).rows == []
            assert sorted((await found.pull(pulled(asked))).rows) == [["k2", 20], ["k3", 3]]
            assert (await found.pull(pulled(asked, where=col("CNT") > 5))).rows == [["k2", 20]]
            await (await raw(found, topic, [(b"k3", b'{"CNT":4}')]))
            assert (await found.pull(pulled(asked, "k3"))).rows == [["k3", 4]]

    asyncio.run(main())


def test_windows_of_a_table_are_pulled_by_key(broker: Broker, tmp_path: Path) -> None:
    topic = f"topic-{next(_numbers)}"
    broker.create_topic(topic)
    table = source("T", topic, ID, COUNT, is_table=True, window=WindowedKeys("TUMBLING", 1000))

    async def main() -> None:
        async with engine(broker, tmp_path) as found:
            rows: list[tuple[bytes | None, bytes | None]] = [
                (key + start.to_bytes(8, "big"), json.dumps({"CNT": start}).encode())
                for key in (b"a", b"ab")
                for start in (0, 1000, 2000)
            ]
            await (await raw(found, topic, rows))
            prepared = pulled(rows_of(table), "a")
            assert sorted(row[1] for row in (await found.pull(prepared)).rows) == [0, 1000, 2000]

    asyncio.run(main())


def test_a_limit_ends_the_reading_of_a_table(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = f"topic-{next(_numbers)}"
    broker.create_topic(topic, 2)
    table = source("T", topic, ID, COUNT, is_table=True)
    monkeypatch.setattr(pulls, "ROWS_MAX", 100)
    read: list[int] = []

    def between(self: PartitionView, first: Any, last: Any, limit: int | None) -> Any:
        found = unwatched(self, first, last, limit)
        read.append(len(found))
        return found

    unwatched = PartitionView.between
    monkeypatch.setattr(PartitionView, "between", between)

    async def main() -> None:
        async with engine(broker, tmp_path) as found:
            rows = [(f"k{n:04}".encode(), json.dumps({"CNT": n}).encode()) for n in range(1_500)]
            await (await raw(found, topic, [*rows]))
            asked = rows_of(table)
            assert (await found.pull(pulled(asked, limit=1))).rows == [["k0000", 0]]
            assert sum(read) < 300
            assert (await found.pull(pulled(asked, limit=0))).rows == []
            assert (await found.pull(pulled(asked, where=col("CNT") > 1_490, limit=3))).rows == [
                [f"k{n}", n] for n in (1_491, 1_492, 1_493)
            ]
            few = await found.pull(pulled(asked, where=col("CNT") > 1_490))  # the bound is on what is found
            assert len(few.rows) == 9
            read.clear()
            some = Range(Bound("k0700", True), Bound("k0702", True))
            assert len((await found.pull(pulled(asked, key_range=some))).rows) == 3
            assert sum(read) == 3
            with pytest.raises(SqlError, match="more than 100 rows: give it a key or a LIMIT"):
                await found.pull(pulled(asked))

    asyncio.run(main())


def test_bounds_of_windows_are_a_range(broker: Broker, tmp_path: Path) -> None:
    topic = f"topic-{next(_numbers)}"
    broker.create_topic(topic)
    table = source("T", topic, ID, COUNT, is_table=True, window=WindowedKeys("TUMBLING", 1000))

    async def main() -> None:
        async with engine(broker, tmp_path) as found:
            rows: list[tuple[bytes | None, bytes | None]] = [
                (key + start.to_bytes(8, "big"), json.dumps({"CNT": start}).encode())
                for key in (b"a", b"ab")
                for start in range(0, 100_000, 1000)
            ]
            await (await raw(found, topic, [*rows, (b"ab", b"{}")]))  # a key without a window
            assert len((await found.pull(pulled(rows_of(table)))).rows) == 200
            starts = Range(Bound(50_000, True), Bound(52_000, False))
            ends = Range(None, Bound(3_000, True))
            some = await found.pull(pulled(rows_of(table), "a", window_start=starts))
            assert [row[1] for row in some.rows] == [50_000, 51_000]
            assert [
                row[1] for row in (await found.pull(pulled(rows_of(table), "a", window_end=ends))).rows
            ] == [
                0,
                1000,
                2000,
            ]

    asyncio.run(main())


@pytest.mark.parametrize(("kind", "size"), [("TUMBLING", 1000), ("SESSION", None)])
def test_windows_behind_the_retention_are_not_found(
    broker: Broker, tmp_path: Path, kind: str, size: int | None
) -> None:
    topic = f"topic-{next(_numbers)}"
    broker.create_topic(topic)
    window = WindowedKeys(kind, size, 5_000)
    table = source("T", topic, ID, COUNT, is_table=True, window=window)

    def key(text: bytes, start: int) -> bytes:
        end = b"" if size is not None else start.to_bytes(8, "big")
        return text + end + start.to_bytes(8, "big")

    def value(start: int) -> bytes:
        return json.dumps({"CNT": start}).encode()

    async def main() -> None:
        async with engine(broker, tmp_path) as found:
            some = [(key(b"a", start), value(start)) for start in range(0, 10_000, 1000)]
            await (await raw(found, topic, [*some, (key(b"a", 8_000), None), (b"?", b"{}")]))
            asked = pulled(rows_of(table), "a")
            assert [row[1] for row in (await found.pull(asked)).rows] == [5_000, 6_000, 7_000, 9_000]
            late = (key(b"a", 4_000), value(4_000))
            await (await raw(found, topic, [late, (key(b"b", 11_000), value(11_000))]))
            assert [row[1] for row in (await found.pull(asked)).rows] == [7_000, 9_000]
            assert len((await found.pull(pulled(rows_of(table)))).rows) == 3

    asyncio.run(main())


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"ID": "a", "W": 1}, "W does not exist"),
        ({"ID": "a", "V": "x"}, """Can't coerce the value "x" of column V into INTEGER"""),
        ({"ID": "a", "V": True}, "coerce"),
    ],
)
def test_rows_that_do_not_fit_are_refused(
    broker: Broker, tmp_path: Path, row: dict[str, Any], words: str
) -> None:
    made = source("S", "nowhere", ID, V)

    async def main() -> None:
        async with engine(broker, tmp_path) as found:
            with pytest.raises(SqlError, match=words):
                await found.insert_row(Metastore().apply([PutSource(made)]), "S", row, {})

    asyncio.run(main())


def test_rows_are_refused_where_inserts_are_switched_off(broker: Broker, tmp_path: Path) -> None:
    store = Metastore().apply([PutSource(stream(broker))])

    async def main() -> None:
        async with engine(broker, tmp_path) as found:
            off = {"ksql.insert.into.values.enabled": "false"}
            with pytest.raises(SqlError, match=r"ksql\.insert\.into\.values\.enabled=true allows it"):
                await found.begin_row(store, "S", {"ID": "a", "V": 1}, off)

    asyncio.run(main())


def test_topics_are_created_once_and_described(broker: Broker, tmp_path: Path) -> None:
    async def main() -> None:
        async with engine(broker, tmp_path) as found:
            name = f"topic-{next(_numbers)}"
            for _ in range(2):
                await found._resources.create_topic(TopicNeeded(name, 3, 1, {"retention.ms": "1000"}))
            (fact,) = (await found._resources.topic_facts([name, "unknown"])).values()
            assert (fact.name, fact.partitions, fact.replicas, fact.retention_ms) == (name, 3, 1, 1000)
            for _ in range(2):
                await found._resources.delete_topics([name])
            assert await found._resources.topic_facts([name]) == {}

    asyncio.run(main())


def test_a_query_over_a_topic_that_is_not_there_says_so(broker: Broker, tmp_path: Path) -> None:
    async def main() -> None:
        async with engine(broker, tmp_path) as found:
            with pytest.raises(SqlError, match="nowhere"):
                await gather(found.select(selected(rows_of(source("S", "nowhere", ID, V)))), [])

    asyncio.run(main())
