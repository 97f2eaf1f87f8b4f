"""Statements that make persistent queries, on Spark: streams, windows, joins, replaced and dropped."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.spark_sessions import sql_session

from barnabas.sql.execution.port import QueryState
from barnabas.sql.functions.user import load_folder
from barnabas.sql.running.engine import SparkEngine
from barnabas.sql.running.settings import EngineSettings
from barnabas.testing.broker import Broker
from barnabas.testing.waiting import until
from sql.running.sessions import Statements

pytestmark = pytest.mark.long
WAIT_S = 120
HOUR_MS = 3_600_000
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(in_process=False) as found:
        yield found


@pytest.fixture(scope="module")
def spark() -> Any:
    return sql_session()


@asynccontextmanager
async def statements(broker: Broker, spark: Any, folder: Path) -> AsyncIterator[Statements]:
    properties = {
        "bootstrap.servers": broker.bootstrap,
        "ksql.service.id": f"service{next(_numbers)}_",
        "state.dir": str(folder),
    }
    engine = SparkEngine(EngineSettings.of(properties), spark=spark)
    try:
        yield Statements(engine, **{"auto.offset.reset": "earliest"})
    finally:
        await engine.close()


async def pulled(session: Statements, text: str, rows: list[list[Any]]) -> None:
    """Wait until a pull query gives these rows."""
    found: list[list[Any]] = []

    async def is_there() -> bool:
        nonlocal found
        found = sorted((await session.pull(text)).rows)
        return found == rows

    def what() -> str:
        return f"{text} gives {found}; {session.engine.statuses()}"

    await until(is_there, WAIT_S, what)


def test_streams_tables_windows_and_joins(broker: Broker, spark: Any, tmp_path: Path) -> None:
    async def main() -> None:
        async with statements(broker, spark, tmp_path) as session:
            await session.run(
                """
                CREATE STREAM orders (id INT KEY, item STRING, amount INT)
                  WITH (KAFKA_TOPIC='orders', PARTITIONS=2, VALUE_FORMAT='JSON');
                CREATE TABLE items (item STRING PRIMARY KEY, price DOUBLE)
                  WITH (KAFKA_TOPIC='items', PARTITIONS=2, VALUE_FORMAT='JSON');
                CREATE STREAM by_item AS
                  SELECT item, id, amount FROM orders WHERE amount > 0 PARTITION BY item;
                CREATE STREAM priced AS
                  SELECT o.item AS item, id, amount * price AS total
                  FROM by_item o JOIN items i ON o.item = i.item;
                CREATE TABLE totals AS
                  SELECT item, COUNT(*) AS n, SUM(amount) AS s FROM by_item
                  GROUP BY item HAVING SUM(amount) > 2;
                CREATE TABLE hourly AS
                  SELECT item, COUNT(*) AS n FROM by_item WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY item;
                INSERT INTO items (item, price) VALUES ('pen', 1.5);
                """
            )
            start = (int(time.time() * 1000) // HOUR_MS - 3) * HOUR_MS
            for number, amount in enumerate((1, 2, 0, 4)):
                await session.run(
                    f"INSERT INTO orders (ROWTIME, id, item, amount)"
                    f" VALUES ({start + number * HOUR_MS // 2}, {number}, 'pen', {amount});"
                )
            await session.run("INSERT INTO orders (id, item, amount) VALUES (9, 'ink', 1);")
            await pulled(session, "SELECT * FROM totals WHERE item = 'pen';", [["pen", 3, 7]])
            await pulled(session, "SELECT * FROM totals WHERE item = 'ink';", [])
            await pulled(
                session,
                "SELECT windowstart, n FROM hourly WHERE item = 'pen'"
                f" AND windowstart < {start + 2 * HOUR_MS};",
                [[start, 2], [start + HOUR_MS, 1]],
            )

            async def is_priced() -> bool:
                rows = await session.to_end("SELECT id, total FROM priced;")
                return sorted(rows) == [[0, 1.5], [1, 3.0], [3, 6.0]]

            await until(is_priced, WAIT_S, lambda: str(session.engine.statuses()))
            pushed = await session.push("SELECT item, n FROM totals EMIT CHANGES LIMIT 1;")
            assert [row.values async for row in pushed] == [["pen", 2]]
            # A replaced query goes on with another condition.
            await session.run(
                "CREATE OR REPLACE STREAM by_item AS"
                " SELECT item, id, amount FROM orders WHERE amount > 10 PARTITION BY item;"
            )
            await session.run("INSERT INTO orders (id, item, amount) VALUES (20, 'pen', 5);")
            await session.run("INSERT INTO orders (id, item, amount) VALUES (21, 'pen', 11);")
            await pulled(session, "SELECT * FROM totals;", [["pen", 4, 18]])
            joined = await session.engine.spark_sql(
                "SELECT t.item, t.s, count(*) AS n FROM totals t JOIN orders o ON t.item = o.item"
                " GROUP BY t.item, t.s",
                session.metastore,
            )
            assert (joined.rows, str(joined.schema)) == (
                [["pen", 18, 6]],
                "`item` STRING, `s` INTEGER, `n` BIGINT",
            )
            await session.run("DROP TABLE totals DELETE TOPIC; DROP TABLE hourly; DROP STREAM priced;")
            topics = await session.engine._cluster.topics(None)
            assert "TOTALS" not in topics
            assert not [name for name in topics if "CTAS" in name]

    asyncio.run(main())


FUNCTION = """
from barnabas.sql.functions.user import scalar

@scalar("(INT) -> INT")
def fragile(number):
    if number == 3:
        raise RuntimeError("three is too much")
    return number + 100
"""


def test_a_function_that_raises_is_counted_and_told_and_stops_nothing(
    broker: Broker, spark: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "ext"
    folder.mkdir()
    (folder / f"fragile_{next(_numbers)}.py").write_text(FUNCTION)
    assert load_folder(folder) == []

    async def main() -> None:
        async with statements(broker, spark, tmp_path) as session:
            await session.run(
                """
                CREATE STREAM numbers (id STRING KEY, n INT)
                  WITH (KAFKA_TOPIC='numbers', PARTITIONS=1, VALUE_FORMAT='JSON');
                CREATE STREAM results AS SELECT id, n, FRAGILE(n) AS f FROM numbers;
                CREATE STREAM others AS SELECT id, n FROM numbers;
                """
            )
            for number in range(1, 5):
                await session.run(f"INSERT INTO numbers (id, n) VALUES ('k', {number});")

            async def all_there() -> bool:
                return len(await session.to_end("SELECT f FROM results;")) == 4

            await until(all_there, WAIT_S, lambda: str(session.engine.statuses()))
            rows = await session.to_end("SELECT n, f FROM results;")
            assert rows == [[1, 101], [2, 102], [3, None], [4, 104]]
            fragile, others = session.engine.statuses()
            assert fragile.state is others.state is QueryState.RUNNING
            await until(lambda: sum(session.engine.statuses()[0].dropped.values()) == 1, WAIT_S)
            await session.run(
                f"""
                CREATE STREAM log (logger STRING, message STRUCT<type INT, recordProcessingError STRUCT<
                    errorMessage STRING, cause ARRAY<STRING>, topic STRING, `offset` BIGINT>>)
                  WITH (KAFKA_TOPIC='{session.engine.settings.log_topic}', VALUE_FORMAT='JSON');
                """
            )
            ((kind, topic, offset, cause),) = await session.to_end(
                "SELECT message->type AS t, message->recordProcessingError->topic AS topic,"
                " message->recordProcessingError->`offset` AS o,"
                " message->recordProcessingError->cause[1] AS c FROM log;"
            )
            assert (kind, topic, offset) == (1, "numbers", 2)
            assert "three is too much" in cause

    asyncio.run(main())
