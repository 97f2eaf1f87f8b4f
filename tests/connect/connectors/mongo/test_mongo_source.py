"""The MongoDB source against a server of MongoDB's protocol: events, copies, and where it goes on."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bson
import orjson
import pytest
from pymongo import MongoClient
from tests.connect.connectors.contexts import Offsets, started_source
from tests.connect.connectors.killed_source import read_with_kills
from tests.stores import java_servers

from barnabas.connect.connectors.mongo.mongo_source import MongoSourceConnector
from barnabas.connect.connectors.mongo.source_settings import plan_of
from barnabas.connect.data import Record
from barnabas.connect.plugins import ConnectError, Plugins, RetriableError
from barnabas.testing.broker import Broker
from barnabas.testing.waiting import wait_until

MODE = "startup.mode"


@pytest.fixture
def collection() -> Iterator[tuple[str, Any]]:
    reason = java_servers.MONGO.available()
    if reason is not None:
        pytest.skip(f"no server of MongoDB's protocol: {reason}")
    with java_servers.mongo() as uri:
        client: MongoClient[dict[str, Any]] = MongoClient(uri)
        yield uri, client["shop"]["orders"]
        client.close()


def config(uri: str, **more: str) -> dict[str, str]:
    # The server of the tests gives no token for a stream that begins now, as MongoDB does.
    start = {
        "startup.mode": "timestamp",
        "startup.mode.timestamp.start.at.operation.time": str(int(time.time())),
    }
    return {"connection.uri": uri, "database": "shop", "collection": "orders", **start, **more}


def read(task: Any, count: int, offsets: Offsets | None = None) -> list[Record]:
    found: list[Record] = []

    def more() -> bool:
        batch = task.poll()
        if batch is not None:
            found.extend(batch.rows())
            if offsets is not None:
                offsets.store(batch)
        return len(found) >= count

    wait_until(more, 30.0)
    return found


@pytest.mark.long
def test_events_are_read_once_over_killed_tasks(collection: tuple[str, Any]) -> None:
    uri, orders = collection
    given, offsets, rng = config(uri, **{"poll.max.batch.size": "3"}), Offsets(), random.Random("mongo")
    seen: list[Any] = []
    written = 0
    while written < 60 or len(seen) < 60:
        task = started_source(MongoSourceConnector, given, offsets)
        for _ in range(rng.randrange(1, 6)):
            if written < 60:
                orders.insert_one({"_id": written, "text": "x"})
                written += 1
            batch = task.poll()
            if batch is None or rng.random() < 0.2:
                break  # the task dies before the records are durable
            offsets.store(batch)
            seen += [orjson.loads(row.value)["documentKey"]["_id"] for row in batch.rows()]
        task.stop()
    assert seen == list(range(60))


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("form", ["json", "schema"])
def test_killed_workers_read_each_event(
    form: str, collection: tuple[str, Any], barnabas_broker: Broker, barnabas_topic: str, tmp_path: Path
) -> None:
    uri, orders = collection

    def write(first: int, end: int) -> None:
        orders.insert_many([{"_id": number, "text": "x"} for number in range(first, end)])

    given = config(
        uri,
        **{
            "name": "mongo-source",
            "connector.class": "com.mongodb.kafka.connect.MongoSourceConnector",
            "topic.namespace.map": f'{{"*": "{barnabas_topic}"}}',
            "poll.max.batch.size": "5",
            "publish.full.document.only": "true",
            "output.format.value": form,
            "output.schema.infer.value": "true",
        },
    )
    read_with_kills(
        tmp_path,
        barnabas_broker.bootstrap,
        given,
        barnabas_topic,
        write,
        lambda value: number_of(orjson.loads(value)),
        1000,
    )


def number_of(value: Any) -> int:
    return int((orjson.loads(value) if isinstance(value, str) else value)["_id"])


@pytest.mark.long
def test_a_copy_comes_first_and_the_stream_behind_it(collection: tuple[str, Any]) -> None:
    uri, orders = collection
    orders.insert_many([{"_id": n} for n in range(7)])
    time.sleep(1.1)  # positions of the stream have seconds
    more = {"startup.mode": "copy_existing", "poll.max.batch.size": "3", "publish.full.document.only": "true"}
    given, offsets = config(uri, **more), Offsets()
    given |= {"publish.full.document.only.tombstone.on.delete": "true", "topic.prefix": "p"}
    task = started_source(MongoSourceConnector, given, offsets)
    assert len(read(task, 3, offsets)) == 3
    task.stop()  # in the middle of the copy, which begins again
    task = started_source(MongoSourceConnector, given, offsets)
    rows = read(task, 7, offsets)
    assert [orjson.loads(row.value) for row in rows] == [{"_id": n} for n in range(7)]
    assert rows[0].topic == "p.shop.orders" and orjson.loads(rows[0].key) == {"_id": 0}
    orders.insert_one({"_id": 7})
    orders.delete_one({"_id": 0})
    rows = read(task, 2, offsets)
    assert [row.value and orjson.loads(row.value) for row in rows] == [{"_id": 7}, None]
    assert orjson.loads(rows[1].key) == {"_id": 0}
    task.stop()
    orders.insert_one({"_id": 8})
    task = started_source(MongoSourceConnector, {**given, "output.format.value": "bson"}, offsets)
    [row] = read(task, 1, offsets)
    assert bson.decode(row.value) == {"_id": 8}
    task.stop()


def test_a_server_that_is_away_is_tried_again() -> None:
    given = {"connection.uri": "mongodb://127.0.0.1:1", "server.selection.timeout.ms": "100"}
    task = started_source(MongoSourceConnector, given, Offsets())
    with pytest.raises(RetriableError, match="MongoDB is away"):
        task.poll()
    task.stop()


def test_settings_topics_and_offsets() -> None:
    def plan(**more: str) -> Any:
        given = {name.replace("_", "."): text for name, text in more.items()}
        return plan_of(
            MongoSourceConnector.CONFIG.parse({"connection.uri": "mongodb://u:p@h:1/?a=b", **given})
        )

    found = plan(
        database="d", topic_namespace_map='{"d.c": "mine", "d": "base", "*": "rest"}', topic_suffix="s"
    )
    assert found.source == {"ns": "mongodb://h:1/d"}
    assert [found.topic_of(each) for each in ("d.c", "d.x", "e.x")] == ["mine.s", "base.x.s", "rest.s"]
    assert plan().topic_of("d.c.e") == "d.c.e"
    check = MongoSourceConnector().check
    for name, text in (
        ("collection", "c"), ("pipeline", "{}"), ("topic.namespace.map", "[]"),
        ("output.json.formatter", "X"),
        ("startup.mode", "timestamp"), ("startup.mode.timestamp.start.at.operation.time", "soon"),
        ("startup.mode.copy.existing.namespace.regex", "("), ("connection.uri", "http://x"),
    ):  # fmt: skip
        assert check({name: text}), name
    assert check({}) == {}
    assert Plugins().connector("com.mongodb.kafka.connect.MongoSourceConnector") is MongoSourceConnector
    good = ({"ns": "x"}, {"_id": '{"_data": "1"}'})
    assert MongoSourceConnector().alter_offsets({}, [good, ({"ns": "x"}, None)])
    with pytest.raises(ConnectError, match="no resume token"):
        MongoSourceConnector().alter_offsets({}, [({"ns": "x"}, {"_id": "{"})])
