"""The Cassandra sinks against a real node: rows, deletes, TTL, timestamps, poison, tables, killed workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cassandra import OperationTimedOut
from cassandra.cluster import Cluster, NoHostAvailable, Session
from tests.connect.connectors.contexts import started_sink
from tests.connect.connectors.killed_sink import changes, last_of_each, run_with_kills
from tests.stores import java_servers

from barnabas.connect.connectors.cassandra.cassandra_sink import (
    MappedCassandraSinkConnector,
    TableCassandraSinkConnector,
)
from barnabas.connect.data import (
    INT32,
    INT64,
    OPTIONAL_STRING,
    TIMESTAMP,
    Column,
    Header,
    Records,
    Schema,
    array,
    decimal,
    struct,
)
from barnabas.connect.plugins import ConnectError, RetriableError, SinkTask
from barnabas.testing.broker import Broker

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
KEY = struct(id=INT32)
ORDER = struct(name="Order", item=OPTIONAL_STRING, price=decimal(2, optional=True), at=TIMESTAMP)
NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


@dataclass
class Server:
    port: int
    session: Session

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return sorted(tuple(each) for each in self.session.execute(query, timeout=60))


@pytest.fixture(scope="module")
def node() -> Iterator[java_servers.Cassandra]:
    reason = java_servers.CASSANDRA.available()
    if reason is not None:
        pytest.skip(f"no Cassandra: {reason}")
    with java_servers.Cassandra(flags=("-Dcassandra.test.fail_writes_ks=broken",)) as found:
        yield found


@pytest.fixture(scope="module")
def server(node: java_servers.Cassandra) -> Iterator[Server]:
    cluster = Cluster(["127.0.0.1"], port=node.port, connect_timeout=60)
    session = cluster.connect()
    session.default_timeout = 60
    session.execute(
        "CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
    )
    yield Server(node.port, session)
    cluster.shutdown()


def records(
    topic: str,
    rows: Sequence[tuple[Any, Any]],
    first: int = 0,
    key: Schema | None = None,
    value: Schema | None = None,
    headers: tuple[Header, ...] = (),
) -> Records:
    count = len(rows)
    return Records.of(
        topic,
        Column.of([each for _, each in rows], value),
        Column.of([each for each, _ in rows], key),
        partitions=[0] * count,
        offsets=list(range(first, first + count)),
        timestamps=[1_700_000_000_000] * count,
        headers=[headers] * count,
    )


def reporting(errant: list[Any] | None) -> Any:
    def report(some: Records, indices: Sequence[int], error: BaseException) -> None:
        assert errant is not None, error
        errant.extend((some.offsets[index].as_py(), str(error)) for index in indices)

    return report


def mapped(
    server: Server, table: str, mapping: str, errant: list[Any] | None = None, **more: str
) -> SinkTask:
    config = {
        "contactPoints": "127.0.0.1",
        "port": str(server.port),
        "loadBalancing.localDc": "datacenter1",
        f"topic.t.shop.{table}.mapping": mapping,
    }
    config |= {f"topic.t.shop.{table}.{name}": value for name, value in more.items()}
    return started_sink(MappedCassandraSinkConnector, config, errant=reporting(errant))


def test_rows_of_a_mapping_and_their_deletes(server: Server) -> None:
    server.session.execute(
        "CREATE TABLE shop.a (id int, n int, name text, at timestamp, made timeuuid, PRIMARY KEY (id, n))"
    )
    task = mapped(server, "a", "id=key, n=value.n, name=value.name, at=header.at, made=now()")
    rows = [(1, {"n": 1, "name": "x"}), (1, {"n": 2, "name": "y"}), (2, {"n": 1, "name": "z"})]
    header = (Header("at", "2024-05-01T12:00:00Z"),)
    for _ in range(2):
        task.put(records("t", rows, headers=header))
    query = "SELECT id, n, name FROM shop.a"
    assert server.rows(query) == [(1, 1, "x"), (1, 2, "y"), (2, 1, "z")]
    assert server.session.execute("SELECT at FROM shop.a").one()[0] == NOON.replace(tzinfo=None)
    task.put(records("t", [(1, {"n": 1, "name": "w"}), (1, {"n": 1, "name": None}), (2, {"n": 1})], 3))
    assert server.rows(query) == [(1, 2, "y")]
    task.stop()


def test_the_last_change_of_a_row_wins_within_one_batch(server: Server) -> None:
    server.session.execute("CREATE TABLE shop.b (id int PRIMARY KEY, n int)")
    task = mapped(server, "b", "id=key, n=value.n")
    rows: list[tuple[Any, Any]] = [(n % 7, {"n": n}) for n in range(700)]
    rows += [(1, None), (2, None), (2, {"n": 5})]
    for _ in range(2):
        task.put(records("t", rows))
        expected = {id: max(n for n in range(700) if n % 7 == id) for id in range(7)} | {2: 5}
        del expected[1]
        assert server.rows("SELECT id, n FROM shop.b") == sorted(expected.items())
    task.stop()


def test_ttl_timestamps_and_nulls(server: Server) -> None:
    server.session.execute("CREATE TABLE shop.c (id int PRIMARY KEY, n int, m int)")
    task = mapped(
        server, "c", "id=key, n=value.n, m=value.m, __ttl=value.ttl, __timestamp=value.ts",
        ttlTimeUnit="MINUTES", timestampTimeUnit="SECONDS",
    )  # fmt: skip
    task.put(records("t", [(1, {"n": 1, "m": 2, "ttl": 60, "ts": 100}), (2, {"n": 1, "m": 2})]))
    task.put(records("t", [(1, {"n": 9, "ts": 99}), (2, {"n": 5, "m": None})], 2))
    found = server.rows("SELECT id, n, m, TTL(n), WRITETIME(n) FROM shop.c")
    assert [row[:3] for row in found] == [(1, 1, 2), (2, 5, 2)]
    assert 3000 < found[0][3] <= 3600 and found[0][4] == 100_000_000 and found[1][3] is None
    task.stop()
    task = mapped(server, "c", "id=key, n=value.n, m=value.m", nullToUnset="false", ttl="1000")
    task.put(records("t", [(2, {"n": 6, "m": None})], 4))
    assert server.rows("SELECT id, n, m FROM shop.c WHERE id = 2") == [(2, 6, None)]
    task.stop()
    config = {
        "contactPoints": "127.0.0.1", "port": str(server.port), "topic.t.shop.c.mapping": "id=key, n=value.n",
        "barnabas.write.timestamps": "record",
    }  # fmt: skip
    task = started_sink(MappedCassandraSinkConnector, config, errant=reporting(None))
    task.put(records("t", [(3, {"n": 1})], 7))
    assert server.rows("SELECT WRITETIME(n) FROM shop.c WHERE id = 3") == [(1_700_000_000_000_007,)]
    task.stop()


def test_a_query_of_the_user_and_a_table_of_collections(server: Server) -> None:
    server.session.execute("CREATE TABLE shop.d (id int PRIMARY KEY, n counter)")
    task = mapped(
        server, "d", "step=value.n, which=key",
        query="UPDATE shop.d SET n = n + :step WHERE id = :which", deletesEnabled="false",
    )  # fmt: skip
    task.put(records("t", [(1, {"n": 2}), (1, {"n": 3}), (2, {"n": 1})]))
    assert server.rows("SELECT id, n FROM shop.d") == [(1, 5), (2, 1)]
    task.stop()
    server.session.execute("CREATE TYPE shop.place (city text, zip int)")
    server.session.execute(
        "CREATE TABLE shop.e (id int PRIMARY KEY, tags set<text>, m map<text, int>, p frozen<place>)"
    )
    task = mapped(server, "e", "id=key, tags=value.tags, m=value.m, p=value.p")
    value = {"tags": ["b", "a"], "m": {"x": "1"}, "p": {"city": "Ulm", "zip": 89073}}
    task.put(records("t", [(1, value)]))
    [(tags, m, place)] = server.session.execute("SELECT tags, m, p FROM shop.e")
    assert (set(tags), dict(m), (place.city, place.zip)) == ({"a", "b"}, {"x": 1}, ("Ulm", 89073))
    task.stop()


def test_poison_is_reported_alone(server: Server) -> None:
    server.session.execute("CREATE TABLE shop.f (id text, n int, v text, PRIMARY KEY (id, n))")
    errant: list[Any] = []
    task = mapped(server, "f", "id=key, n=value.n, v=value.v", errant)
    rows = [
        ("a", {"n": 1, "v": "x"}),
        ("a", {"n": "one", "v": "x"}),
        (None, {"n": 1, "v": "x"}),
        ("k" * 70_000, {"n": 1, "v": "x"}),
        ("a", {"n": 2, "v": "y"}),
    ]
    task.put(records("t", rows))
    assert [offset for offset, _ in errant] == [1, 2, 3]
    assert "does not fit a column of type int" in errant[0][1]
    assert "would be null" in errant[1][1]
    assert "Cassandra refuses the record" in errant[2][1]
    assert server.rows("SELECT id, n FROM shop.f") == [("a", 1), ("a", 2)]
    task.stop()


def test_records_that_nodes_fail_to_write_are_reported_at_last(server: Server) -> None:
    replicated = "WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
    server.session.execute(f"CREATE KEYSPACE broken {replicated}")  # the node fails all writes to it
    for space in ("broken", "shop"):
        server.session.execute(f"CREATE TABLE {space}.w (id int PRIMARY KEY, n int)")
    errant: list[Any] = []
    config = {
        "contactPoints": "127.0.0.1",
        "port": str(server.port),
        "loadBalancing.localDc": "datacenter1",
        "topic.t.shop.w.mapping": "id=key, n=value.n",
        "topic.u.broken.w.mapping": "id=key, n=value.n",
        "retry.backoff.ms": "1",
    }
    task = started_sink(MappedCassandraSinkConnector, config, errant=reporting(errant))
    batch = records("u", [(1, {"n": 1}), (1, {"n": 2}), (2, {"n": 3})])
    for _ in range(10):
        with pytest.raises(RetriableError, match="write"):
            task.put(batch)
        assert errant == []
    task.put(batch)
    assert [offset for offset, _ in errant] == [0, 1, 2]
    assert "Cassandra refuses the record" in errant[0][1]
    task.put(records("t", [(1, {"n": 1})], 3))
    assert server.rows("SELECT id, n FROM shop.w") == [(1, 1)]
    with pytest.raises(RetriableError):
        task.put(batch)  # from the beginning
    task.stop()


def test_tables_and_servers_that_are_not_there(server: Server) -> None:
    task = mapped(server, "nowhere", "id=key")
    with pytest.raises(ConnectError, match="there is no table"):
        task.put(records("t", [(1, {})]))
    task.stop()
    server.session.execute("CREATE TABLE shop.g (id int PRIMARY KEY, n int)")
    task = mapped(server, "g", "id=key, m=value.m")
    with pytest.raises(ConnectError, match="has no column m: it has id, n"):
        task.put(records("t", [(1, {})]))
    task.stop()
    task = mapped(Server(1, server.session), "g", "id=key, n=value.n")
    with pytest.raises(RetriableError, match="cannot take records"):
        task.put(records("t", [(1, {"n": 1})]))
    task.stop()
    task = mapped(server, "g", "id=key, n=value.n")
    task.put(records("t", [(1, {"n": 1})]))
    server.session.execute("DROP TABLE shop.g")
    with pytest.raises(ConnectError, match="does not exist"):
        task.put(records("t", [(1, {"n": 1})]))
    task.stop()


def test_tables_by_schema_are_created_and_grow(server: Server) -> None:
    config = {
        "cassandra.contact.points": "127.0.0.1",
        "cassandra.port": str(server.port),
        "cassandra.keyspace": "made",
        "cassandra.keyspace.create.replication.factor": "1",
        "cassandra.table.create.compression.algorithm": "ZSTD",
        "cassandra.table.create.caching": "KEYS_ONLY",
    }
    errant: list[Any] = []
    task = started_sink(TableCassandraSinkConnector, config, errant=reporting(errant))
    rows = [({"id": 1}, {"item": "a", "price": None, "at": NOON}), ({"id": 2}, {"item": None, "at": NOON})]
    task.put(records("Or.ders", rows, 0, KEY, ORDER))
    wider = struct(name="Order", item=OPTIONAL_STRING, tags=array(INT64))
    task.put(
        records("Or.ders", [({"id": 3}, {"item": "c", "tags": [1, 2]}), ({"id": 1}, None)], 2, KEY, wider)
    )
    task.put(records("Or.ders", [({"id": 9}, None)], 4, KEY))
    found = server.session.execute('SELECT id, item, at, tags FROM made."Or_ders"')
    assert sorted((row.id, row.item, row.at, row.tags) for row in found) == [
        (2, None, NOON.replace(tzinfo=None), None),
        (3, "c", None, [1, 2]),
    ]
    assert errant == []
    task.put(records("Or.ders", [("x", {"item": "c"})], 5))
    assert "ValueToKey" in errant[0][1]
    task.stop()


def test_killed_workers_leave_the_last_value_of_each_key(
    node: java_servers.Cassandra,
    server: Server,
    barnabas_broker: Broker,
    barnabas_topic: str,
    tmp_path: Path,
) -> None:
    """The node is killed, too: once while no worker lives, once under a worker that writes."""
    rows = changes("cassandra", 2000, 60)
    server.session.execute("CREATE TABLE shop.killed (key text PRIMARY KEY, id int, text text)")
    connector = {
        "name": "cassandra",
        "connector.class": "com.datastax.oss.kafka.sink.CassandraSinkConnector",
        "topics": barnabas_topic,
        "contactPoints": "127.0.0.1",
        "port": str(server.port),
        "loadBalancing.localDc": "datacenter1",
        f"topic.{barnabas_topic}.shop.killed.mapping": "key=key, id=value.id, text=value.text",
        "maxConcurrentRequests": "1",
        "maxNumberOfRecordsInBatch": "2",
    }

    def highest() -> int:
        try:
            found = server.session.execute("SELECT id FROM shop.killed")
        except (NoHostAvailable, OperationTimedOut):
            return -1  # the session has not found the node again
        return max((row[0] for row in found), default=-1)

    run_with_kills(tmp_path, barnabas_broker.bootstrap, connector, rows, highest, node)
    found = server.session.execute("SELECT key, id, text FROM shop.killed")
    assert {row.key: {"id": row.id, "text": row.text} for row in found} == last_of_each(rows)
