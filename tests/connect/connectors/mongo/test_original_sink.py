"""The MongoDB sink beside MongoDB's own connector: the same settings and records, the same documents."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest
from bson import Binary, ObjectId
from pymongo import MongoClient
from tests.connect.connectors.contexts import started_sink
from tests.stores import java_servers, original_connectors
from tests.stores.original_connectors import MONGO_SINK, differences, write

from barnabas.connect.connectors.mongo.mongo_sink import MongoSinkConnector
from barnabas.connect.convert.json import JsonConverter
from barnabas.connect.data import Records
from barnabas.connect.data.column import Column

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]
SINK = "com.mongodb.kafka.connect.sink"
IDS = f"{SINK}.processor.id.strategy"
WRITES = f"{SINK}.writemodel.strategy"
ADDER = f"{SINK}.processor.DocumentIdAdder"
ID = "document.id.strategy"
OVERWRITE = {f"{ID}.overwrite.existing": "true"}
Row = tuple[Any, Any]  # key and value as JSON with schemas


def typed(kind: str, payload: Any, **more: Any) -> dict[str, Any]:
    return {"schema": {"type": kind, "optional": True, **more}, "payload": payload}


def text(value: Any) -> dict[str, Any]:
    return typed("string", value if isinstance(value, str) else json.dumps(value))


def row(number: int, **more: Any) -> dict[str, Any]:
    """A struct with a field of most types."""
    logical = "org.apache.kafka.connect.data"
    fields = [
        {"field": "n", "type": "int32"},
        {"field": "big", "type": "int64"},
        {"field": "small", "type": "int8"},
        {"field": "x", "type": "double"},
        {"field": "y", "type": "float"},
        {"field": "is", "type": "boolean"},
        {"field": "bytes", "type": "bytes"},
        {"field": "none", "type": "string", "optional": True},
        {"field": "day", "type": "int32", "name": f"{logical}.Date", "version": 1},
        {"field": "time", "type": "int32", "name": f"{logical}.Time", "version": 1},
        {"field": "at", "type": "int64", "name": f"{logical}.Timestamp", "version": 1},
        {
            "field": "price",
            "type": "bytes",
            "name": f"{logical}.Decimal",
            "version": 1,
            "parameters": {"scale": "2"},
        },
        {"field": "list", "type": "array", "items": {"type": "int32"}},
        {
            "field": "map",
            "type": "map",
            "keys": {"type": "string"},
            "values": {"type": "int32", "optional": True},
        },
        {
            "field": "inner",
            "type": "struct",
            "fields": [
                {"field": "a", "type": "string"},
                {"field": "b", "type": "string", "optional": True},
            ],
        },
    ]
    payload = {
        "n": number,
        "big": 5,
        "small": -3,
        "x": 0.1,
        "y": 0.5,
        "is": True,
        "bytes": "YWI=",
        "none": None,
        "day": 19000,
        "time": 3_600_001,
        "at": 1_700_000_000_123,
        "price": "AJY=",
        "list": [1, 2],
        "map": {"k": 1, "l": None},
        "inner": {"a": f"t{number}", "b": None},
        **more,
    }
    return {"schema": {"type": "struct", "fields": fields}, "payload": payload}


def key(number: int) -> dict[str, Any]:
    fields = [{"field": "_id", "type": "int32"}, {"field": "part", "type": "string"}]
    return {"schema": {"type": "struct", "fields": fields}, "payload": {"_id": number, "part": "p"}}


STRUCTS: list[Row] = [(key(1), row(1)), (key(2), row(2)), (key(1), row(3))]
TEXTS: list[Row] = [
    (text({"_id": 1, "k": "x"}), text({"_id": 10, "a": {"b": 1, "c": 2}, "d": None, "e": [1]})),
    (text({"_id": 2, "k": "y"}), text({"_id": {"$oid": "6553f100a1b2c3d4e5f60718"}, "a": {"b": 3}})),
    (text({"_id": 1, "k": "x"}), text({"_id": 10, "a": {"c": 9}, "f": {"$date": 1704164645678}})),
]
UUIDS: list[Row] = [
    (
        text({"_id": "6d01622d-f3c5-4bd5-8b4a-fb2c84bbbd41"}),
        text({"_id": "6d01622d-f3c5-4bd5-8b4a-fb2c84bbbd42"}),
    )
]
POSTGRES = f"{SINK}.cdc.debezium.rdbms.postgres.PostgresHandler"
STREAM = f"{SINK}.cdc.mongodb.ChangeStreamHandler"
MONGO = f"{SINK}.cdc.debezium.mongodb.MongoDbHandler"
PARTIAL = {
    f"{ID}.partial.value.projection.type": "AllowList",
    f"{ID}.partial.value.projection.list": "a.b,_id",
}
CASES: dict[str, tuple[dict[str, str], Sequence[Row]]] = {
    "structs": ({ID: f"{IDS}.ProvidedInKeyStrategy"}, STRUCTS),
    "kafka-meta": ({ID: f"{IDS}.KafkaMetaDataStrategy"}, STRUCTS),
    "full-key": ({ID: f"{IDS}.FullKeyStrategy"}, TEXTS),
    "value": ({ID: f"{IDS}.ProvidedInValueStrategy"}, TEXTS),
    "partial-key": (
        {
            ID: f"{IDS}.PartialKeyStrategy",
            f"{ID}.partial.key.projection.type": "BlockList",
            f"{ID}.partial.key.projection.list": "k",
            f"{ID}.overwrite.existing": "true",
        },
        TEXTS,
    ),
    "partial-key-fields": (
        {
            ID: f"{IDS}.PartialKeyStrategy",
            f"{ID}.partial.key.projection.type": "AllowList",
            f"{ID}.partial.key.projection.list": "k",
            **OVERWRITE,
        },
        TEXTS,
    ),
    "partial-value": (
        {ID: f"{IDS}.PartialValueStrategy", **PARTIAL, f"{ID}.overwrite.existing": "true"},
        TEXTS,
    ),
    "uuid-key": ({ID: f"{IDS}.UuidProvidedInKeyStrategy", f"{ID}.overwrite.existing": "true"}, UUIDS),
    "uuid-value": ({ID: f"{IDS}.UuidProvidedInValueStrategy", f"{ID}.overwrite.existing": "true"}, UUIDS),
    "deletes": (
        {ID: f"{IDS}.ProvidedInKeyStrategy", "delete.on.null.values": "true"},
        [*STRUCTS, (key(1), None)],
    ),
    "update": (
        {ID: f"{IDS}.ProvidedInValueStrategy", "writemodel.strategy": f"{WRITES}.UpdateOneDefaultStrategy"},
        TEXTS,
    ),
    "business": (
        {
            ID: f"{IDS}.PartialValueStrategy",
            f"{ID}.partial.value.projection.type": "AllowList",
            f"{ID}.partial.value.projection.list": "n",
            "writemodel.strategy": f"{WRITES}.ReplaceOneBusinessKeyStrategy",
        },
        STRUCTS,
    ),
    "delete-one": (
        {ID: f"{IDS}.ProvidedInValueStrategy", "writemodel.strategy": f"{WRITES}.DeleteOneDefaultStrategy"},
        TEXTS,
    ),
    "processors": (
        {
            ID: f"{IDS}.ProvidedInValueStrategy",
            "post.processor.chain": ",".join(
                f"{SINK}.processor.{each}"
                for each in (
                    "DocumentIdAdder",
                    "AllowListValueProjector",
                    "field.renaming.RenameByMapping",
                    "field.renaming.RenameByRegExp",
                    "NullFieldValueRemover",
                    "KafkaMetaAdder",
                )
            ),
            "value.projection.type": "AllowList",
            "value.projection.list": "_id,a.b,d,e,f",
            "field.renamer.mapping": '[{"oldName": "value.e", "newName": "list"}]',
            "field.renamer.regexp": '[{"regexp": "^value\\\\.a.*$", "pattern": "a", "replace": "z"}]',
        },
        TEXTS,
    ),
    "key-projector": (
        {
            ID: f"{IDS}.FullKeyStrategy",
            "post.processor.chain": f"{SINK}.processor.AllowListKeyProjector,{ADDER}",
            "key.projection.type": "AllowList",
            "key.projection.list": "k",
            **OVERWRITE,
        },
        TEXTS,
    ),
    "late-key-projector": (
        {
            ID: f"{IDS}.FullKeyStrategy",
            "post.processor.chain": f"{ADDER},{SINK}.processor.BlockListKeyProjector",
            "key.projection.type": "BlockList",
            "key.projection.list": "k",
            **OVERWRITE,
        },
        TEXTS,
    ),
    "deleted-by-key": (
        {
            ID: f"{IDS}.FullKeyStrategy",
            "post.processor.chain": f"{SINK}.processor.AllowListKeyProjector,{ADDER}",
            "key.projection.type": "AllowList",
            "key.projection.list": "k",
            "delete.on.null.values": "true",
            **OVERWRITE,
        },
        [*TEXTS, (text({"_id": 1, "k": "x"}), None), (text({"k": "y"}), None)],
    ),
    "block": (
        {
            ID: f"{IDS}.ProvidedInValueStrategy",
            "post.processor.chain": f"{ADDER},{SINK}.processor.BlockListValueProjector",
            "value.projection.type": "BlockList",
            "value.projection.list": "a.*,d",
        },
        TEXTS,
    ),
    "wildcards": (
        {
            ID: f"{IDS}.ProvidedInValueStrategy",
            "post.processor.chain": f"{ADDER},{SINK}.processor.AllowListValueProjector",
            "value.projection.type": "AllowList",
            "value.projection.list": "_id,v*,a.*.b,c.**,l.x",
        },
        [
            (None, text({"_id": 1, "visits": {"n": 1}, "a": {"x": {"b": 1, "c": 2}, "y": 3}, "z": 1})),
            (None, text({"_id": 2, "c": {"d": {"e": 1}}, "l": [{"x": 1, "y": 2}, 5], "vv": 1})),
        ],
    ),
    "lists": (
        {
            ID: f"{IDS}.ProvidedInValueStrategy",
            "post.processor.chain": f"{ADDER},{SINK}.processor.BlockListValueProjector",
            "value.projection.type": "BlockList",
            "value.projection.list": "v*,a.*.b,l.x,c.**",
        },
        [
            (None, text({"_id": 1, "visits": {"n": 1}, "a": {"x": {"b": 1, "c": 2}, "y": 3}, "z": 1})),
            (None, text({"_id": 2, "c": {"d": {"e": 1}}, "l": [{"x": 1, "y": 2}, 5], "vv": 1})),
        ],
    ),
    "spaces": (
        {
            ID: f"{IDS}.ProvidedInKeyStrategy",
            "namespace.mapper": f"{SINK}.namespace.mapping.FieldPathNamespaceMapper",
            "namespace.mapper.key.collection.field": "part",
        },
        STRUCTS,
    ),
    "postgres": (
        {"change.data.capture.handler": POSTGRES},
        [
            (text({"id": 1}), text({"op": "c", "after": {"id": 1, "n": 1, "at": None}})),
            (text({"id": 2}), text({"op": "r", "after": {"id": 2, "n": 2}})),
            (text({"id": 1}), text({"op": "u", "before": None, "after": {"id": 1, "n": 3}})),
            (text({"id": 2}), text({"op": "d", "before": {"id": 2}, "after": None})),
            (text({"id": 2}), None),
        ],
    ),
    "stream": (
        {"change.data.capture.handler": STREAM},
        [
            (None, text(each))
            for each in (
                {"operationType": "insert", "documentKey": {"_id": 1}, "fullDocument": {"_id": 1, "a": 1}},
                {"operationType": "insert", "documentKey": {"_id": 2}, "fullDocument": {"_id": 2}},
                {
                    "operationType": "update",
                    "documentKey": {"_id": 1},
                    "updateDescription": {"updatedFields": {"b.c": 2}, "removedFields": ["a"]},
                },
                {"operationType": "delete", "documentKey": {"_id": 2}},
                {"operationType": "replace", "documentKey": {"_id": 3}, "fullDocument": {"_id": 3, "z": 1}},
            )
        ],
    ),
    "debezium": (
        {"change.data.capture.handler": MONGO},
        [
            (text({"id": "1"}), text({"op": "c", "after": '{"_id": 1, "a": 1}'})),
            (text({"id": "2"}), text({"op": "r", "after": '{"_id": 2, "a": {"$numberLong": "5"}}'})),
            (text({"id": "2"}), text({"op": "d"})),
            (text({"id": "2"}), None),
        ],
    ),
}


@pytest.fixture(scope="module")
def uri() -> Iterator[str]:
    for server in (java_servers.MONGO, original_connectors.MONGO):
        reason = server.available()
        if reason is not None:
            pytest.skip(f"needs {server.name}: {reason}")
    with java_servers.mongo() as found:
        yield found


def ours(config: dict[str, str], rows: Sequence[Row], refused: list[str]) -> None:
    """Write the rows through our converter and our sink, one put for each."""
    task = started_sink(
        MongoSinkConnector, config, errant=lambda records, indices, error: refused.append(str(error))
    )
    converters = {True: JsonConverter(), False: JsonConverter()}
    for is_key, each in converters.items():
        each.configure({}, is_key)

    def column(is_key: bool, value: Any) -> Column:
        if value is None:
            return Column.nulls(1)
        data = pa.array([json.dumps(value).encode()], pa.binary())
        [part] = converters[is_key].from_bytes("t", data).parts
        return part.column

    for at, (one, other) in enumerate(rows):
        task.put(
            Records.of(
                "t",
                column(False, other),
                column(True, one),
                partitions=[0],
                offsets=[at],
                timestamps=[1_700_000_000_000],
            )
        )
    task.stop()


def documents(client: MongoClient[dict[str, Any]], database: str) -> dict[str, list[Any]]:
    found = {}
    for name in sorted(client[database].list_collection_names()):
        rows = [plain(each) for each in client[database][name].find()]
        found[name] = sorted(rows, key=repr)
    return found


def plain(value: Any) -> Any:
    """Ids that are made by chance, as such; the order of fields, and the kinds of integers."""
    if isinstance(value, ObjectId) and str(value) != "6553f100a1b2c3d4e5f60718":
        return "an id"
    if isinstance(value, Binary):
        return ["binary", value.subtype, bytes(value)]
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    return value


@pytest.mark.parametrize("name", list(CASES))
def test_documents_are_those_of_the_original(uri: str, name: str) -> None:
    more, rows = CASES[name]
    refused: list[str] = []
    mine, other = f"ours-{name}", f"theirs-{name}"
    config = {"connection.uri": uri, "collection": "t", **more}
    ours({**config, "database": mine}, rows, refused)
    write(
        original_connectors.MONGO,
        MONGO_SINK,
        {**config, "database": other, "topics": "t"},
        [("t", at, one, two) for at, (one, two) in enumerate(rows)],
    )
    with MongoClient[dict[str, Any]](uri) as client:
        assert differences(documents(client, mine), documents(client, other)) == []
    assert refused == []
