"""Guesses the formats of keys or values from the bytes seen so far, and shows them as text.

In: bytes. Out: the formats that all of them could have, and the text by the first of those. Formats of a
registry come first where a schema id leads the bytes, then JSON, then numbers by their size, then text.
Does not know: topics, who asks the registry.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable

NO_DATA = "¯\\_(ツ)_/¯ - no data processed"
MAGIC = 0
PREFIX_BYTES = 5
WINDOW_BYTES = 8
Show = Callable[[bytes], str]


def json_text(data: bytes) -> str:
    """JSON in one line. Bare numbers and texts count as JSON only as keys and values of ksqlDB do: objects,
    arrays and quoted texts."""
    text = data.decode()
    value = json.loads(text)
    if not isinstance(value, dict | list | str):
        raise ValueError("a bare number is no JSON here")
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def number(layout: str) -> Show:
    codec = struct.Struct(layout)

    def show(data: bytes) -> str:
        if len(data) != codec.size:
            raise ValueError(f"{len(data)} bytes are no number of {codec.size}")
        return str(codec.unpack(data)[0])

    return show


def text(data: bytes) -> str:
    found = data.decode()
    if not found.isprintable() and any(ord(sign) < 32 and sign not in "\t\r\n" for sign in found):
        raise ValueError("it has characters that no text has")
    return found


def session_key(data: bytes) -> str:
    """A key with the end and the start of its session behind it."""
    if len(data) <= 2 * WINDOW_BYTES:
        raise ValueError("too short for a window")
    end, start = struct.unpack(">qq", data[-2 * WINDOW_BYTES :])
    check_time(start)
    check_time(end)
    return f"[{text(data[: -2 * WINDOW_BYTES])}@{start}/{end}]"


def window_key(data: bytes) -> str:
    if len(data) <= WINDOW_BYTES:
        raise ValueError("too short for a window")
    [start] = struct.unpack(">q", data[-WINDOW_BYTES:])
    check_time(start)
    return f"[{text(data[:-WINDOW_BYTES])}@{start}/-]"


def check_time(millis: int) -> None:
    """A time between 2000 and 2100, or none at all."""
    if not 946_684_800_000 <= millis < 4_102_444_800_000:
        raise ValueError("no time of a window")


def hexadecimal(data: bytes) -> str:
    return "\\x" + data.hex().upper()


# In the order in which one is preferred. Text takes what is printable, the last one takes everything.
FORMATS: dict[str, Show] = {
    "JSON": json_text,
    "SESSION(KAFKA_STRING)": session_key,
    "HOPPING(KAFKA_STRING) or TUMBLING(KAFKA_STRING)": window_key,
    "KAFKA_STRING": text,
    "KAFKA_INT": number(">i"),
    "KAFKA_BIGINT": number(">q"),
    "KAFKA_DOUBLE": number(">d"),
    "UNRECOGNIZED_BYTES": hexadecimal,
}


class Guess:
    """`registered` is the name of the registry's format once one was seen."""

    def __init__(self, *, is_key: bool) -> None:
        self._left = [name for name in FORMATS if is_key or "WINDOW" not in name]
        if not is_key:
            self._left = [each for each in self._left if "(" not in each]
        self._seen = False
        self.registered: str | None = None

    def has_schema_id(self, data: bytes) -> bool:
        return len(data) > PREFIX_BYTES and data[0] == MAGIC

    def show(self, data: bytes | None) -> str:
        if data is None:
            return "<null>"
        self._seen = True
        fits = {name: shown for name in self._left if (shown := attempt(FORMATS[name], data)) is not None}
        if not fits:
            fits = {"UNRECOGNIZED_BYTES": hexadecimal(data)}
        self._left = list(fits)
        return next(iter(fits.values()))

    def show_registered(self, name: str, shown: str) -> str:
        self._seen = True
        self.registered = name
        return shown

    def __str__(self) -> str:
        if not self._seen:
            return NO_DATA
        if self.registered is not None:
            return self.registered
        named = [each for each in self._left if each != "UNRECOGNIZED_BYTES"]
        return " or ".join(named) or "UNRECOGNIZED_BYTES"


def attempt(show: Show, data: bytes) -> str | None:
    try:
        return show(data)
    except (ValueError, UnicodeDecodeError, RecursionError):
        return None
