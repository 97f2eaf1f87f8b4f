"""The server with its engine on Spark, as clients see it: the client of PyPI, a file of statements without a
command topic, Spark SQL over HTTP beside a table of a lake."""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from barnabas.services.settings.service_settings import ServiceSettings
from barnabas.spark import jars
from barnabas.sql.execution.port import Engine
from barnabas.sql.server.engines import spark_engine
from barnabas.sql.server.settings.server_settings import ServerSettings
from barnabas.testing import Broker
from barnabas.testing.waiting import wait_until
from spark_sessions import sql_session
from sql.server.running import RunningServer, running

ksqldb = pytest.importorskip("ksqldb")
WAIT_S = 180
STATEMENTS = """
CREATE STREAM clicks (who STRING KEY, page STRING, n INT)
  WITH (KAFKA_TOPIC='{topic}', PARTITIONS=2, VALUE_FORMAT='JSON');
CREATE TABLE visits AS SELECT who, COUNT(*) AS visits, SUM(n) AS total FROM clicks GROUP BY who;
CREATE TABLE minutes AS SELECT who, COUNT(*) AS n FROM clicks
  WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY who;
"""
CLICKS = [
    {"who": "ann", "page": "/", "n": 2},
    {"who": "bob", "page": "/a", "n": 3},
    {"who": "ann", "page": "/b", "n": 5},
]
VISITS = [["ann", 2, 7], ["bob", 1, 3]]
pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    with Broker(overrides={"group.initial.rebalance.delay.ms": 0}, in_process=False) as found:
        yield found.bootstrap


@pytest.fixture(scope="module")
def spark() -> Any:
    return sql_session()


@pytest.fixture(autouse=True)
def connections() -> Iterator[None]:
    with warnings.catch_warnings():  # the client of PyPI leaves its connections to the garbage collector
        warnings.simplefilter("ignore", ResourceWarning)
        yield
        gc.collect()


def served(broker: str, spark: Any, folder: Path, **more: str) -> AbstractContextManager[RunningServer]:
    def make_engine(settings: ServiceSettings, server: ServerSettings) -> Engine:
        return spark_engine(settings, server, spark)

    given = {"ksql.streams.state.dir": str(folder), "ksql.streams.auto.offset.reset": "earliest", **more}
    return running(broker, f"clients{next(_numbers)}_", make=make_engine, **given)


def visits(client: Any) -> list[Any]:
    """The rows of a pull query, without its head."""
    return sorted(client.query_sync("SELECT * FROM visits;")[1:])


def test_the_client_of_pypi_makes_queries_and_reads_their_tables(
    broker: str, spark: Any, tmp_path: Path
) -> None:
    with served(broker, spark, tmp_path) as server:
        server.wait_until_leading()
        client = ksqldb.KSQLdbClient(server.url)
        made = client.ksql(STATEMENTS.format(topic="clicks"))
        assert [each["commandStatus"]["status"] for each in made] == ["SUCCESS"] * 3
        acks = client.inserts_stream("clicks", CLICKS)
        assert [each["status"] for each in acks] == ["ok"] * 3
        wait_until(lambda: visits(client) == VISITS, WAIT_S)
        [first] = client.query_sync("SELECT who FROM visits LIMIT 1;")[1:]
        assert first in (["ann"], ["bob"])
        windowed = "SELECT n FROM minutes WHERE who = 'bob' AND windowstart > 0;"
        wait_until(lambda: client.query_sync(windowed)[1:] == [[1]], WAIT_S)

        async def follow() -> list[Any]:
            seen: list[Any] = []
            question = "SELECT who, total FROM visits EMIT CHANGES;"
            async for each in client.query_async(question):
                seen.append(each)
                if each == ["ann", 7]:
                    assert await asyncio.to_thread(client.close_query, seen[0]["queryId"])
            return seen[1:]

        assert ["ann", 7] in asyncio.run(follow())


def test_a_file_of_statements_runs_without_a_command_topic(broker: str, spark: Any, tmp_path: Path) -> None:
    file = tmp_path / "queries.sql"
    file.write_text(STATEMENTS.format(topic="headless"))
    with served(broker, spark, tmp_path, **{"ksql.queries.file": str(file)}) as server:
        client = ksqldb.KSQLdbClient(server.url)
        wait_until(lambda: "RUNNING" in str(server.ksql("SHOW QUERIES;")), WAIT_S)
        assert "takes no others" in server.refused("CREATE TYPE x AS INT;")["message"]
        assert "takes no others" in str(client.inserts_stream("clicks", CLICKS[:1]))
        producer = confluent_kafka.Producer({"bootstrap.servers": broker})
        for each in CLICKS:
            producer.produce("headless", json.dumps(each), str(each["who"]))
        assert producer.flush(WAIT_S) == 0
        wait_until(lambda: visits(client) == VISITS, WAIT_S)
    with served(broker, spark, tmp_path / "again", **{"ksql.queries.file": str(file)}) as server:
        client = ksqldb.KSQLdbClient(server.url)  # another service over the same topics reads them anew
        wait_until(lambda: visits(client) == VISITS, WAIT_S)


def test_spark_sql_over_http_joins_a_topic_with_a_table_of_a_lake(
    broker: str, spark: Any, tmp_path: Path
) -> None:
    if missing := jars.missing(("delta",)):
        pytest.skip(f"jars for tables of a lake are not here: {missing}")
    lake = tmp_path / "people"
    people = spark.createDataFrame([("ann", "Ann Ling"), ("bob", "Bob Orr")], "who string, name string")
    people.write.format("delta").save(str(lake))
    with served(broker, spark, tmp_path / "state") as server:
        server.wait_until_leading()
        server.ksql(STATEMENTS.format(topic="joined").split(";")[0] + ";")
        for each in CLICKS:
            server.ksql(
                f"INSERT INTO clicks (who, page, n) VALUES ('{each['who']}', '{each['page']}', {each['n']});"
            )
        text = (
            "SELECT p.name, sum(c.n) AS total, max(c.rowtime) > 0 AS has_time FROM clicks c"
            f" JOIN delta.`{lake}` p ON c.who = p.who GROUP BY p.name ORDER BY p.name;"
        )
        found = server.post("/spark", {"sql": text})
        assert found.status_code == 200, found.text
        assert found.json() == {
            "columnNames": ["name", "total", "has_time"],
            "columnTypes": ["STRING", "BIGINT", "BOOLEAN"],
            "rows": [["Ann Ling", 7, True], ["Bob Orr", 3, True]],
            "isCut": False,
        }
        wrong = server.post("/spark", {"sql": "SELECT nothing FROM clicks"})
        assert wrong.status_code == 400
        assert "nothing" in wrong.json()["message"]
        empty = server.post("/spark", {"sql": " "})
        assert empty.status_code == 400
