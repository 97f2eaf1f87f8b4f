"""Change capture, ExtractNewRecordState, JSON and the JDBC sink: a table follows another with its deletes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest
from tests.connect.connectors.jdbc_servers import Database, Sink
from tests.connect.connectors.test_postgres_cdc import Capture, config

from barnabas.connect.convert.json import JsonConverter
from barnabas.connect.data import Column, Records
from barnabas.connect.plugins import Plugins
from barnabas.connect.transforms.chain import TransformChain
from barnabas.pipeline.demo import postgres

UNWRAP = {"transforms": "unwrap", "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState"}


@pytest.fixture(scope="module")
def server() -> Iterator[postgres.Postgres]:
    if reason := postgres.available():
        pytest.skip(reason)
    with postgres.Postgres(password="a secret") as found:
        with psycopg.connect(found.dsn, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET wal_level = logical")
        found.stop()
        found.start()
        yield found


class Topic:
    """Records as bytes of JSON with schemas, as a topic has them."""

    def __init__(self) -> None:
        self.offset = 0
        self._converters = {True: JsonConverter(), False: JsonConverter()}
        for is_key, each in self._converters.items():
            each.configure({"schemas.enable": "true"}, is_key)

    def _through(self, topic: str, column: Column, *, is_key: bool) -> Iterator[tuple[int, Column]]:
        converter = self._converters[is_key]
        data = converter.to_bytes(topic, column).data
        for row in range(len(data)):
            [part] = converter.from_bytes(topic, pa.array([data[row].as_py()], pa.binary())).parts
            yield row, part.column

    def carried(self, records: Records) -> Iterator[Records]:
        """One record after the other, as a sink gets them."""
        topic = records.topics[0].as_py()
        keys = dict(self._through(topic, records.keys, is_key=True))
        for row, value in self._through(topic, records.values, is_key=False):
            yield Records.of(topic, value, keys[row], partitions=[0], offsets=[self.offset])
            self.offset += 1


@pytest.mark.parametrize(("place", "mode"), [("source", "delete-to-tombstone"), ("sink", "tombstone")])
def test_a_table_follows_the_captured_one(
    server: postgres.Postgres, tmp_path: Path, place: str, mode: str
) -> None:
    name = f"flat{place}{mode[:6]}"
    chain = TransformChain.of({**UNWRAP, "transforms.unwrap.delete.tombstone.handling.mode": mode}, Plugins())
    copy = Database(f"jdbc:sqlite:{tmp_path / 'copy.db'}", "", "")
    sink = Sink(
        {
            **copy.config, "auto.create": "true", "pk.mode": "record_key", "insert.mode": "upsert",
            "delete.enabled": "true", "table.name.format": "copy",
        }
    )  # fmt: skip
    topic = Topic()

    def carry(records: Records) -> None:
        before = [each.records for each in chain.apply(records).parts] if place == "source" else [records]
        for part in before:
            for one in topic.carried(part):
                after = [each.records for each in chain.apply(one).parts] if place == "sink" else [one]
                for each in after:
                    sink.task.put(each)

    with closing(psycopg.connect(server.dsn, autocommit=True)) as connection:
        connection.execute(f"CREATE TABLE {name}_a (id int PRIMARY KEY, v float8, note text)")
        connection.execute(f"INSERT INTO {name}_a VALUES (1, 1, 'a'), (2, 2, NULL), (3, 3, 'c')")
        capture = Capture(config(server, name))
        capture.drain(3)
        connection.execute(f"UPDATE {name}_a SET v = 20 WHERE id = 2")
        connection.execute(f"DELETE FROM {name}_a WHERE id = 1")
        connection.execute(f"UPDATE {name}_a SET id = 4 WHERE id = 3")
        connection.execute(f"INSERT INTO {name}_a VALUES (5, 5, NULL)")
        connection.execute(f"DELETE FROM {name}_a WHERE id = 5")
        capture.drain(12)
        wanted = connection.execute(f"SELECT id, v, note FROM {name}_a ORDER BY id").fetchall()
    capture.task.stop()
    for each in capture.batches:
        if len(each):
            carry(each)
    assert sink.errants == []
    assert copy.rows("SELECT id, v, note FROM copy ORDER BY id") == wanted == [(2, 20.0, None), (4, 3.0, "c")]
    sink.task.stop()
