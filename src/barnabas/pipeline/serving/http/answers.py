"""Answers as JSON or Arrow, each with its freshness.

In: `Answer`s and states. Out: bytes. In JSON decimals are texts, so that no digit is lost; times are ISO
8601, bytes are base64, NaN and infinities are texts. Does not know: HTTP.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.ipc

from barnabas.pipeline.serving.store.port import Answer, Freshness
from barnabas.pipeline.views.parts import TableVersion, ViewState

ARROW_MEDIA = "application/vnd.apache.arrow.stream"


def time_text(value: datetime) -> str:
    text = value.isoformat()
    return text.replace("+00:00", "Z") if value.tzinfo else text


def position(value: TableVersion) -> dict[str, Any]:
    return {"version": value.version, "time": time_text(value.at)}


def freshness(value: Freshness, now: datetime) -> dict[str, Any]:
    """`complete_at` is when the answer was last known to be complete, `age_seconds` how long ago that was."""
    return {
        "view": value.view,
        "horizon": position(value.horizon),
        "speed": position(value.position),
        "complete_at": time_text(value.complete_at),
        "age_seconds": round(max(0.0, (now - value.complete_at).total_seconds()), 3),
    }


def described(state: ViewState, now: datetime) -> dict[str, Any]:
    """A view in the list of views."""
    fresh = Freshness(state.view, state.horizon, state.position, state.checked_at)
    return {
        "name": state.view,
        "columns": [
            {"name": column.name, "type": column.type, "role": str(column.role)}
            | ({"merge": str(column.merge)} if column.merge else {})
            | ({"expression": column.expression} if column.expression else {})
            for column in state.layout.visible
        ],
        "rows": state.rows,
        "oldest_version": state.oldest,
        "freshness": freshness(fresh, now),
    }


def as_json(answer: Answer, now: datetime) -> bytes:
    names = [column.name for column in answer.columns]
    columns = [plain(column) for column in answer.rows.columns]
    body: dict[str, Any] = {
        "columns": [{"name": column.name, "type": column.type} for column in answer.columns],
        "rows": [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)],
        "row_count": answer.rows.num_rows,
        "more": answer.is_cut,
        "freshness": fresh_of(answer, now),
    }
    return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def as_arrow(answer: Answer, now: datetime) -> bytes:
    """An IPC stream whose schema carries `freshness` and `more` as metadata."""
    metadata = {"freshness": json.dumps(fresh_of(answer, now)), "more": json.dumps(answer.is_cut)}
    table = answer.rows.replace_schema_metadata(metadata)
    return ipc(table)


def fresh_of(answer: Answer, now: datetime) -> Any:
    """The freshness of one view, or a list for several."""
    found = [freshness(value, now) for value in answer.freshness]
    return found[0] if len(found) == 1 else found


def ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def plain(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column for JSON."""
    values = column.to_pylist()
    convert = converter(column.type)
    return values if convert is None else [None if value is None else convert(value) for value in values]


def converter(type: pa.DataType) -> Callable[[Any], Any] | None:
    if pa.types.is_integer(type) or pa.types.is_boolean(type) or pa.types.is_string(type):
        return None
    if pa.types.is_floating(type):
        return floating
    if pa.types.is_decimal(type):
        return int if type.scale == 0 else str
    return loose


def floating(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")


def loose(value: Any) -> Any:
    """A value of a type that only SQL statements give."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return floating(value)
        case Decimal():
            return str(value)
        case datetime():
            return time_text(value)
        case date():
            return value.isoformat()
        case bytes():
            return base64.b64encode(value).decode()
        case list() | tuple():
            return [loose(each) for each in value]
        case dict():
            return {str(name): loose(each) for name, each in value.items()}
        case _:
            return str(value)


def now() -> datetime:
    return datetime.now(UTC)
