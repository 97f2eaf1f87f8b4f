"""The MongoDB sink against a server of MongoDB's protocol: writes, deletes, poison, killed workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient
from pymongo.uri_parser import parse_uri
from tests.connect.connectors.contexts import started_sink
from tests.connect.connectors.killed_sink import Store, changes, last_of_each, run_with_kills
from tests.security.tls_world import certificates
from tests.stores import java_servers
from tests.stores.tls_front import tls_tunnel

from barnabas.connect.connectors.mongo.mongo_sink import MongoSinkConnector
from barnabas.connect.data import Column, Records
from barnabas.connect.plugins import ConnectError, RetriableError, SinkTask
from barnabas.testing.broker import Broker

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]
ID = "document.id.strategy"
STRATEGY = "com.mongodb.kafka.connect.sink.writemodel.strategy"


@pytest.fixture(scope="module")
def uri() -> Iterator[str]:
    reason = java_servers.MONGO.available()
    if reason is not None:
        pytest.skip(f"no server of MongoDB's protocol: {reason}")
    with java_servers.mongo() as found:
        yield found


@pytest.fixture
def database(uri: str) -> Iterator[Any]:
    client: MongoClient[dict[str, Any]] = MongoClient(uri)
    client.drop_database("shop")
    yield client["shop"]
    client.close()


def records(rows: Sequence[tuple[Any, Any]], first: int = 0, topic: str = "t") -> Records:
    count = len(rows)
    return Records.of(
        topic,
        Column.of([value for _, value in rows]),
        Column.of([key for key, _ in rows]),
        partitions=[0] * count,
        offsets=list(range(first, first + count)),
    )


def sink(uri: str, errant: list[Any] | None = None, **more: str) -> SinkTask:
    config = {"connection.uri": uri, "database": "shop", "retries.defer.timeout": "10", **more}

    def report(some: Records, indices: Sequence[int], error: BaseException) -> None:
        assert errant is not None, error
        errant.extend((some.offsets[index].as_py(), str(error)) for index in indices)

    return started_sink(MongoSinkConnector, config, errant=report)


def found_in(collection: Any) -> list[dict[str, Any]]:
    return sorted(collection.find(), key=lambda each: str(each["_id"]))


def test_stores_of_certificates_are_settings(uri: str, database: Any) -> None:
    """The server has no TLS: a tunnel has."""
    found = certificates()
    trusted = found.write("mongo.p12", found.authority.trust_pkcs12("ca", "trusted"))
    name = "connection.ssl.truststore"
    with tls_tunnel(int(parse_uri(uri)["nodelist"][0][1]), found.broker_file) as port:
        secured = f"mongodb://127.0.0.1:{port}/?directConnection=true"
        for number, more in enumerate(({name: trusted, f"{name}Password": "trusted"}, {name: found.ca_file})):
            task = sink(secured, **{ID: "FullKeyStrategy"}, **more)
            task.put(records([({"k": number}, {"n": 1})]))
            task.stop()
        assert len(found_in(database.t)) == 2
        task = sink(secured, **{name: found.other_ca_file, "server.selection.timeout.ms": "1000"})
        with pytest.raises(RetriableError, match="certificate verify failed"):
            task.put(records([({"k": 1}, {"n": 1})]))
        task.stop()
    with pytest.raises(ConnectError, match="password"):
        sink(uri, **{name: trusted, f"{name}Password": "wrong"}).put(records([({"k": 1}, {"n": 1})]))


@pytest.mark.parametrize("ordered", ["true", "false"])
def test_replacements_and_deletes_keep_their_order(uri: str, database: Any, ordered: str) -> None:
    more = {ID: "FullKeyStrategy", "delete.on.null.values": "true", "bulk.write.ordered": ordered}
    task = sink(uri, **more)
    rows = [({"k": 1}, {"n": 1}), ({"k": 2}, {"n": 2}), ({"k": 1}, {"n": 3}), ({"k": 2}, None)]
    for _ in range(2):
        task.put(records([*rows, ({"k": 3}, {"n": 4})]))
        assert found_in(database.t) == [{"_id": {"k": 1}, "n": 3}, {"_id": {"k": 3}, "n": 4}]
    task.stop()


def test_inserts_that_come_again_are_not_doubled(uri: str, database: Any) -> None:
    task = sink(
        uri, **{ID: "KafkaMetaDataStrategy", "writemodel.strategy": f"{STRATEGY}.InsertOneDefaultStrategy"}
    )
    for _ in range(2):
        task.put(records([(None, {"n": 1}), (None, {"n": 2})]))
    assert found_in(database.t) == [{"_id": "t#0#0", "n": 1}, {"_id": "t#0#1", "n": 2}]
    task.stop()


def test_updates_and_business_keys(uri: str, database: Any) -> None:
    task = sink(
        uri,
        **{ID: "ProvidedInValueStrategy", "writemodel.strategy": f"{STRATEGY}.UpdateOneTimestampsStrategy"},
    )
    task.put(records([(None, {"_id": 1, "a": 1}), (None, {"_id": 1, "b": 2})]))
    [row] = found_in(database.t)
    assert (row["a"], row["b"]) == (1, 2) and row["_insertedTS"] <= row["_modifiedTS"]
    task.stop()
    business = {
        ID: "PartialValueStrategy",
        f"{ID}.partial.value.projection.type": "allowlist",
        f"{ID}.partial.value.projection.list": "sku",
        f"{ID}.overwrite.existing": "true",
        "writemodel.strategy": f"{STRATEGY}.ReplaceOneBusinessKeyStrategy",
        "collection": "goods",
    }
    task = sink(uri, **business)
    task.put(
        records([(None, {"sku": "x", "n": 1}), (None, {"sku": "y", "n": 2}), (None, {"sku": "x", "n": 3})])
    )
    assert sorted((row["sku"], row["n"]) for row in database.goods.find()) == [("x", 3), ("y", 2)]
    task.stop()


def test_fields_name_collections_and_events_change_rows(uri: str, database: Any) -> None:
    mapper = "com.mongodb.kafka.connect.sink.namespace.mapping.FieldPathNamespaceMapper"
    task = sink(uri, **{"namespace.mapper": mapper, "namespace.mapper.value.collection.field": "kind.name"})
    task.put(records([(None, {"_id": 1, "kind": {"name": "cats"}}), (None, {"_id": 2})]))
    assert [row["_id"] for row in database.cats.find()] == [1] and [
        row["_id"] for row in database.t.find()
    ] == [2]
    task.stop()
    handler = "com.mongodb.kafka.connect.sink.cdc.debezium.rdbms.postgres.PostgresHandler"
    task = sink(uri, **{"change.data.capture.handler": handler, "collection": "rows"})
    rows = [
        ({"id": 1}, {"op": "c", "after": {"id": 1, "n": 1}}),
        ({"id": 2}, {"op": "r", "after": {"id": 2, "n": 2}}),
        ({"id": 1}, {"op": "u", "before": None, "after": {"id": 1, "n": 3}}),
        ({"id": 2}, {"op": "d", "before": {"id": 2}, "after": None}),
        ({"id": 2}, None),
    ]
    task.put(records(rows))
    assert found_in(database.rows) == [{"_id": {"id": 1}, "n": 3}]
    task.stop()


@pytest.mark.parametrize("ordered", ["true", "false"])
def test_poison_is_reported_alone(uri: str, database: Any, ordered: str) -> None:
    database.t.create_index("n", unique=True)
    errant: list[Any] = []
    task = sink(uri, errant, **{ID: "ProvidedInValueStrategy", "bulk.write.ordered": ordered})
    rows = [
        {"_id": 1, "n": 1},
        {"_id": 2, "n": 1},
        "text",
        {"n": 3},
        {"_id": 5, "n": 1 << 70},
        {"_id": 6, "n": 6},
    ]
    task.put(records([(None, each) for each in rows]))
    assert [offset for offset, _ in errant] == [1, 2, 3, 4]
    assert "duplicate key" in errant[0][1] and "no JSON document" in errant[1][1]
    assert "has no field _id" in errant[2][1] and "64 bits" in errant[3][1]
    assert [row["_id"] for row in found_in(database.t)] == [1, 6]
    task.stop()


def test_a_server_that_is_away_is_tried_again(database: Any) -> None:
    away = {"connection.uri": "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=200", "max.num.retries": "1"}
    config = {"database": "shop", "retries.defer.timeout": "1", "server.selection.timeout.ms": "200", **away}
    task = started_sink(MongoSinkConnector, config)
    with pytest.raises(RetriableError, match="cannot take records"):
        task.put(records([(None, {"n": 1})]))
    with pytest.raises(ConnectError, match="gave up after 1 retries"):
        task.put(records([(None, {"n": 1})]))
    task.stop()


def test_killed_workers_leave_the_last_value_of_each_key(
    uri: str, barnabas_broker: Broker, barnabas_topic: str, tmp_path: Path
) -> None:
    """The server goes away, too: once while no worker lives, once under a worker that writes."""
    with java_servers.StoredMongo() as store:
        lives_through_kills(store.uri, barnabas_broker, barnabas_topic, tmp_path, store)


def lives_through_kills(uri: str, broker: Broker, topic: str, folder: Path, store: Store) -> None:
    rows = changes("mongo", 2000, 60)
    keyed = [(f'{{"_id": "{key}"}}', value) for key, value in rows]
    connector = {
        "name": "mongo",
        "connector.class": "com.mongodb.kafka.connect.MongoSinkConnector",
        "topics": topic,
        "connection.uri": uri,
        "database": "shop",
        "collection": "killed",
        ID: "com.mongodb.kafka.connect.sink.processor.id.strategy.ProvidedInKeyStrategy",
        "delete.on.null.values": "true",
        "max.batch.size": "20",
        "retries.defer.timeout": "500",
        "server.selection.timeout.ms": "2000",
    }
    with MongoClient[dict[str, Any]](uri) as client:
        killed = client["shop"]["killed"]

        def highest() -> int:
            return max((row["id"] for row in killed.find()), default=-1)

        run_with_kills(folder, broker.bootstrap, connector, keyed, highest, store)
        found = {row.pop("_id"): row for row in killed.find()}
    assert found == last_of_each(rows)
