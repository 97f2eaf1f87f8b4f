"""Texts of statements through the engine: streams, tables, inserts, SELECTs of all kinds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from barnabas.client.producer import Producer
from barnabas.sql.errors import SqlError
from barnabas.sql.running.engine import SparkEngine
from barnabas.sql.running.settings import EngineSettings
from barnabas.sql.running.stores import stores_of
from barnabas.testing.broker import Broker
from schemas.served import instant_registry
from sql.running.sessions import Statements, first

ORDERS = """
    CREATE STREAM orders (id STRING KEY, amount INT, item STRUCT<name STRING>)
      WITH (KAFKA_TOPIC='orders', PARTITIONS=2, VALUE_FORMAT='JSON');
    INSERT INTO orders (id, amount, item) VALUES ('a', 1, STRUCT(name := 'pen'));
    INSERT INTO orders (id, amount) VALUES ('b', 20);
    INSERT INTO orders (id, amount) VALUES ('a', 30);
"""


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as found:
        yield found


@asynccontextmanager
async def statements(broker: Broker, folder: Path, **given: str) -> AsyncIterator[Statements]:
    properties = {"bootstrap.servers": broker.bootstrap, "state.dir": str(folder), **given}
    engine = SparkEngine(EngineSettings.of(properties))
    try:
        yield Statements(engine, **{"auto.offset.reset": "earliest"})
    finally:
        await engine.close()


def test_selects_of_all_kinds_run_without_spark(broker: Broker, tmp_path: Path) -> None:
    async def main() -> None:
        async with statements(broker, tmp_path) as session:
            await session.run(ORDERS)
            rows = await session.to_end("SELECT id, amount * 2 AS twice, item->name AS n FROM orders;")
            assert sorted(rows, key=lambda row: row[1]) == [["a", 2, "pen"], ["b", 40, None], ["a", 60, None]]
            stateless = await session.push("SELECT amount FROM orders WHERE amount > 5 EMIT CHANGES LIMIT 2;")
            assert sorted([row.values[0] async for row in stateless]) == [20, 30]
            assert stateless.end == "Limit Reached"
            counting = await session.push(
                "SELECT item->name AS n, COUNT(*) AS c FROM orders WHERE item IS NOT NULL"
                " GROUP BY item->name EMIT CHANGES;"
            )
            assert [row.values for row in await first(counting, 1)] == [["pen", 1]]
            windows = await session.push(
                "SELECT id, SUM(amount) AS s FROM orders WINDOW TUMBLING (SIZE 1 HOUR) WHERE id = 'a'"
                " GROUP BY id EMIT CHANGES;"
            )
            assert [row.values for row in await first(windows, 2)][-1][:2] == ["a", 31]

    asyncio.run(main())


def test_rows_without_a_time_are_left_out_of_a_select(broker: Broker, tmp_path: Path) -> None:
    settings = EngineSettings.of({"bootstrap.servers": broker.bootstrap, "state.dir": str(tmp_path)})

    async def main() -> None:
        found = SparkEngine(settings)
        server = Statements(found)
        try:
            await server.run(
                "CREATE STREAM plain (ts STRING, v INT)"
                " WITH (KAFKA_TOPIC='timed', VALUE_FORMAT='JSON', PARTITIONS=1);"
                "CREATE STREAM timed (ts STRING, v INT) WITH (KAFKA_TOPIC='timed', VALUE_FORMAT='JSON',"
                " TIMESTAMP='ts', TIMESTAMP_FORMAT='yyyy-MM-dd');"
                "INSERT INTO plain VALUES ('2020-01-01', 1); INSERT INTO plain VALUES ('yesterday', 2);"
                "INSERT INTO plain (v) VALUES (3); INSERT INTO plain VALUES ('2020-01-02', 4);"
            )
            rows = await server.to_end("SELECT ROWTIME, v FROM timed;")
            assert rows == [[1_577_836_800_000, 1], [1_577_923_200_000, 4]]
            server.properties["ksql.timestamp.throw.on.invalid"] = "true"
            with pytest.raises(SqlError, match="the column of ROWTIME is 'yesterday'"):
                await server.to_end("SELECT v FROM timed;")
        finally:
            await found.close()

    asyncio.run(main())


def test_a_stream_joined_with_a_table_finds_what_the_table_had_before(broker: Broker, tmp_path: Path) -> None:
    async def main() -> None:
        async with statements(broker, tmp_path) as session:
            await session.run(
                """
                CREATE TABLE users (id STRING PRIMARY KEY, city STRING)
                  WITH (KAFKA_TOPIC='users', PARTITIONS=2, VALUE_FORMAT='JSON');
                INSERT INTO users (id, city) VALUES ('a', 'Oslo');
                CREATE STREAM clicks (id STRING KEY, page STRING)
                  WITH (KAFKA_TOPIC='clicks', PARTITIONS=2, VALUE_FORMAT='JSON');
                """
            )
            session.properties["auto.offset.reset"] = "latest"
            joined = await session.push(
                "SELECT c.id, page, city FROM clicks c LEFT JOIN users u ON c.id = u.id EMIT CHANGES;"
            )
            await session.run("INSERT INTO clicks (id, page) VALUES ('a', 'home');")
            await session.run("INSERT INTO clicks (id, page) VALUES ('x', 'home');")
            rows = sorted(row.values for row in await first(joined, 2))
            assert rows == [["a", "home", "Oslo"], ["x", "home", None]]

    asyncio.run(main())


def test_stores_of_queries_have_the_ends_of_their_changelogs(broker: Broker, tmp_path: Path) -> None:
    text = "CREATE TABLE totals AS SELECT item->name AS n, COUNT(*) AS c FROM orders GROUP BY item->name;"

    async def main() -> None:
        async with statements(broker, tmp_path) as session:
            await session.run(ORDERS)
            work = (await session.prepared(text)).work
            [empty] = await stores_of(session.engine._cluster, [work])
            [store] = empty.ends
            assert (empty.ends, empty.partitions) == ({store: {}}, ())
            prefix = work.application_id
            broker.create_topic(f"{prefix}-{store}-repartition", 2)
            broker.create_topic(f"{prefix}-{store}-changelog", 2)
            producer = Producer(session.engine._cluster)
            await (await producer.send(f"{prefix}-{store}-changelog", b"v", b"k", partition=1))
            await producer.close()
            [found] = await stores_of(session.engine._cluster, [work])
            assert (found.query_id, found.application_id) == (work.query_id, prefix)
            assert found.ends == {store: {0: 0, 1: 1}}
            assert found.partitions == tuple((f"{prefix}-{store}-repartition", each) for each in (0, 1))

    asyncio.run(main())


def test_a_source_table_is_pulled(broker: Broker, tmp_path: Path) -> None:
    async def main() -> None:
        async with statements(broker, tmp_path) as session:
            await session.run(
                """
                CREATE TABLE written (id STRING PRIMARY KEY, city STRING)
                  WITH (KAFKA_TOPIC='users', PARTITIONS=2, VALUE_FORMAT='JSON');
                INSERT INTO written (id, city) VALUES ('a', 'Oslo');
                INSERT INTO written (id, city) VALUES ('b', 'Rome');
                """
            )
            (started,) = await session.run(
                "CREATE SOURCE TABLE users (id STRING PRIMARY KEY, city STRING)"
                " WITH (KAFKA_TOPIC='users', VALUE_FORMAT='JSON');"
            )
            assert (await session.pull("SELECT * FROM users WHERE id = 'a';")).rows == [["a", "Oslo"]]
            found = await session.pull("SELECT city FROM users WHERE id > 'a';")
            assert (found.rows, str(found.schema)) == ([["Rome"]], "`CITY` STRING")
            assert started is not None and session.engine.status(started) is not None
            await session.run("DROP TABLE users;")
            assert session.engine.status(started) is None

    asyncio.run(main())


def test_columns_come_from_the_registry_and_schemas_of_new_topics_go_there(
    broker: Broker, tmp_path: Path
) -> None:
    async def main(url: str) -> None:
        async with statements(broker, tmp_path, **{"ksql.schema.registry.url": url}) as session:
            await session.run(
                """
                CREATE STREAM typed (id INT KEY, amount DECIMAL(6, 2), tags ARRAY<STRING>)
                  WITH (KAFKA_TOPIC='typed', PARTITIONS=1, FORMAT='AVRO');
                INSERT INTO typed (id, amount, tags) VALUES (1, 2.50, ARRAY['x']);
                CREATE STREAM inferred WITH (KAFKA_TOPIC='typed', FORMAT='AVRO');
                """
            )
            schema = session.metastore.source("INFERRED").schema
            assert str(schema) == "`ROWKEY` INTEGER KEY, `AMOUNT` DECIMAL(6, 2), `TAGS` ARRAY<STRING>"
            rows = await session.to_end("SELECT rowkey, tags[1] AS tag, amount FROM inferred;")
            assert [[key, tag, str(amount)] for key, tag, amount in rows] == [[1, "x", "2.50"]]
            with pytest.raises(SqlError, match="unknown-value"):
                await session.run(
                    "CREATE STREAM u WITH (KAFKA_TOPIC='typed', VALUE_FORMAT='AVRO', PARTITIONS=1);".replace(
                        "typed", "unknown"
                    )
                )

    with instant_registry() as url:
        asyncio.run(main(url))
