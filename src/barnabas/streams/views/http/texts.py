"""Keys as texts of a URL, and rows as JSON.

In: a text and the format of keys; rows. Out: a key, or WrongLookup; values that JSON has. Does not know:
requests.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import math
from collections.abc import Mapping
from typing import Any

from barnabas.plans.serdes import Serde
from barnabas.plans.windows import Windowed
from barnabas.streams.views.rows import Answer, Row, WrongLookup

WHOLE = ("int16", "int32", "int64")
FRACTIONS = ("float", "double")
TRUTHS = {"true": True, "false": False}


def key_of(text: str, serde: Serde | None) -> Any:
    """A key from the text of a URL: text, a number, `true`, bytes in base64 (of URLs), else JSON."""
    form = "bytes" if serde is None else serde.format
    try:
        if form == "string":
            return text
        if form in WHOLE:
            return int(text)
        if form in FRACTIONS:
            return float(text)
        if form == "boolean":
            return TRUTHS[text]
        if form == "bytes":
            return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        value = json.loads(text)
        if serde is not None and form == "json":  # dataclasses and models are read by their format
            return serde.deserializer("", True)(text.encode())
        return value
    except (ValueError, KeyError, TypeError) as error:
        raise WrongLookup(f"{text!r} is no key of the format {form}: {error}") from error


def shown(value: Any) -> Any:
    """A value as JSON has it: bytes in base64, objects by their fields, all else that JSON lacks as text."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    if isinstance(value, Mapping):
        return {str(name): shown(each) for name, each in value.items()}
    if isinstance(value, Windowed):
        return {"key": shown(value.key), "start": value.start, "end": value.end}
    if isinstance(value, list | tuple | set | frozenset):
        return [shown(each) for each in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return shown({field.name: getattr(value, field.name) for field in dataclasses.fields(value)})
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    return str(value)


def row_document(row: Row) -> dict[str, Any]:
    if isinstance(row.key, Windowed):
        head = {"key": shown(row.key.key), "window": {"start": row.key.start, "end": row.key.end}}
    else:
        head = {"key": shown(row.key)}
    return {**head, "value": shown(row.value), "timestamp": row.timestamp}


def answer_document(answer: Answer) -> dict[str, Any]:
    return {
        "rows": [row_document(row) for row in answer.rows],
        "has_more": answer.has_more,
        "position": position_document(answer.position),
    }


def position_document(position: Mapping[int, int]) -> dict[str, int]:
    return {str(partition): offset for partition, offset in sorted(position.items())}


def position_of(text: str) -> dict[int, int]:
    """`0:12,1:7`: the next offset of partitions."""
    try:
        pairs = [part.split(":") for part in text.split(",") if part]
        return {int(partition): int(offset) for partition, offset in pairs}
    except ValueError:
        raise WrongLookup(f"position is {text!r}: give partition:offset, as in 0:12,1:7") from None
