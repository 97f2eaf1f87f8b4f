"""Transforms answer as those of Apache Kafka 4.3.1 did: cases with their recorded answers.

Each case is a transform, its settings, and records as JSON; each answer is the record after it, written by
Apache's JsonConverter, or the fact that there was an error. Texts of errors are not compared.
"""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from barnabas.connect.convert.json import JsonConverter
from barnabas.connect.data import Column, Records
from barnabas.connect.plugins import Plugins
from barnabas.connect.transforms.chain import TransformChain

FILE = Path(__file__).with_name("apache_answers.json.gz")
PREFIX = "org.apache.kafka.connect.transforms."
PLUGINS = Plugins()


@cache
def cases() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(gzip.decompress(FILE.read_bytes()))
    return found


def converter(schemas: bool, is_key: bool) -> JsonConverter:
    made = JsonConverter()
    numeric = {} if is_key else {"decimal.format": "NUMERIC"}
    made.configure({"schemas.enable": str(schemas).lower(), **numeric}, is_key)
    return made


def texts_of(case: dict[str, Any]) -> list[bytes | None]:
    if not case["schemas"]:
        return [None if value is None else json.dumps(value).encode() for value in case["values"]]
    return [
        None if value is None else json.dumps({"schema": case["schema"], "payload": value}).encode()
        for value in case["values"]
    ]


def answers(case: dict[str, Any]) -> list[dict[str, Any]]:
    """What our transform makes of the records, in the form of the recorded answers."""
    config = {f"transforms.a.{name}": text for name, text in case["config"].items()}
    kind = {"transforms": "a", "transforms.a.type": PREFIX + case["type"]}
    try:
        chain = TransformChain.of({**kind, **config}, PLUGINS)
    except Exception as error:
        return [{"config_error": str(error)}]
    keys, values = converter(case["schemas"], True), converter(case["schemas"], False)
    read = values.from_bytes("t", pa.array(texts_of(case), pa.binary()))
    assert not read.failures, read.failures
    found: dict[int, dict[str, Any]] = {}
    for indices, column in read.parts:
        records = Records.of(
            "orders-7", column, Column(column.schema, column.data), timestamps=[1709211909045] * len(column),
            partitions=[3] * len(column), offsets=[41] * len(column),
        )  # fmt: skip
        done = chain.apply(records)
        for at, failure in done.failures.items():
            found[indices[at]] = {"error": str(failure.error)}
        for part in done.parts:
            for place, row in enumerate(shown(part.records, keys, values)):
                found[indices[part.indices[place]]] = row
    return [found.get(index, {"dropped": True}) for index in range(len(case["values"]))]


def shown(records: Records, keys: JsonConverter, values: JsonConverter) -> list[dict[str, Any]]:
    sides = []
    for converter, column in ((keys, records.keys), (values, records.values)):
        written = converter.to_bytes("t", column)
        assert not written.failures, written.failures
        sides.append([None if data is None else json.loads(data) for data in written.data.to_pylist()])
    headers = records.headers or [()] * len(records)
    return [
        {
            "topic": topic,
            "key": key,
            "value": value,
            "headers": [[each.name, header(values, each)] for each in own],
        }
        for topic, key, value, own in zip(records.topics.to_pylist(), *sides, headers, strict=True)
    ]


def header(values: JsonConverter, each: Any) -> Any:
    data = values.to_bytes("t", Column.of([each.value], each.schema)).data[0].as_py()
    return None if data is None else json.loads(data)


def comparable(answer: dict[str, Any]) -> Any:
    for word in ("config_error", "error"):
        if word in answer:
            return word
    return json.loads(json.dumps(answer), parse_float=float)


@pytest.mark.parametrize("name", sorted({case["type"] for case in cases()}))
def test_a_transform_answers_as_apaches(name: str) -> None:
    wrong = []
    for case in cases():
        if case["type"] == name:
            ours = [comparable(each) for each in answers(case)]
            theirs = [comparable(each) for each in case["answers"]]
            if ours != theirs:
                pairs = zip(ours, theirs, strict=False)
                wrong.append((case["config"], [pair for pair in pairs if pair[0] != pair[1]]))
    assert not wrong, wrong[:3]
