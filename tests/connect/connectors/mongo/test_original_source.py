"""The MongoDB source beside MongoDB's own connector: the same settings and changes, the same records."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from bson import Binary, Code, Decimal128, Int64, MaxKey, ObjectId, Regex, Timestamp
from bson.datetime_ms import DatetimeMS
from pymongo import MongoClient
from tests.connect.connectors.contexts import Offsets, started_source
from tests.connect.connectors.mongo.test_mongo_source import read
from tests.stores import java_servers, original_connectors
from tests.stores.original_connectors import Read, differences, reading

from barnabas.connect.connectors.mongo.mongo_source import MongoSourceConnector
from barnabas.connect.convert.json import JsonConverter
from barnabas.testing.waiting import wait_until

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]
FORMATTERS = "com.mongodb.kafka.connect.source.json.formatter"
ID = ObjectId("6553f100a1b2c3d4e5f60718")
DOCUMENTS: list[dict[str, Any]] = [
    {
        "_id": ID,
        "b": 1,
        "a": {"y": 2.5, "x": "t", "_id": 3},
        "l": [1, 2],
        "m": [{"p": 1}, {"q": "s"}, {"p": None, "deep": [[1], []]}],
        "d": datetime(2024, 1, 2, 3, 4, 5, 678000, tzinfo=UTC),
        "n": None,
        "nothing": [None],
        "dec": Decimal128("1.50"),
        "i": Int64(5),
        "bin": b"ab",
        "uuid": Binary(b"0123456789abcdef", 4),
        "ts": Timestamp(17, 1),
        "mixed": [1, "a", None, {"z": 1}],
        "wide": [1, 2.5],
        "t": True,
        "re": Regex("a"),
        "js": Code("f()"),
        "max": MaxKey(),
        "Überschrift": 'ä "quoted" \n',
    },
    {"_id": 7, "d": datetime(2024, 1, 2, 3, 4, 0, tzinfo=UTC), "small": Decimal128("1E-7")},
    {"_id": "text", "d": datetime(1969, 1, 2, 3, 4, 0, 100000, tzinfo=UTC)},
    {"_id": {"a": 1, "b": [True]}},
]
# Python has no such years: texts and numbers are the same as with Java, timestamps of Connect are refused.
FAR: list[dict[str, Any]] = [
    {"_id": 8, "d": DatetimeMS(253_402_300_801_000)},
    {"_id": 9, "d": DatetimeMS(-62_167_219_200_001)},
    {"_id": 10, "d": DatetimeMS(-99_999_999_999_990)},
]
OWN = {
    "type": "record",
    "name": "shop.Order",
    "fields": [
        {"name": "_id", "type": "string"},
        {"name": "fullDocument.d", "type": "long"},
        {"name": "count", "type": "int", "default": 42},
        {"name": "ns", "type": {"type": "map", "values": "string"}},
        {"name": "documentKey", "type": ["null", "bytes"]},
        {"name": "clusterTime", "type": ["null", "long"]},
        {
            "name": "fullDocument",
            "type": {
                "type": "record",
                "name": "Document",
                "fields": [{"name": "n", "type": ["null", "int"]}],
            },
        },
    ],
}


@pytest.fixture(scope="module")
def uri() -> Iterator[str]:
    for server in (java_servers.MONGO, original_connectors.MONGO):
        reason = server.available()
        if reason is not None:
            pytest.skip(f"needs {server.name}: {reason}")
    with java_servers.mongo() as found:
        yield found


def ours(config: dict[str, str], count: int) -> list[Read]:
    """Records of our source as JsonConverter writes them."""
    task = started_source(MongoSourceConnector, config, Offsets())
    found: list[Read] = []
    converters = {True: JsonConverter(), False: JsonConverter()}
    for is_key, each in converters.items():
        each.configure({}, is_key)
    batches: list[Any] = []
    poll = task.poll

    def kept() -> Any:
        batch = poll()
        if batch is not None:
            batches.append(batch)
        return batch

    task.poll = kept  # type: ignore[method-assign]
    try:
        read(task, count)
    finally:
        task.stop()
    for batch in batches:
        keys = converters[True].to_bytes("t", batch.keys).data.to_pylist()
        values = converters[False].to_bytes("t", batch.values).data.to_pylist()
        for topic, key, value in zip(batch.topics.to_pylist(), keys, values, strict=True):
            found.append((topic, json.loads(key or "null"), json.loads(value or "null")))
    return found


def told(record: Read) -> Any:
    """A record for a comparison: texts that hold JSON are compared as what they hold."""

    def opened(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: opened(each) for name, each in value.items()}
        if isinstance(value, list):
            return [opened(each) for each in value]
        if isinstance(value, str) and value.startswith("{"):
            return ["JSON", json.loads(value)]
        return value

    return [opened(part) for part in record]


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"output.json.formatter": f"{FORMATTERS}.ExtendedJson"},
        {
            "output.json.formatter": f"{FORMATTERS}.SimplifiedJson",
            "change.stream.document.key.as.key": "false",
        },
        {"output.format.value": "bson", "output.format.key": "bson"},
        {"output.format.value": "schema", "output.format.key": "schema"},
        {
            "output.format.value": "schema",
            "output.schema.infer.value": "true",
            "publish.full.document.only": "true",
            "output.json.formatter": f"{FORMATTERS}.SimplifiedJson",
        },
        {"output.format.value": "schema", "output.schema.infer.value": "true"},
        {
            "output.format.value": "schema",
            "output.schema.value": json.dumps(OWN),
            "mongo.errors.tolerance": "all",
            "mongo.errors.deadletterqueue.topic.name": "dead",
        },
        {"startup.mode": "copy_existing"},
        {
            "startup.mode": "copy_existing",
            "output.format.key": "schema",
            "output.format.value": "schema",
            "output.schema.infer.value": "true",
            "publish.full.document.only": "true",
        },
    ],
    ids=["json", "extended", "simplified", "bson", "schema", "documents", "events", "own", "copy", "copied"],
)
def test_records_are_those_of_the_original(
    uri: str, more: dict[str, str], request: pytest.FixtureRequest
) -> None:
    name = request.node.callspec.id
    config = {
        "connection.uri": uri,
        "database": "shop",
        "collection": name,
        # The server of the tests tells no namespace.
        "pipeline": json.dumps([{"$addFields": {"ns": {"db": "shop", "coll": name}}}]),
        "poll.await.time.ms": "200",
        "startup.mode": "timestamp",
        "startup.mode.timestamp.start.at.operation.time": str(int(time.time())),
        **more,
    }
    with MongoClient[dict[str, Any]](uri) as client:
        documents = [*DOCUMENTS, *(FAR if "output.schema.infer.value" not in more else ())]
        client["shop"][name].insert_many(documents)
    count = len(documents)
    with reading(original_connectors.MONGO, original_connectors.MONGO_SOURCE, config) as original:
        wait_until(lambda: len(original.records) >= count, 60)
        expected = [told(each) for each in original.records]
    assert differences([told(each) for each in ours(config, count)], expected) == []
