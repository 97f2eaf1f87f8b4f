"""Functions that templates of Burrow's notifiers call: Go's own, and Burrow's.

In: arguments as values of Python. Out: values. TypeError and ValueError name wrong arguments.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote_plus

from barnabas.monitor.burrow.template_running import Record, is_true, shown

WIDTH_MAX = 1_000
VERB = re.compile(r"%([-+# 0]*)(\d*)(?:\.(\d+))?([a-zA-Z%])")
LAYOUT = re.compile(
    r"January|Jan|Monday|Mon|2006|MST|Z07:00|Z0700|-07:00|-0700|-07|PM|pm|[.,]0+|15|01|02|03|04|05|06|_2|1|2|3|4|5"
)
COUNTED = {"WARN": "warn", "STOP": "stop", "STALL": "stall", "REWIND": "rewind"}
STAMP = "2006-01-02 15:04:05 -0700 MST"


def time_text(at: datetime, layout: str) -> str:
    """A time in one of Go's layouts, which show a sample time."""

    def part(found: re.Match[str]) -> str:
        word = found[0]
        if word[0] in ".,":
            return word[0] + f"{at.microsecond:06d}"[: len(word) - 1].ljust(len(word) - 1, "0")
        if word in ("Z07:00", "Z0700") and not at.utcoffset():
            return "Z"
        return PARTS[word](at)

    return LAYOUT.sub(part, layout)


def offset(at: datetime, sign: str) -> str:
    shift = at.utcoffset()
    minutes = int(shift.total_seconds()) // 60 if shift is not None else 0
    hours, rest = divmod(abs(minutes), 60)
    return f"{'-' if minutes < 0 else '+'}{hours:02d}{sign}{rest:02d}"


PARTS: Mapping[str, Callable[[datetime], str]] = {
    "January": lambda at: f"{at:%B}",
    "Jan": lambda at: f"{at:%b}",
    "Monday": lambda at: f"{at:%A}",
    "Mon": lambda at: f"{at:%a}",
    "2006": lambda at: f"{at.year:04d}",
    "06": lambda at: f"{at.year % 100:02d}",
    "01": lambda at: f"{at.month:02d}",
    "1": lambda at: str(at.month),
    "02": lambda at: f"{at.day:02d}",
    "_2": lambda at: f"{at.day:2d}",
    "2": lambda at: str(at.day),
    "15": lambda at: f"{at.hour:02d}",
    "03": lambda at: f"{at.hour % 12 or 12:02d}",
    "3": lambda at: str(at.hour % 12 or 12),
    "04": lambda at: f"{at.minute:02d}",
    "4": lambda at: str(at.minute),
    "05": lambda at: f"{at.second:02d}",
    "5": lambda at: str(at.second),
    "PM": lambda at: "PM" if at.hour >= 12 else "AM",
    "pm": lambda at: "pm" if at.hour >= 12 else "am",
    "MST": lambda at: at.tzname() or "UTC",
    "-07:00": lambda at: offset(at, ":"),
    "Z07:00": lambda at: offset(at, ":"),
    "-0700": lambda at: offset(at, ""),
    "Z0700": lambda at: offset(at, ""),
    "-07": lambda at: offset(at, "")[:3],
}


def time_record(at: datetime) -> Record:
    """A time with the methods that templates use."""
    return Record(
        {},
        {
            "Format": lambda layout: time_text(at, layout),
            "String": lambda: time_text(at, STAMP),
            "Unix": lambda: int(at.timestamp()),
            "UTC": lambda: time_record(at.astimezone(UTC)),
        },
    )


def timestamp_text(time_ms: int, layout: str) -> str:
    return time_text(datetime.fromtimestamp(time_ms / 1000).astimezone(), layout)


def json_text(value: Any) -> str:
    """JSON as Go writes it: without blanks, and safe inside HTML."""
    text = json.dumps(plain(value), separators=(",", ":"), ensure_ascii=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def plain(value: Any) -> Any:
    if isinstance(value, Record):
        return value.methods["JSON"]() if "JSON" in value.methods else plain(value.fields)
    if isinstance(value, Mapping):
        return {str(key): plain(value[key]) for key in sorted(value)}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(each) for each in value]
    return value


def topics_by_status(partitions: Sequence[Record]) -> dict[str, list[str]]:
    found: dict[str, dict[str, None]] = {}
    for each in partitions:
        found.setdefault(str(each.fields["Status"]), {})[each.fields["Topic"]] = None
    return {status: list(topics) for status, topics in found.items()}


def partition_counts(partitions: Sequence[Record]) -> dict[str, int]:
    found = dict.fromkeys((*COUNTED.values(), "unknown"), 0)
    for each in partitions:
        status = str(each.fields["Status"])
        if status != "OK":
            found[COUNTED.get(status, "unknown")] += 1
    return found


def largest_lag(partition: Record | None) -> int:
    return 0 if partition is None else int(partition.fields["CurrentLag"])


def quotient(left: int, right: int) -> int:
    found = abs(left) // abs(right)
    return found if (left < 0) == (right < 0) else -found


def indexed(value: Any, *keys: Any) -> Any:
    for key in keys:
        value = value.get(key, "") if isinstance(value, Mapping) else value[key]
    return value


def formatted(layout: str, *values: Any) -> str:
    """Go's Sprintf, with the verbs that texts need."""
    left = list(values)

    def verb(found: re.Match[str]) -> str:
        flags, width, digits, kind = found.groups()
        if kind == "%":
            return "%"
        if not left:
            return f"%!{kind}(MISSING)"
        if int(width or 0) > WIDTH_MAX or int(digits or 0) > WIDTH_MAX:
            raise ValueError(f"{found[0]}: at most {WIDTH_MAX} characters")
        value = left.pop(0)
        if kind in "vs":
            text = shown(value)
            text = text[: int(digits)] if digits else text
        elif kind == "q":
            text = json.dumps(shown(value), ensure_ascii=False)
        elif kind == "d":
            text = str(int(value))
        elif kind in "feg":
            text = f"{float(value):.{digits or 6}{kind}}" if digits or kind != "g" else shown(float(value))
        elif kind in "xX":
            text = f"{int(value):{kind}}"
        elif kind == "t":
            text = shown(bool(value))
        else:
            return f"%!{kind}({shown(value)})"
        if "0" in flags and "-" not in flags and kind in "dfegxX":
            return text.zfill(int(width or 0))
        return text.ljust(int(width or 0)) if "-" in flags else text.rjust(int(width or 0))

    return VERB.sub(verb, layout)


def both(first: Any, *rest: Any) -> Any:
    for each in rest:
        if not is_true(first):
            return first
        first = each
    return first


def either(first: Any, *rest: Any) -> Any:
    for each in rest:
        if is_true(first):
            return first
        first = each
    return first


def same(first: Any, *rest: Any) -> bool:
    if not rest:
        raise ValueError("a value to compare with is missing")
    return any(first == each for each in rest)


def printed(*values: Any) -> str:
    """Go's Sprint: a blank between two values of which none is a text."""
    parts: list[str] = []
    for at, value in enumerate(values):
        if at and not isinstance(value, str) and not isinstance(values[at - 1], str):
            parts.append(" ")
        parts.append(shown(value))
    return "".join(parts)


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "jsonencoder": json_text,
    "topicsbystatus": topics_by_status,
    "partitioncounts": partition_counts,
    "add": lambda left, right: left + right,
    "minus": lambda left, right: left - right,
    "multiply": lambda left, right: left * right,
    "divide": quotient,
    "maxlag": largest_lag,
    "formattimestamp": timestamp_text,
    "and": both,
    "or": either,
    "not": lambda value: not is_true(value),
    "eq": same,
    "ne": lambda left, right: left != right,
    "lt": lambda left, right: left < right,
    "le": lambda left, right: left <= right,
    "gt": lambda left, right: left > right,
    "ge": lambda left, right: left >= right,
    "len": len,
    "index": indexed,
    "slice": lambda value, *ends: value[slice(*ends)] if len(ends) > 1 else value[ends[0] if ends else 0 :],
    "printf": formatted,
    "print": printed,
    "println": lambda *values: " ".join(map(shown, values)) + "\n",
    "html": lambda value: html.escape(shown(value)).replace("&#x27;", "&#39;").replace("&quot;", "&#34;"),
    "js": lambda value: json.dumps(shown(value))[1:-1],
    "urlquery": lambda value: quote_plus(shown(value)),
}
