"""Turns lines of standard input into records: splits headers, key and value at the given separators.

In: properties of the reader (Kafka's names) and lines as bytes. Out: records without partition. A line
without a separator raises, or with ignore.error becomes a value without a key. Bytes that are not UTF-8 stay
unchanged.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from barnabas.cli.frame.parsing import ToolError
from barnabas.records.record import Headers

SEPARATORS = ("key.separator", "headers.delimiter", "headers.separator", "headers.key.separator")
HEADER_SEPARATORS = SEPARATORS[1:]
NAMES = {*SEPARATORS, "parse.key", "parse.headers", "ignore.error", "null.marker"}


class Line(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: Headers


class LineReader:
    """Reads `headers<TAB>key<TAB>value`; the properties say which parts a line has."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        unknown = sorted(set(properties) - NAMES - {"topic"})
        if unknown:
            raise ToolError(
                f"the line reader has no property {unknown[0]}: it knows {', '.join(sorted(NAMES))}"
            )
        self.parse_key = is_true(properties.get("parse.key"))
        self.parse_headers = is_true(properties.get("parse.headers"))
        self.ignore_error = is_true(properties.get("ignore.error"))
        defaults = {"headers.separator": ",", "headers.key.separator": ":"}
        chosen = {name: properties.get(name, defaults.get(name, "\t")) for name in SEPARATORS}
        self.null_marker = encoded(properties.get("null.marker"))
        check_different(chosen, properties.get("null.marker"))
        self.key_separator = chosen["key.separator"].encode()
        self.headers_delimiter = chosen["headers.delimiter"].encode()
        self.headers_key_separator = chosen["headers.key.separator"].encode()
        self._headers_separator = re.compile(chosen["headers.separator"].encode())
        self.number = 0

    def read(self, line: bytes) -> Line:
        self.number += 1
        headers, at = self._part(self.parse_headers, line, 0, self.headers_delimiter, "headers delimiter")
        key, at = self._part(self.parse_key, line, at, self.key_separator, "key separator")
        return Line(
            self._null(key),
            self._null(line[at:]),
            self._split_headers(headers) if self._null(headers) is not None else (),
        )

    def _part(
        self, wanted: bool, line: bytes, start: int, mark: bytes, name: str
    ) -> tuple[bytes | None, int]:
        if not wanted:
            return None, start
        end = line.find(mark, start)
        if end >= 0:
            return line[start:end], end + len(mark)
        if self.ignore_error:
            return None, start
        raise ToolError(f"No {name} found on line number {self.number}: '{text(line)}'")

    def _null(self, part: bytes | None) -> bytes | None:
        return None if self.null_marker is not None and part == self.null_marker else part

    def _split_headers(self, part: bytes | None) -> Headers:
        return tuple(self._header(pair) for pair in self._headers_separator.split(part or b""))

    def _header(self, pair: bytes) -> tuple[str, bytes | None]:
        name, mark, value = pair.partition(self.headers_key_separator)
        if not mark:
            if self.ignore_error:
                return text(pair), None
            raise ToolError(
                f"No header key separator found in pair '{text(pair)}' on line number {self.number}"
            )
        if self.null_marker is not None and name == self.null_marker:
            marker = text(self.null_marker)
            raise ToolError(
                f"Header keys should not be equal to the null marker '{marker}' as they can't be null"
            )
        return text(name), self._null(value)


def check_different(separators: Mapping[str, str], null_marker: str | None) -> None:
    for index, one in enumerate(HEADER_SEPARATORS):
        for other in HEADER_SEPARATORS[index + 1 :]:
            if separators[one] == separators[other]:
                raise ToolError(f"{one} and {other} may not be equal")
    for name in SEPARATORS:
        if separators[name] == null_marker:
            raise ToolError(f"null.marker and {name} may not be equal")


def is_true(value: str | None) -> bool:
    return value is not None and value.strip().lower() == "true"


def encoded(value: str | None) -> bytes | None:
    return None if value is None else value.encode()


def text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
