"""Documents, ids, projections, change events and settings of the MongoDB sink, without a server."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from bson.binary import Binary
from bson.datetime_ms import DatetimeMS
from bson.decimal128 import Decimal128
from bson.objectid import ObjectId
from pymongo import DeleteOne, ReplaceOne, UpdateOne
from pymongo.errors import BulkWriteError
from tests.connect.connectors.contexts import started_sink

from barnabas.connect.connectors.mongo.change_events import write_of
from barnabas.connect.connectors.mongo.documents import document_of
from barnabas.connect.connectors.mongo.mongo_address import server_api_of
from barnabas.connect.connectors.mongo.mongo_settings import plan_of, settings_for
from barnabas.connect.connectors.mongo.mongo_sink import MongoSinkConnector, with_time
from barnabas.connect.connectors.mongo.projections import Projection
from barnabas.connect.data import Column, DataError, Record, Records
from barnabas.connect.plugins import Plugins, RetriableError

ID = "document.id.strategy"


def settings(**more: str) -> Any:
    return MongoSinkConnector.CONFIG.parse({"database": "shop", **more})


def processed(record: Record, **more: str) -> dict[str, Any]:
    documents = plan_of(settings(**more)).documents
    value = document_of(record.value, "value")
    assert value is not None
    return documents.processed(record, document_of(record.key, "key"), value)


def test_values_become_bson() -> None:
    found = document_of(
        {"d": Decimal("1.50"), "day": date(2024, 1, 2), "b": b"x", "l": [Decimal(1)]}, "value"
    )
    assert found == {
        "d": Decimal128("1.50"), "day": datetime(2024, 1, 2, tzinfo=UTC), "b": b"x", "l": [Decimal128("1")],
    }  # fmt: skip
    oid = document_of('{"_id": {"$oid": "5f1d3f6e0000400080000000"}, "n": {"$numberLong": "5"}}', "value")
    assert oid == {"_id": ObjectId("5f1d3f6e0000400080000000"), "n": 5}
    far = document_of('{"_id": 1, "d": {"$date": {"$numberLong": "253402300801000"}}}', "value")
    assert far == {"_id": 1, "d": DatetimeMS(253_402_300_801_000)}
    assert document_of("a plain key", "key") is None
    for value in ('{"d": {"$numberDecimal": "x"}}', '{"d": {"$timestamp": {"t": -1, "i": 0}}}', b"\xff"):
        with pytest.raises(DataError, match="no JSON document"):
            document_of(value, "value")
    with pytest.raises(DataError):
        write_of("mongo", {"id": "1"}, {"op": "c", "after": '{"_id": 1, "d": {"$numberDecimal": "x"}}'})
    for kind, event in (
        ("mongo", {"op": "c", "after": "[1]"}),
        ("mongo", {"op": "u", "updateDescription": {"removedFields": 5}}),
        ("rdbms", {"op": "c", "after": 7}),
        ("stream", {"operationType": "update", "documentKey": {"_id": 1}, "updateDescription": [1]}),
    ):
        with pytest.raises(DataError):
            write_of(kind, {"id": "1"}, event)
    for value, reason in (("text", "no JSON document"), (5, "a document is a struct"), ("[1]", "is a list")):
        with pytest.raises(DataError, match=reason):
            document_of(value, "value")


@pytest.mark.parametrize(
    ("strategy", "more", "expected"),
    [
        ("KafkaMetaDataStrategy", {}, "o#2#7"),
        ("FullKeyStrategy", {}, {"_id": 1, "k": "x"}),
        ("ProvidedInKeyStrategy", {}, 1),
        ("ProvidedInValueStrategy", {}, 9),
        (
            "PartialKeyStrategy",
            {f"{ID}.partial.key.projection.type": "AllowList", f"{ID}.partial.key.projection.list": "k"},
            {"k": "x"},
        ),
        (
            "PartialValueStrategy",
            {f"{ID}.partial.value.projection.type": "blocklist", f"{ID}.partial.value.projection.list": "a"},
            {"_id": 9, "b": {"c": None}},
        ),
    ],
)
def test_ids_by_strategy(strategy: str, more: dict[str, str], expected: Any) -> None:
    record = Record("o", 2, {"_id": 1, "k": "x"}, {"_id": 9, "a": 1, "b": {"c": None}}, offset=7)
    found = processed(record, **{ID: f"com.x.{strategy}", f"{ID}.overwrite.existing": "true", **more})
    assert found["_id"] == expected and found["a"] == 1


def test_ids_that_are_new_or_missing() -> None:
    record = Record("o", 2, {"_id": "6f1d3f6e-0000-4000-8000-000000000001"}, {"a": 1}, offset=7)
    assert isinstance(processed(record)["_id"], ObjectId)
    found = processed(record, **{ID: "UuidProvidedInKeyStrategy"})
    assert found["_id"] == Binary.from_uuid(uuid.UUID("6f1d3f6e-0000-4000-8000-000000000001"))
    with pytest.raises(DataError, match="has no field _id"):
        processed(record, **{ID: "ProvidedInValueStrategy"})
    with pytest.raises(DataError, match="the key is no struct"):
        processed(Record("o", 0, "k", {"a": 1}), **{ID: "FullKeyStrategy"})


def test_processors_run_in_their_order() -> None:
    record = Record("o", 2, None, {"_id": 1, "a": None, "b": {"c": None, "d_x": 1}, "e": 2}, 5, offset=7)
    found = processed(
        record,
        **{
            "post.processor.chain": "x.DocumentIdAdder,x.KafkaMetaAdder,x.NullFieldValueRemover,"
            "x.RenameByMapping,x.RenameByRegex,x.BlockListValueProjector",
            "field.renamer.mapping": '[{"oldName": "value.e", "newName": "f"}]',
            "field.renamer.regexp": '[{"regexp": "value\\\\.b\\\\..*", "pattern": "_", "replace": "-"}]',
            "value.projection.type": "blocklist",
            "value.projection.list": "CREATE_TIME",
        },
    )
    assert found == {"_id": 1, "b": {"d-x": 1}, "f": 2, "topic-partition-offset": "o-2-7"}


def test_projections_with_stars() -> None:
    document = {"_id": 0, "a": {"x": 1, "y": {"z": 2}}, "b": 3}
    assert Projection("allowlist", ("a.x",)).of(document) == {"a": {"x": 1}}
    assert Projection("allowlist", ("a.**",)).of(document) == {"a": {"x": 1, "y": {"z": 2}}}
    assert Projection("blocklist", ("*.y", "b")).of(document) == {"a": {"x": 1}}
    assert Projection("blocklist", ("a.*",)).of(document) == {"_id": 0, "a": {"y": {"z": 2}}, "b": 3}


def test_events_of_debezium_and_of_change_streams() -> None:
    row, key = {"id": 1, "n": 2}, {"id": 1}
    for op in "cru":
        found = write_of("rdbms", key, {"op": op, "after": row})
        assert found == ReplaceOne({"_id": {"id": 1}}, {"_id": {"id": 1}, "n": 2}, upsert=True)
    assert write_of("rdbms", key, {"payload": {"op": "d", "before": row}}) == DeleteOne({"_id": {"id": 1}})
    assert write_of("rdbms", key, None) is None and write_of("rdbms", key, {"op": "t"}) is None
    assert write_of("mongo", {"id": "5"}, {"op": "c", "after": '{"_id": 5, "a": 1}'}) == ReplaceOne(
        {"_id": 5}, {"_id": 5, "a": 1}, upsert=True
    )
    assert write_of("mongo", {"id": "5"}, {"op": "d"}) == DeleteOne({"_id": 5})
    update = {"op": "u", "updateDescription": {"updatedFields": '{"a": 2}', "removedFields": ["b"]}}
    assert write_of("mongo", {"id": "5"}, update) == UpdateOne(
        {"_id": 5}, {"$set": {"a": 2}, "$unset": {"b": ""}}
    )
    stream = {"operationType": "insert", "documentKey": {"_id": 1}, "fullDocument": {"_id": 1, "a": 1}}
    assert write_of("stream", None, stream) == ReplaceOne({"_id": 1}, {"_id": 1, "a": 1}, upsert=True)
    assert write_of("stream", None, {"operationType": "drop"}) is None
    for kind, event in (("rdbms", {"a": 1}), ("stream", {"operationType": "insert"}), ("mongo", {"op": "u"})):
        with pytest.raises(DataError):
            write_of(kind, None, event)


@pytest.mark.parametrize(
    ("config", "name", "reason"),
    [
        ({"connection.uri": "http://x"}, "connection.uri", "no address"),
        ({ID: "MyStrategy"}, ID, "is none of BsonOidStrategy"),
        ({"post.processor.chain": "Mine"}, "post.processor.chain", "is none of"),
        ({"writemodel.strategy": "x.ReplaceOneBusinessKeyStrategy"}, "writemodel.strategy", "needs"),
        ({"delete.on.null.values": "true"}, "delete.on.null.values", "needs an id from the key"),
        ({"change.data.capture.handler": "x.Handler"}, "change.data.capture.handler", "is none of"),
        ({"field.renamer.mapping": "{"}, "field.renamer.mapping", "must be a JSON list"),
        ({"timeseries.timefield": "t", "writemodel.strategy": "ReplaceOneDefaultStrategy"},
         "timeseries.timefield", "only takes inserts"),
        ({"topics": "a,b", f"topic.override.b.{ID}": "Mine"}, ID, "is none of"),
    ],
)  # fmt: skip
def test_settings_are_checked(config: dict[str, str], name: str, reason: str) -> None:
    errors = MongoSinkConnector().check({"database": "shop", **config})
    assert reason in errors[name][0]


def test_requests_are_slowed_down_by_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("barnabas.connect.connectors.mongo.mongo_sink.time.sleep", pauses.append)
    config = {"database": "d", "rate.limiting.timeout": "50", "rate.limiting.every.n": "3"}
    task: Any = started_sink(MongoSinkConnector, {**config, "topic.override.u.rate.limiting.timeout": "0"})
    for topic in ("t", "t", "u", "u", "u", "t", "t"):
        task._slow_down(topic, task._plan(topic))
    assert pauses == [0.05]


def test_topics_have_settings_of_their_own() -> None:
    given = settings(**{"collection": "all", "topic.override.a.collection": "mine"})
    found = [plan_of(settings_for(MongoSinkConnector.CONFIG, given, each)).collection for each in "ab"]
    assert found == ["mine", "all"]
    assert Plugins().connector("com.mongodb.kafka.connect.MongoSinkConnector") is MongoSinkConnector


def test_ids_of_uuids_are_texts_or_binary() -> None:
    for form, kind in (("string", str), ("binary", Binary)):
        more = {ID: "UuidStrategy", f"{ID}.uuid.format": form}
        assert type(processed(Record("t", 0, None, {"n": 1}), **more)["_id"]) is kind


def test_the_stable_api_comes_from_the_settings() -> None:
    api = server_api_of(settings(**{"server.api.version": "1", "server.api.strict": "true"}))
    assert api is not None and (api.version, api.strict, api.deprecation_errors) == ("1", True, False)
    assert server_api_of(settings()) is None
    config = {"database": "d", "topics": "t", "server.api.version": "2"}
    assert "server.api.version" in MongoSinkConnector().check(config)


@pytest.mark.parametrize("is_ordered", [True, False])
def test_writes_that_a_changing_server_did_not_do_are_sent_again(is_ordered: bool) -> None:
    class Collection:
        """Takes documents but one that is refused, and one that a new primary takes later."""

        def __init__(self) -> None:
            self.sent: list[list[int]] = []
            self.is_new = False

        def bulk_write(self, models: list[Any], ordered: bool) -> None:
            numbers = [each._doc["n"] for each in models]
            self.sent.append(numbers)
            errors = []
            for index, number in enumerate(numbers):
                code = 121 if number == 1 else 10107 if number == 2 and not self.is_new else 0
                if code:
                    errors.append({"index": index, "code": code, "errmsg": f"code {code}"})
                if errors and ordered:
                    break
            if errors:
                raise BulkWriteError({"writeErrors": errors, "writeConcernErrors": []})

    refused: list[int] = []
    config = {"database": "d", "topics": "t", "bulk.write.ordered": str(is_ordered).lower()}
    task: Any = started_sink(
        MongoSinkConnector, config, errant=lambda some, indices, error: refused.extend(indices)
    )
    collection = Collection()
    task._collection = lambda space, plan: collection
    values = Column.of([{"n": n} for n in range(4)])
    batch = Records.of("t", values, Column.of(["k"] * 4), partitions=[0] * 4, offsets=list(range(4)))
    with pytest.raises(RetriableError, match="10107"):
        task.put(batch)
    collection.is_new = True
    task.put(batch)
    assert refused == [1]
    expected = [[0, 1, 2, 3], [2, 3], [2, 3]] if is_ordered else [[0, 1, 2, 3], [2]]
    assert collection.sent == expected


def test_texts_may_be_json_of_the_shell() -> None:
    assert document_of("{_id: 1, 'a': NumberLong('7'), b: [true, -1.5e3]}", "value") == {
        "_id": 1,
        "a": 7,
        "b": [True, -1500.0],
    }
    with pytest.raises(DataError, match="no JSON document"):
        document_of("{a: b}", "value")


def test_a_time_of_a_series_that_is_no_date_is_refused() -> None:
    assert with_time({"at": 0}, "at")["at"] == datetime(1970, 1, 1, tzinfo=UTC)
    for at in (1_700_000_000_000_000_000, "soon", True, None):
        with pytest.raises(DataError):
            with_time({"at": at}, "at")
