"""Workers and databases that are killed and restarted while the JDBC connectors read and write."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.connect.connectors.jdbc_servers import Database, running
from tests.connect.connectors.killed_sink import changes, last_of_each, run_with_kills
from tests.connect.connectors.killed_source import read_with_kills

from barnabas.testing.broker import Broker

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

JSON = "org.apache.kafka.connect.json.JsonConverter"
SCHEMA = json.dumps(
    {
        "type": "struct",
        "fields": [{"field": "id", "type": "int64"}, {"field": "text", "type": "string", "optional": True}],
    }
)


class Server:
    """A database that a test stops and starts."""

    is_needed = True

    def __init__(self, database: Database) -> None:
        self.database = database

    def stop(self) -> None:
        self.database.server.stop()

    def start(self) -> None:
        self.database.server.start()

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Answer a query; nothing while the table is not there, or the server."""
        dialect = self.database.dialect
        try:
            return self.database.rows(query)
        except dialect.errors:
            return []


@pytest.fixture(scope="module", params=["postgresql", "mysql"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(request.param, tmp_path_factory.mktemp("database")) as found:
        yield Server(found)


def sink(server: Server, topic: str, **more: str) -> dict[str, str]:
    return {
        **server.database.config,
        "name": "sink",
        "connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector",
        "topics": topic,
        "table.name.format": "copy",
        "auto.create": "true",
        "batch.size": "20",
        "max.retries": "1000",
        "retry.backoff.ms": "100",
        "value.converter": JSON,
        "value.converter.schema.content": SCHEMA,
        **{name.replace("_", "."): text for name, text in more.items()},
    }


def test_a_table_has_the_last_value_of_each_key(
    server: Server, barnabas_broker: Broker, barnabas_topic: str, tmp_path: Path
) -> None:
    server.database.sql("DROP TABLE IF EXISTS copy")
    rows = changes("jdbc", 2000, 60)
    given = sink(server, barnabas_topic, insert_mode="upsert", pk_mode="record_key", delete_enabled="true")
    given["pk.fields"] = "name"

    def highest() -> int:
        found = server.rows("SELECT max(id) FROM copy")
        return -1 if not found or found[0][0] is None else int(found[0][0])

    run_with_kills(tmp_path, barnabas_broker.bootstrap, given, rows, highest, server)
    found = server.database.rows("SELECT name, id, text FROM copy")
    assert {name: {"id": number, "text": text} for name, number, text in found} == last_of_each(rows)


def test_a_table_without_a_key_has_each_record_once(
    server: Server, barnabas_broker: Broker, barnabas_topic: str, tmp_path: Path
) -> None:
    """Plain inserts, whose offsets are in the transaction of the rows."""
    server.database.sql("DROP TABLE IF EXISTS copy")
    rows = changes("jdbc-insert", 2000, 60, deletes=False)
    given = sink(server, barnabas_topic, barnabas_offsets_table="kafka_offsets")

    def highest() -> int:
        found = server.rows("SELECT max(id) FROM copy")
        return -1 if not found or found[0][0] is None else int(found[0][0])

    run_with_kills(tmp_path, barnabas_broker.bootstrap, given, rows, highest, server)
    found = [number for (number,) in server.database.rows("SELECT id FROM copy ORDER BY id")]
    assert found == list(range(len(rows)))


@pytest.mark.parametrize("mode", ["incrementing", "timestamp+incrementing"])
def test_no_row_of_a_table_is_missed(
    server: Server, barnabas_broker: Broker, barnabas_topic: str, tmp_path: Path, mode: str
) -> None:
    server.database.sql(
        "DROP TABLE IF EXISTS numbers",
        "CREATE TABLE numbers (id INT PRIMARY KEY, at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6))",
    )

    def write(first: int, end: int) -> None:
        with closing(server.database.dialect.connect()) as connection:
            for number in range(first, end):
                server.database.dialect.execute(connection, f"INSERT INTO numbers (id) VALUES ({number})")
            connection.commit()

    given = {
        **server.database.config,
        "name": "source",
        "connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector",
        "mode": mode,
        "incrementing.column.name": "id",
        "topic.prefix": barnabas_topic,
        "query": "SELECT id, at FROM numbers WHERE id >= 0",
        "batch.max.rows": "7",
        "poll.interval.ms": "20",
        "value.converter": JSON,
        "value.converter.schemas.enable": "false",
    }
    if mode.startswith("timestamp"):
        given["timestamp.column.name"] = "at"
    read_with_kills(
        tmp_path,
        barnabas_broker.bootstrap,
        given,
        barnabas_topic,
        write,
        lambda value: int(orjson.loads(value)["id"]),
        1000,
        server,
    )
