# ruff: noqa: E501
"""Debezium's transforms answer as ours: recorded events of tables go through both."""

from __future__ import annotations

import json
import os
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from barnabas.connect.convert.json import JsonConverter
from barnabas.connect.data import Column, Header, Records
from barnabas.connect.plugins import Plugins
from barnabas.connect.transforms.chain import TransformChain
from connect.connectors.against_debezium.recording import Recording
from connect.connectors.against_debezium.running import plugin_folder
from connect.worker_processes import apache_jars

HERE = Path(__file__).parent
EVENTS = Recording(HERE / "postgres_events.json.gz")
ANSWERS = Recording(HERE / "transforms.json.gz")
NOW = 1_700_000_000_123
UNITS = {"ts_ms": 1, "ts_us": 1000, "ts_ns": 1_000_000}
# What JSON, or Python's times and days, do not have.
ODD = ("NaN", '"t": 86400000,', '"d": -2147472', '"d": -735160', '"d": 3672222')
PLUGINS = Plugins()
UNWRAP = "ExtractNewRecordState"
OUTBOX = "outbox.EventRouter"
CASES: list[tuple[str, str, dict[str, str], str]] = [  # name, type, settings, whose events
    ("plain", UNWRAP, {}, "shop"),
    *(
        (f"delete {mode}", UNWRAP, {"delete.tombstone.handling.mode": mode}, "shop")
        for mode in ("drop", "rewrite", "rewrite-with-tombstone", "delete-to-tombstone")
    ),
    ("fields", UNWRAP, {"add.fields": "op,table,source.ts_ms:when,lsn,transaction.id", "add.headers": "op,db",
                        "delete.tombstone.handling.mode": "rewrite"}, "counted"),
    ("types", UNWRAP, {"add.fields": "ts_ms"}, "texts"),
    ("numbers", UNWRAP, {"add.fields.prefix": "x_", "add.fields": "op"}, "numbers"),
    ("by field", UNWRAP, {"route.by.field": "name"}, "indexed"),
    ("logical", "ByLogicalTableRouter", {"topic.regex": r"(.*)\.public\.(orders|pairs)", "topic.replacement": "$1.all"}, "shop"),
    ("logical key", "ByLogicalTableRouter", {"topic.regex": r"(.*)\.(.*)", "topic.replacement": "$1.all",
        "key.field.name": "t", "key.field.regex": r"(.*)\.(.*)", "key.field.replacement": "$2"}, "shop"),
    ("not unique", "ByLogicalTableRouter", {"topic.regex": r"(.*)\.(.*)", "topic.replacement": "$1.all",
        "key.enforce.uniqueness": "false"}, "shop"),
    ("partition", "partitions.PartitionRouting", {"partition.payload.fields": "change.name,change.b",
        "partition.topic.num": "7"}, "shop"),
    ("partition by numbers", "partitions.PartitionRouting", {"partition.payload.fields":
        "after.id,source.lsn,after.n52,after.d,after.r,after.big,after.yes,op", "partition.topic.num": "101"}, "numbers"),
    ("zone", "TimezoneConverter", {"converted.timezone": "Europe/Berlin"}, "times"),
    ("zone of some", "TimezoneConverter", {"converted.timezone": "+05:30", "include.list": "source:times:ts,times:tsz"}, "times"),
    ("zone but some", "TimezoneConverter", {"converted.timezone": "America/New_York", "exclude.list": "topic:times.public.times:ts"}, "times"),
    ("zone of connect", "TimezoneConverter", {"converted.timezone": "Asia/Tokyo"}, "times_connect"),
    ("zone of nanos", "TimezoneConverter", {"converted.timezone": "Asia/Tokyo"}, "times_nanoseconds"),
    ("changed", "ExtractChangedRecordState", {"header.changed.name": "ch", "header.unchanged.name": "un"}, "shop"),
    ("changed alone", "ExtractChangedRecordState", {"header.changed.name": "ch"}, "numbers"),
    ("header copied", "HeaderToValue", {"headers": "h1,none,h2", "fields": "f1,f9,source.f2", "operation": "copy"}, "headed"),
    ("header moved", "HeaderToValue", {"headers": "h2", "fields": "new.f2", "operation": "move"}, "headed"),
    ("dropped", UNWRAP, {"drop.fields.header.name": "un", "delete.tombstone.handling.mode": "drop"}, "headed"),
    ("dropped from keys", UNWRAP, {"drop.fields.header.name": "un", "drop.fields.keep.schema.compatible": "false",
        "drop.fields.from.key": "true", "add.fields": "op", "delete.tombstone.handling.mode": "rewrite"}, "headed"),
]  # fmt: skip
TEXT = {"type": "string", "optional": True}
LIST = {"type": "array", "items": TEXT, "optional": True, "name": "un"}
HEADERS = [["h1", {"schema": TEXT, "payload": "first"}], ["h1", {"schema": TEXT, "payload": "last"}],
           ["un", {"schema": LIST, "payload": ["a", "v", "qty", "name", "__op", "__deleted", "none"]}],
           ["h2", {"schema": {"type": "int64", "optional": False}, "payload": 7}]]  # fmt: skip


@cache
def records(name: str) -> list[dict[str, Any]]:
    """Recorded events, with a time in place of those of the moment."""
    found = []
    for topic, events in EVENTS.read(name).items():
        if topic.endswith((".transaction", "zz_end")):
            continue
        for each in events:
            text = json.dumps(each["value"])
            if any(odd in text for odd in ODD):
                continue
            value = json.loads(text)
            payload = (value or {}).get("payload")
            if payload:
                for part in (payload, payload["source"]):
                    part |= {name: NOW * unit for name, unit in UNITS.items()}
                payload["source"] |= {"lsn": 42, "txId": 7, "sequence": '[null,"42"]'}
            found.append({"topic": topic, "key": each["key"], "value": value})
    return found


def theirs(folder: Path, questions: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    jars = [*apache_jars().glob("*.jar"), *plugin_folder(folder, "postgres").rglob("*.jar")]
    command = ["java", "-Xmx400m", "-XX:TieredStopAtLevel=1", "-cp", ":".join(map(str, jars))]
    text = "".join(json.dumps(each) + "\n" for each in questions)
    done = subprocess.run(
        [*command, str(HERE / "TransformsOracle.java")], input=text.encode(), capture_output=True, timeout=200
    )
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    return [json.loads(line) for line in done.stdout.decode().splitlines()]


def converter(is_key: bool) -> JsonConverter:
    made = JsonConverter()
    made.configure({"schemas.enable": "true"}, is_key)
    return made


KEYS, VALUES = converter(True), converter(False)


def column(one: JsonConverter, value: Any) -> Column:
    data = [None if value is None else json.dumps(value).encode()]
    read = one.from_bytes("t", pa.array(data, pa.binary()))
    assert not read.failures, read.failures
    return read.parts[0].column


def bytes_of(one: JsonConverter, given: Column) -> list[Any]:
    done = one.to_bytes("t", given)
    assert not done.failures, done.failures
    return [None if each is None else json.loads(each) for each in done.data.to_pylist()]


def ours(kind: str, settings: dict[str, str], given: list[dict[str, Any]]) -> list[dict[str, Any]]:
    config = {"transforms": "a", "transforms.a.type": f"io.debezium.transforms.{kind}"}
    chain = TransformChain.of({**config, **{f"transforms.a.{k}": v for k, v in settings.items()}}, PLUGINS)
    found = []
    for each in given:
        made = Records.of(
            each["topic"],
            column(VALUES, each["value"]),
            column(KEYS, each["key"]),
            timestamps=[1_700_000_000_000],
            headers=[tuple(header_of(*one) for one in each["headers"])] if "headers" in each else None,
        )
        done = chain.apply(made)
        if done.failures:
            found.append({"error": str(done.failures)})
            continue
        answer: dict[str, Any] = {"dropped": True}
        for part in done.parts:
            for row in range(len(part.records)):
                answer = shown(part.records.take([row]))
        found.append(answer)
    return found


def header_of(name: str, value: Any) -> Header:
    made = column(VALUES, value)
    return Header(name, made.pylist()[0], made.schema)


def shown(made: Records) -> dict[str, Any]:
    headers = []
    for each in (made.headers or [()])[0]:
        [value] = bytes_of(VALUES, Column.of([each.value], each.schema))
        headers.append([each.name, value])
    partition = None if made.partitions is None else made.partitions[0].as_py()
    return {
        "topic": made.topics[0].as_py(), "partition": partition, "timestamp": made.timestamps[0].as_py(),
        "key": bytes_of(KEYS, made.keys)[0], "value": bytes_of(VALUES, made.values)[0], "headers": headers,
    }  # fmt: skip


def sent(answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What goes to topics. Debezium makes a null with a schema of a delete and drops the tombstone behind it;
    ours drops the delete and keeps the tombstone, which is a null with each converter."""
    found = []
    for each in answers:
        if "dropped" not in each:
            value = each.get("value")
            is_null = value is not None and value.get("payload") is None
            found.append(
                {"error": "yes"} if "error" in each else {**each, "value": None if is_null else value}
            )
    return found


def differences(answers: list[dict[str, Any]], own: list[dict[str, Any]]) -> list[str]:
    pairs = [sent(answers), sent(own)]
    if len(pairs[0]) != len(pairs[1]):
        return [f"{len(pairs[0])} records in place of {len(pairs[1])}"]
    found = []
    for one, other in zip(*pairs, strict=True):
        for name in sorted(one.keys() | other.keys()):
            if one.get(name) != other.get(name):
                found.append(f"{one.get('topic')} {name}:\n  {one.get(name)}\n  {other.get(name)}")
    return found


def question(case: tuple[str, str, dict[str, str], str]) -> dict[str, Any]:
    _, kind, settings, events = case
    return {"type": kind, "settings": settings, "records": given_of(events)}


def given_of(events: str) -> list[dict[str, Any]]:
    if events == "indexed":
        return [each for each in records("shop") if each["topic"].endswith(".orders")]
    if events == "headed":
        return [{**each, "headers": HEADERS} for each in records("shop") if each["value"] is not None]
    return records(events)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_answers_are_those_that_debezium_gave(case: tuple[str, str, dict[str, str], str]) -> None:
    name, kind, settings, events = case
    given = given_of(events)
    found = differences(ANSWERS.read(name)["answers"], ours(kind, settings, given))
    assert not found, "\n".join(found)


@pytest.mark.long
def test_debezium_gives_the_recorded_answers(tmp_path: Path) -> None:
    answers = theirs(tmp_path, [question(each) for each in CASES])
    for case, found in zip(CASES, answers, strict=True):
        if os.environ.get("BARNABAS_RECORD") == "1":
            ANSWERS.keep(case[0], {"answers": found})
        assert found == ANSWERS.read(case[0])["answers"], case[0]
