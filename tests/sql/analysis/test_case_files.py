"""Tests of statements as files: records in, records expected, the tool on them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from barnabas.cli.main import main
from barnabas.sql.testing.case_files import CaseError, first_difference

STATEMENTS = """
-- a copy, a count and a windowed count
CREATE STREAM clicks (who STRING KEY, page STRING, at_ms TIMESTAMP, price DECIMAL(5, 2))
  WITH (KAFKA_TOPIC='clicks', VALUE_FORMAT='AVRO');
CREATE STREAM plain (id INT, name STRING) WITH (KAFKA_TOPIC='plain', VALUE_FORMAT='DELIMITED');
CREATE STREAM upper WITH (VALUE_FORMAT='DELIMITED') AS SELECT id, UCASE(name) AS name FROM plain;
CREATE TABLE pages AS SELECT page, COUNT(*) AS n, SUM(price) AS paid FROM clicks GROUP BY page;
CREATE TABLE minutes AS SELECT who, COUNT(*) AS n FROM clicks WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY who;
"""
CLICK = {"topic": "clicks", "timestamp": 1000, "key": "ann"}
INPUTS: dict[str, Any] = {
    "inputs": [
        {**CLICK, "value": {"PAGE": "home", "at_ms": 5, "price": 1.5}},
        {**CLICK, "value": {"page": "home", "price": "2.25"}},
        {"topic": "plain", "value": "1,one"},
        {"topic": "plain", "value": {"ID": 2}},
    ]
}
PAGES = {"topic": "PAGES", "timestamp": 1000, "key": "home"}
WINDOW = {"start": 0, "end": 60_000, "type": "time"}
OUTPUTS: dict[str, Any] = {
    "outputs": [
        {**PAGES, "value": {"N": 1, "PAID": 1.50}},
        {**PAGES, "value": {"N": 2, "PAID": 3.75}},
        {"topic": "MINUTES", "key": "ann", "value": {"N": 1}, "window": WINDOW},
        {"topic": "MINUTES", "key": "ann", "value": {"N": 2}, "window": WINDOW},
        {"topic": "UPPER", "timestamp": 0, "key": None, "value": "1,ONE"},
        {"topic": "UPPER", "value": {"ID": 2, "NAME": None}},
    ]
}


def changed(index: int, **parts: Any) -> dict[str, Any]:
    outputs = list(OUTPUTS["outputs"])
    outputs[index] = {**outputs[index], **parts}
    return {"outputs": outputs}


def test_records_that_follow_are_as_expected() -> None:
    assert first_difference(STATEMENTS, INPUTS, OUTPUTS) is None


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        (changed(1, value={"N": 3, "PAID": 3.75}), "Topic 'PAGES', message 1: expected value"),
        (changed(0, key="shop"), 'Topic \'PAGES\', message 0: expected key "shop", found "home"'),
        (changed(0, timestamp=7), "expected timestamp 7, found 1000"),
        (changed(2, window={"start": 0, "end": 1}), "Topic 'MINUTES', message 0: expected window"),
        (changed(4, value="1,one"), "Topic 'UPPER', message 0"),
        ({"outputs": OUTPUTS["outputs"][:1]}, "Topic 'PAGES': expected 1 records, found 2"),
    ],
)
def test_the_first_difference_is_told(outputs: Any, message: str) -> None:
    assert message in (first_difference(STATEMENTS, INPUTS, outputs) or "")


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([], 'the file needs "inputs"'),
        ({"inputs": [{"topic": "nowhere", "value": {}}]}, "no stream or table has the topic nowhere"),
        ({"inputs": [{**CLICK, "value": {"at_ms": "?"}}]}, "input 0 cannot be written"),
    ],
)
def test_files_that_are_no_tests_are_refused(inputs: Any, message: str) -> None:
    with pytest.raises(CaseError, match=message):
        first_difference(STATEMENTS, inputs, OUTPUTS)


def test_the_tool_tells_by_its_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    contents = {"s.sql": STATEMENTS, "in.json": json.dumps(INPUTS), "out.json": json.dumps(OUTPUTS)}
    for name, text in contents.items():
        (tmp_path / name).write_text(text)
    options = [f"-{name[0]}={tmp_path / name}" for name in contents]
    assert main(["sql-test", *options]) == 0
    assert "Test passed!" in capsys.readouterr().out
    (tmp_path / "out.json").write_text(json.dumps(changed(0, key="shop")))
    assert main(["sql-test", *options]) == 1
    assert "Test failed: Topic 'PAGES', message 0" in capsys.readouterr().out
