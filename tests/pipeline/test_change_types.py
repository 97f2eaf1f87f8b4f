"""Dates, times, decimals and booleans of change events, as Debezium writes them for MySQL and PostgreSQL."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="needs the extra `pipeline`")

from pyspark.sql.types import StructType

from barnabas.pipeline.file.reading import read_text
from barnabas.pipeline.ingest.parsing import parsed_changes
from barnabas.pipeline.spec.change_types import CONNECT, TIMES

TIMES_DDL = "born DATE, at TIMESTAMP, local TIMESTAMP_NTZ"
DDL = f"id INT, paid BOOLEAN, {TIMES_DDL}, price DECIMAL(20,2), many DECIMAL(38,0)"
AT = datetime(2026, 3, 1, 12, 30, 5, 123_456, tzinfo=UTC)
MICROS = int(AT.timestamp()) * 1_000_000 + AT.microsecond
DAYS = (date(2026, 3, 1) - date(1970, 1, 1)).days


def unscaled(number: int) -> str:
    length = (number + (number < 0)).bit_length() // 8 + 1
    return base64.b64encode(number.to_bytes(length, "big", signed=True)).decode()


def event(row: Mapping[str, Any], connector: str, schema: list[dict[str, Any]] | None = None) -> bytes:
    payload = {"op": "c", "before": None, "after": row, "source": {"connector": connector}}
    if schema is None:
        return json.dumps(payload).encode()
    fields = [{"field": name, "type": "struct", "fields": schema} for name in ("before", "after")]
    fields.append({"field": "op", "type": "string"})
    return json.dumps({"schema": {"type": "struct", "fields": fields}, "payload": payload}).encode()


def parsed(spark: Any, types: Mapping[str, str], *events: bytes) -> list[Any]:
    frame = spark.createDataFrame([(each,) for each in events], "__value BINARY")
    schema = StructType.fromDDL(DDL)
    assert isinstance(schema, StructType)
    return [row.asDict() for row in parsed_changes(frame, schema, types).collect()]


def values(row: Mapping[str, Any], *names: str) -> tuple[Any, ...]:
    assert not row["_malformed"], row
    return tuple(row[name] for name in names)


def utc(row: Mapping[str, Any], name: str) -> datetime:
    """PySpark gives times of the machine's zone, without it."""
    found: datetime = row[name]
    return found.astimezone(UTC)


def test_values_of_mysql_and_postgresql(spark: Any) -> None:
    mysql = {
        "id": 1, "paid": 1, "born": DAYS, "at": "2026-03-01T12:30:05Z", "local": MICROS // 1000,
        "price": unscaled(-12345), "many": unscaled(10**37 + 7),
    }  # fmt: skip
    postgres = {
        "id": 2, "paid": False, "born": "2026-03-01", "at": MICROS, "local": MICROS,
        "price": {"scale": 3, "value": unscaled(1500)}, "many": 99.0,
    }  # fmt: skip
    named: list[dict[str, Any]] = [
        {"field": "at", "type": "int64", "name": TIMES + "NanoTimestamp"},
        {"field": "local", "type": "int64", "name": TIMES + "MicroTimestamp"},
        {"field": "price", "type": "bytes", "name": CONNECT + "Decimal", "parameters": {"scale": "4"}},
        {"field": "many", "type": "string"},
    ]
    with_schema = {
        "id": 3,
        "paid": 0,
        "at": MICROS * 1000 + 999,
        "local": MICROS,
        "price": "1234",
        "many": "1234",
    }
    # A wrong unit, an unknown database and digits that may be bytes are malformed rather than wrong.
    wrong = [
        event({"id": 1, "local": MICROS}, "mysql"), event({"id": 1, "at": MICROS}, "oracle"),
        event({"id": 1, "many": "1234"}, "mysql"), event({"id": 1, "paid": "yes"}, "mysql"),
        event({"id": 1, "born": 10**12}, "mysql"), event({"id": 1, "price": unscaled(10**30)}, "mysql"),
    ]  # fmt: skip
    first, second, third, nothing, *malformed = parsed(
        spark, {},
        event(mysql, "mysql"), event(postgres, "postgresql"), event(with_schema, "mysql", named),
        event({"id": 4, "price": None}, "mysql"), *wrong,
    )  # fmt: skip
    assert [row["_malformed"] for row in malformed] == [True] * len(wrong)
    assert values(first, "paid", "born", "price", "many") == (
        True, date(2026, 3, 1), Decimal("-123.45"), Decimal(10**37 + 7),
    )  # fmt: skip
    assert utc(first, "at") == AT.replace(microsecond=0)
    assert first["local"] == AT.replace(tzinfo=None, microsecond=123_000)
    assert values(second, "paid", "born", "price", "many") == (
        False, date(2026, 3, 1), Decimal("1.50"), Decimal(99),
    )  # fmt: skip
    assert utc(second, "at") == AT and second["local"] == AT.replace(tzinfo=None)
    # "1234" is base64 of three bytes for one column, and a number for the other: the schema says which.
    raw = int.from_bytes(base64.b64decode("1234"), "big", signed=True)
    scaled = round(Decimal(raw) / 10_000, 2)
    assert values(third, "paid", "born", "price", "many") == (False, None, scaled, Decimal(1234))
    assert utc(third, "at") == AT and third["local"] == AT.replace(tzinfo=None)
    assert values(nothing, "id", "price", "at") == (4, None, None)


@pytest.mark.long
def test_the_file_names_types_where_events_do_not(spark: Any) -> None:
    fractions = {"id": 1, "local": MICROS}  # DATETIME(6)
    types = {"local": TIMES + "MicroTimestamp", "many": "string"}
    [row] = parsed(spark, types, event({**fractions, "many": "1234"}, "mysql"))
    assert values(row, "local", "many") == (AT.replace(tzinfo=None), Decimal(1234))


def test_a_file_with_an_unknown_type_is_refused() -> None:
    with pytest.raises(Exception, match="MicroTimestamp"):
        read_text(
            "name: shop\nlake: /tmp/lake\nsources:\n  orders:\n"
            "    topic: {bootstrap.servers: a, subscribe: orders}\n"
            "    schema: id INT, at TIMESTAMP\n    changes: debezium\n"
            "    change_types: {at: io.debezium.time.MicroTimestmp}\n"
        )
