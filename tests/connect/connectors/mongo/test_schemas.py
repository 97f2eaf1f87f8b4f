"""Schemas of documents: inferred ones, those of settings, values that fit and values that do not."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from bson import Decimal128, Int64, ObjectId, Timestamp
from bson.datetime_ms import DatetimeMS

from barnabas.connect.connectors.mongo.mongo_source import MongoSourceConnector
from barnabas.connect.connectors.mongo.schemas import (
    KEY,
    VALUE,
    inferred,
    schema_of_setting,
    value_of,
)
from barnabas.connect.connectors.mongo.source_records import parts_of
from barnabas.connect.connectors.mongo.source_settings import formatter_of, iso_text, plan_of
from barnabas.connect.data import (
    BYTES,
    INT64,
    OPTIONAL_INT32,
    OPTIONAL_STRING,
    STRING,
    DataError,
    Schema,
    Type,
)
from barnabas.connect.plugins import ConnectError

WRITTEN = formatter_of("DefaultJson")
TIMES = {"clusterTime": Timestamp(17, 1)}


def record(**fields: Any) -> str:
    made = [{"name": name, "type": kind} for name, kind in fields.items()]
    return json.dumps({"type": "record", "name": "r", "fields": made})


def plan(**more: str) -> Any:
    given = {name.replace("_", "."): text for name, text in more.items()}
    return plan_of(MongoSourceConnector.CONFIG.parse({"database": "d", "collection": "c", **given}))


def event(number: int, document: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"_id": {"_data": str(number)}, "documentKey": {"_id": number}, **TIMES, **more}
    return {**found, "ns": {"db": "d", "coll": "c"}, "fullDocument": document}


def test_fields_of_inferred_schemas_are_sorted_and_optional() -> None:
    found = inferred(
        {"b": 1, "a": "x", "_id": 5, "big": 1 << 40, "i": Int64(1), "inner": {"z": None, "y": True}}
    )
    assert found.field_names == ("_id", "a", "b", "big", "i", "inner") and not found.optional
    assert found.field("a") == OPTIONAL_STRING and found.field("b") == OPTIONAL_INT32
    assert found.field("big") == found.field("i") == INT64.as_optional()
    inner = found.field("inner")
    assert inner is not None and inner.name == "inner" and inner.field_names == ("y", "z")


@pytest.mark.parametrize(
    ("items", "kind"),
    [
        ([], Type.STRING),
        ([None, 1], Type.INT32),
        ([1, "a"], Type.STRING),
        ([1, 2.5], Type.STRING),
        ([{"a": 1}, {"b": None}], Type.STRUCT),
        ([[1], []], Type.ARRAY),
        ([Decimal128("1.5"), Decimal128("1.55")], Type.STRING),
    ],
)
def test_items_of_a_list_have_one_schema(items: list[Any], kind: Type) -> None:
    document = {"l": items}
    schema = inferred(document)
    found = schema.field("l")
    assert found is not None and found.value is not None and found.value.type is kind
    value = value_of(schema, document, WRITTEN)
    assert len(value["l"]) == len(items)


def test_values_by_a_schema() -> None:
    schema = schema_of_setting(
        record(s="string", n="long", b="bytes", m={"type": "map", "values": "int"}), "x"
    )
    at = datetime(2024, 1, 2, tzinfo=UTC)
    document = {"s": ObjectId("6553f100a1b2c3d4e5f60718"), "n": at, "b": {"a": 1}, "m": {"k": 1}}
    found = value_of(schema, document, WRITTEN)
    assert found["s"] == '{"$oid": "6553f100a1b2c3d4e5f60718"}'
    assert found["n"] == 1_704_153_600_000 and found["b"].startswith(b"\x0c\x00") and found["m"] == {"k": 1}
    for name, value in (
        ("n", "text"),
        ("n", True),
        ("n", 1 << 63),
        ("n", float("nan")),
        ("b", 5),
        ("m", [1]),
    ):
        with pytest.raises(DataError, match="does not fit"):
            value_of(schema, {**document, name: value}, WRITTEN)
    with pytest.raises(DataError, match="the field s"):
        value_of(schema, {"n": 1}, WRITTEN)
    assert value_of(STRING, None, WRITTEN) == "null" and value_of(STRING, 5, WRITTEN) == "5"
    price = Schema(type=Type.STRUCT, name="p", fields=inferred({"p": Decimal128("1.50")}).fields)
    assert value_of(price, {"p": Decimal128("1.50")}, WRITTEN) == {"p": Decimal("1.50")}


def test_avro_schemas_of_settings() -> None:
    assert schema_of_setting(KEY, "x").field("_id") == STRING
    assert len(schema_of_setting(VALUE, "x").fields) == 11
    inner = {"type": "record", "name": "i", "fields": [{"name": "a", "type": "int", "default": 3}]}
    found = schema_of_setting(record(one=inner, other="i", more=["null", "i"]), "x")
    assert found.field("one") == found.field("other")
    one = found.field("one")
    assert one is not None and one.fields[0].schema == Schema(type=Type.INT32, default=3)
    assert value_of(one, {}, WRITTEN) == {"a": 3}
    for text, reason in (
        ("{", "no Avro schema in JSON"),
        ('"string"', "of the type record"),
        (record(a=["int", "string"]), "one type and null"),
        (record(a={"type": "enum", "name": "e", "symbols": []}), "use string"),
        (record(a="r"), "holds itself"),
        (record(a="number"), "none of record"),
        ('{"type": "record", "name": "r"}', "a name and fields"),
    ):
        with pytest.raises(ConnectError, match=reason):
            schema_of_setting(text, "output.schema.value")
        given = {"output.format.value": "schema", "output.schema.value": text}
        assert "output.schema.value" in MongoSourceConnector().check(given)


def test_records_of_other_schemas_are_other_parts() -> None:
    wanted = plan(
        output_format_value="schema",
        output_schema_infer_value="true",
        publish_full_document_only="true",
        publish_full_document_only_tombstone_on_delete="true",
    )
    events = [event(1, {"a": 1}), event(2, None), event(3, {"a": 2}), event(4, {"a": "x"}), event(5, None)]
    parts = parts_of(wanted, events)
    assert [part.end for part in parts] == [3, 5]
    assert [part.records().values.pylist() for part in parts] == [
        [{"a": 1}, None, {"a": 2}],
        [{"a": "x"}, None],
    ]
    assert parts[0].records().keys.pylist()[0] == '{"_id": 1}' and parts[0].times == [17_000] * 3
    [gone] = parts_of(wanted, [event(1, None)])
    assert gone.records().values.schema is None and gone.records().values.pylist() == [None]
    assert parts_of(plan(publish_full_document_only="true"), [event(1, None)]) == []


def test_events_that_do_not_fit_fail_or_are_dead_letters(caplog: pytest.LogCaptureFixture) -> None:
    own = {"output_format_value": "schema", "output_schema_value": record(count="int")}
    events = [event(1, None, count=1), event(2, None, count="many"), event(3, None, count=3)]
    with pytest.raises(ConnectError, match="does not become a record"):
        parts_of(plan(**own), events)
    left = parts_of(plan(**own, mongo_errors_tolerance="all", mongo_errors_log_enable="true"), events)
    assert [part.values for part in left] == [[{"count": 1}, {"count": 3}]] and left[0].end == 3
    assert "does not fit the schema" in caplog.text
    dead = {**own, "mongo_errors_tolerance": "all", "mongo_errors_deadletterqueue_topic_name": "dead"}
    parts = parts_of(plan(**dead), events)
    assert [part.topics for part in parts] == [["d.c"], ["dead"], ["d.c"]]
    assert json.loads(parts[1].values[0])["count"] == "many"


def test_formats_of_keys() -> None:
    one = event(1, {"a": 1})
    token = plan(change_stream_document_key_as_key="false")
    assert [part.keys for part in parts_of(token, [one])] == [['{"_id": {"_data": "1"}}']]
    [part] = parts_of(plan(output_format_key="schema", output_schema_key=record(documentKey="string")), [one])
    assert part.keys == [{"documentKey": '{"_id": 1}'}]
    [part] = parts_of(plan(output_format_key="bson"), [one])
    assert part.key_schema == BYTES and isinstance(part.keys[0], bytes)


def test_dates_that_python_has_no_year_for() -> None:
    assert iso_text(DatetimeMS(253_402_300_801_000)) == "+10000-01-01T00:00:01Z"
    assert iso_text(DatetimeMS(-62_167_219_200_001)) == "-0001-12-31T23:59:59.999Z"
    assert iso_text(datetime(2024, 1, 2, 3, 4, 5, 600_000)) == "2024-01-02T03:04:05.6Z"
    assert WRITTEN({"d": DatetimeMS(253_402_300_801_000)}) == '{"d": {"$date": 253402300801000}}'
    assert value_of(INT64, DatetimeMS(5), WRITTEN) == 5
    with pytest.raises(DataError):
        value_of(inferred({"d": DatetimeMS(5)}), {"d": DatetimeMS(253_402_300_801_000)}, WRITTEN)


def test_old_names_of_copies_and_options_of_the_stream_are_taken() -> None:
    old = plan(
        copy_existing="true", copy_existing_namespace_regex="d[.]a", copy_existing_pipeline='[{"$limit": 1}]'
    )
    assert (old.mode, old.copy_names.pattern, old.copy_pipeline) == (
        "copy_existing",
        "d[.]a",
        [{"$limit": 1}],
    )
    new = plan(copy_existing_pipeline="[]", startup_mode_copy_existing_pipeline='[{"$limit": 2}]')
    assert new.copy_pipeline == [{"$limit": 2}]
    found = plan(collation='{"locale": "de"}', change_stream_show_expanded_events="true").options
    assert found["collation"].document["locale"] == "de" and found["show_expanded_events"] is True
    check = MongoSourceConnector().check
    assert "collation" in check({"collation": "de"}) and "collation" in check({"collation": "{}"})
    assert "copy.existing.namespace.regex" in check({"copy.existing.namespace.regex": "("})


def test_pipelines_are_written_as_mongodbs_documentation_writes_them() -> None:
    found = plan(
        pipeline="[{'$match': {operationType: 'insert', 'n': {$gt: NumberLong(\"5\"), $ne: null}}},"
        " {$addFields : {'fullDocument.travel': 'MongoDB \\'Kafka\\' \"Connector\"',"
        " at: new Date('2024-01-02T00:00:00Z')}},"
        " {$match: {\"fullDocument._id\": ObjectId('5f1d3f6e0000400080000000'), name: /^a\\/b/i}}]",
        topic_namespace_map="{'*': 'all'}",
    )
    match, added, last = found.pipeline
    assert match == {"$match": {"operationType": "insert", "n": {"$gt": 5, "$ne": None}}}
    assert added["$addFields"]["fullDocument.travel"] == "MongoDB 'Kafka' \"Connector\""
    assert added["$addFields"]["at"].isoformat().startswith("2024-01-02T00:00:00")
    assert last["$match"]["fullDocument._id"] == ObjectId("5f1d3f6e0000400080000000")
    assert last["$match"]["name"].pattern in ("^a/b", "^a\\/b")
    assert found.topic_of("d.c") == "all"


@pytest.mark.parametrize(
    "text", ["[{a: b}]", "[{a: run('x')}]", "[{'a': 'b]", "[}", "{a: 1", "[{a: (1)}]", "[{a: ObjectId([])}]"]
)
def test_what_is_no_pipeline_is_refused(text: str) -> None:
    assert "pipeline" in MongoSourceConnector().check({"pipeline": text})
