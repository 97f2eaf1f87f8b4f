"""The options of a tail, read from the query and the header Last-Event-ID.

In: texts of a request. Out: `TailOptions`, or ApiError 400 that names the parameter.
Does not know: Kafka, HTTP's messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from barnabas.rest.formats.names import DataFormat
from barnabas.rest.kafka_errors import refusal
from barnabas.services.errors import ApiError

AUTO = "auto"
FORMATS = (AUTO, *(each.lower() for each in DataFormat))
PARAMETERS = ("from", "partition", "format", "key_format", "key", "contains", "limit", "read_committed")
LAST_EVENT_ID = "last_event_id"
PARTITIONS_MAX = 10_000
NUMBER_MAX = 2**63 - 1
TEXT_MAX = 1_000


class Start(Enum):
    END = "end"
    BEGINNING = "beginning"
    OFFSET = "an offset"
    BEFORE_END = "a number of records before the end"
    TIME = "a time"


@dataclass(frozen=True, slots=True)
class TailOptions:
    """`number` is the offset, the count or the milliseconds that `start` speaks of. `resume` has the next
    offset of partitions that an earlier tail read. None as a format: whatever fits."""

    start: Start = Start.END
    number: int = 0
    partitions: tuple[int, ...] = ()  # empty: all
    value_format: DataFormat | None = None
    key_format: DataFormat | None = None
    key: bytes | None = None
    contains: bytes | None = None
    limit: int | None = None
    read_committed: bool = False
    resume: tuple[tuple[int, int], ...] = ()


def options_of(query: Mapping[str, str], last_event_id: str | None) -> TailOptions:
    for name in query:
        if name not in PARAMETERS and name != LAST_EVENT_ID:
            raise wrong(name, f"unknown: a tail takes {', '.join((*PARAMETERS, LAST_EVENT_ID))}")
    start, number = start_of(query.get("from", Start.END.value))
    form = format_of("format", query.get("format", AUTO))
    resume = query.get(LAST_EVENT_ID, last_event_id)
    return TailOptions(
        start,
        number,
        tuple(sorted({whole("partition", each) for each in query["partition"].split(",")}))
        if "partition" in query
        else (),
        form,
        format_of("key_format", query["key_format"]) if "key_format" in query else form,
        text_of(query, "key"),
        text_of(query, "contains"),
        whole("limit", query["limit"]) if "limit" in query else None,
        flag(query, "read_committed"),
        positions_of(resume) if resume else (),
    )


def start_of(text: str) -> tuple[Start, int]:
    for word in (Start.END, Start.BEGINNING):
        if text == word.value:
            return word, 0
    if text.startswith("-"):
        return Start.BEFORE_END, whole("from", text[1:])
    if text.isascii() and text.isdigit():
        return Start.OFFSET, whole("from", text)
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            raise ValueError("it has no offset")
        at_ms = round(moment.timestamp() * 1000)
    except (ValueError, OverflowError):
        raise wrong(
            "from", "end, beginning, an offset, a minus with a number of records, or an RFC 3339 time"
        ) from None
    return Start.TIME, max(0, at_ms)


def format_of(name: str, text: str) -> DataFormat | None:
    if text not in FORMATS:
        raise wrong(name, f"one of {', '.join(FORMATS)}")
    return None if text == AUTO else DataFormat(text.upper())


def whole(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 19 and int(text) <= NUMBER_MAX):
        raise wrong(name, "a whole number")
    return int(text)


def text_of(query: Mapping[str, str], name: str) -> bytes | None:
    text = query.get(name)
    if text is None:
        return None
    if len(text) > TEXT_MAX:
        raise wrong(name, f"at most {TEXT_MAX} characters long")
    return text.encode(errors="replace")


def flag(query: Mapping[str, str], name: str) -> bool:
    text = query.get(name, "false")
    if text not in ("true", "false"):
        raise wrong(name, "true or false")
    return text == "true"


def positions_of(text: str) -> tuple[tuple[int, int], ...]:
    """Next offsets: `0:15,1:7`."""
    parts = text.split(",")
    if len(parts) > PARTITIONS_MAX:
        raise wrong(LAST_EVENT_ID, f"at most {PARTITIONS_MAX} partitions long")
    found = []
    for part in parts:
        partition, colon, offset = part.partition(":")
        if not colon:
            raise wrong(LAST_EVENT_ID, "partitions with their next offsets, as 0:15,1:7")
        found.append((whole(LAST_EVENT_ID, partition), whole(LAST_EVENT_ID, offset)))
    return tuple(found)


def position_text(positions: Mapping[int, int]) -> str:
    return ",".join(f"{partition}:{positions[partition]}" for partition in sorted(positions))


def wrong(name: str, expected: str) -> ApiError:
    return refusal(400, 400, f"The parameter {name[:100]} is {expected}.")
