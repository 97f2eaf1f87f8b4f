"""Tests of statements as files, in the form of ksqlDB's test runner: records in, records expected.

In: statements, the JSON of `{"inputs": [...]}` and `{"outputs": [...]}`. Out: the first difference, or None.
Records name topics; keys and values are JSON by column, also where the format is no JSON. Does not know:
brokers, Spark.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from barnabas.sql.errors import SqlError
from barnabas.sql.execution.json_values import json_value
from barnabas.sql.formats.contract import BadBytes, by_any_case
from barnabas.sql.formats.json_rows import NeedsExact, reader_of
from barnabas.sql.metastore.metastore import DataSource
from barnabas.sql.metastore.schemas import Column
from barnabas.sql.syntax.parsing import parse_statement
from barnabas.sql.syntax.splitting import split
from barnabas.sql.syntax.statements import CreateSource
from barnabas.sql.testing.driver import SqlTestDriver, TestRow

RECORDS_MAX = 100_000
DELIMITED = "DELIMITED"


class CaseError(Exception):
    """A file that is no test: the message says what is wrong with it."""


def first_difference(statements: str, inputs: Any, outputs: Any) -> str | None:
    """Run statements over the inputs; what is not as expected."""
    driver = SqlTestDriver()
    for text in split(statements):
        statement = parse_statement(text.text)
        if isinstance(statement, CreateSource):
            for topic in topics_of(statement):
                driver.create_topic(topic)
        driver.run(f"{text.text};")
    for number, record in enumerate(records_of(inputs, "inputs")):
        try:
            pipe(driver, record)
        except (SqlError, BadBytes, ValueError, ArithmeticError, TypeError) as error:
            raise CaseError(f"input {number} cannot be written: {error}") from error
    expected: dict[str, list[Mapping[str, Any]]] = {}
    for record in records_of(outputs, "outputs"):
        expected.setdefault(str(record.get("topic")), []).append(record)
    for topic, wanted in expected.items():
        source = source_of(driver, topic)
        found = [shown(source, row) for row in driver.rows(source.name)]
        for number, (one, other) in enumerate(zip(wanted, found, strict=False)):
            different = difference(one, other)
            if different is not None:
                return f"Topic '{topic}', message {number}: {different}"
        if len(wanted) != len(found):
            return f"Topic '{topic}': expected {len(wanted)} records, found {len(found)}: {found}"
    return None


def records_of(content: Any, name: str) -> Sequence[Mapping[str, Any]]:
    found = content.get(name) if isinstance(content, dict) else None
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise CaseError(f'the file needs "{name}": an array of objects with topic, key, value, timestamp')
    if len(found) > RECORDS_MAX:
        raise CaseError(f"{name} has {len(found)} records: {RECORDS_MAX} are possible")
    return found


def topics_of(statement: CreateSource) -> list[str]:
    return [str(value) for name, value in statement.properties if name.upper() == "KAFKA_TOPIC"]


def source_of(driver: SqlTestDriver, topic: str) -> DataSource:
    for source in driver.metastore.sources.values():
        if source.topic == topic:
            return source
    known = sorted({each.topic for each in driver.metastore.sources.values()})
    raise CaseError(f"no stream or table has the topic {topic}: {', '.join(known)} are known")


# -- records in ------------------------------------------------------------------------------------------


def pipe(driver: SqlTestDriver, record: Mapping[str, Any]) -> None:
    source = source_of(driver, str(record.get("topic")))
    schema = source.schema
    row = {
        **values_of(schema.key, record.get("key"), source.key_format.name),
        **values_of(schema.value, record.get("value"), source.value_format.name),
    }
    window = record.get("window")
    driver.pipe(
        source.name,
        row,
        timestamp=int(record.get("timestamp", 0)),
        tombstone=record.get("value") is None,
        window=(int(window["start"]), int(window["end"])) if isinstance(window, dict) else None,
    )


def values_of(columns: Sequence[Column], given: Any, form: str) -> dict[str, Any]:
    """Values by column. One column may stand alone; a text of DELIMITED has them all."""
    if given is None or not columns:
        return {}
    if form == DELIMITED and isinstance(given, str):
        given = dict(zip([each.name for each in columns], given.split(","), strict=True))
        given = {name: None if text == "" else text for name, text in given.items()}
    names = {each.name: each for each in columns}
    if not (isinstance(given, dict) and all(by_any_case(list(names), name) for name in given)):
        if len(columns) != 1:
            raise ValueError(f"{json.dumps(given)} has not the columns {', '.join(names)}")
        given = {columns[0].name: given}
    found: dict[str, Any] = {}
    for name, value in given.items():
        column = names[str(by_any_case(list(names), name))]
        found[column.name] = None if value is None else read(column, value)
    return found


def read(column: Column, value: Any) -> Any:
    try:
        return reader_of(column.kind)(value)
    except NeedsExact:
        return reader_of(column.kind)(str(value))


# -- records out -----------------------------------------------------------------------------------------


def shown(source: DataSource, row: TestRow) -> dict[str, Any]:
    """A record as files have it: one key column stands alone, columns that are null are left out."""
    found: dict[str, Any] = {"key": None, "value": None, "timestamp": row.timestamp}
    if row.key is not None:
        keys = plain(source.schema.key, row.key)
        found["key"] = next(iter(keys.values()), None) if len(source.schema.key) == 1 else keys
    if row.value is not None:
        found["value"] = plain(source.schema.value, row.value)
    if row.window is not None:
        found["window"] = {"start": row.window[0], "end": row.window[1]}
    return found


def plain(columns: Sequence[Column], row: Mapping[str, Any]) -> dict[str, Any]:
    values = {each.name: json_value(row.get(each.name), each.kind) for each in columns}
    return {name: value for name, value in values.items() if value is not None}


def difference(wanted: Mapping[str, Any], found: Mapping[str, Any]) -> str | None:
    for part in ("key", "value", "timestamp", "window"):
        if part not in wanted:
            continue
        one, other = as_expected(wanted[part]), found.get(part)
        if part == "window" and isinstance(one, dict):
            one.pop("type", None)
        if isinstance(other, dict) and len(other) == 1 and not isinstance(one, dict) and one is not None:
            [other] = other.values()  # a single value that is not wrapped
        if isinstance(one, str) and isinstance(other, dict):
            one, other = one.split(","), [str(each) for each in other.values()]  # DELIMITED
        if one != other:
            return f"expected {part} {json.dumps(wanted[part])}, found {json.dumps(found.get(part))}"
    return None


def as_expected(value: Any) -> Any:
    """Without fields that are null."""
    if isinstance(value, dict):
        return {name: as_expected(each) for name, each in value.items() if each is not None}
    return value
