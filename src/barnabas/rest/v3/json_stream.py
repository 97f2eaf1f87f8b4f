"""A stream of JSON objects, cut out of chunks as they arrive.

In: bytes in chunks of any size. Out: objects, each as soon as it is whole; `BrokenStream` for bytes that are
no such stream. Objects follow each other with or without white space. The parser of the standard library
reads each object once; only an object that lies in several chunks is also scanned for its end, each
character once. Size and depth of an object are bounded.
Does not know: HTTP, what objects mean.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any

from barnabas.rest.formats.json_text import finite_number, refuse_constant

DEPTH_MAX = 100
OBJECT_CHARS_MAX = 10 * 1024 * 1024

SPACE = re.compile(r"[ \t\r\n]*")
MARKS = re.compile(r'["{}\[\]]')
IN_TEXT = re.compile(r'["\\]')
OPENING, CLOSING = "{[", "}]"

_decoder = json.JSONDecoder(parse_constant=refuse_constant, parse_float=finite_number)
_decode = _decoder.raw_decode


class BrokenStream(Exception):
    """The bytes are no stream of JSON objects. The message says where and why."""


class TooLarge(BrokenStream):
    """An object is larger than the limit."""


class EndFinder:
    """Finds the end of one object in pieces of its text. Knows quotes, escapes and the depth."""

    __slots__ = ("_depth", "_depth_max", "_in_text", "_skips")

    def __init__(self, depth_max: int) -> None:
        self._depth_max = depth_max
        self._depth = 0
        self._in_text = False
        self._skips = False  # the first character of the next piece is escaped

    def find(self, text: str, start: int = 0) -> int | None:
        """The position behind the object, or None if it goes on behind this piece."""
        position = start
        if self._skips and position < len(text):
            self._skips = False
            position += 1
        while True:
            found = (IN_TEXT if self._in_text else MARKS).search(text, position)
            if found is None:
                return None
            mark = found[0]
            position = found.end()
            if mark == '"':
                self._in_text = not self._in_text
            elif mark == "\\":
                if position == len(text):
                    self._skips = True
                    return None
                position += 1
            elif mark in OPENING:
                self._depth += 1
                if self._depth > self._depth_max:
                    raise too_deep(self._depth_max)
            else:
                self._depth -= 1
                if self._depth == 0:
                    return position


class JsonStream:
    """Feed chunks, take objects; `end` when no more chunks come."""

    def __init__(self, object_chars_max: int = OBJECT_CHARS_MAX, depth_max: int = DEPTH_MAX) -> None:
        self._object_chars_max = object_chars_max
        self._depth_max = depth_max
        self._utf8 = codecs.getincrementaldecoder("utf-8")()
        self._pieces: list[str] = []  # of an object whose end has not arrived
        self._size = 0  # of the pieces
        self._finder: EndFinder | None = None
        self.count = 0  # objects so far

    def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
        """The objects that end in this chunk. The iterator must be used up, unless it raises."""
        try:
            text = self._utf8.decode(data)
        except UnicodeDecodeError as error:
            raise BrokenStream(f"the bytes are not UTF-8: {error.reason}") from None
        position = 0
        if self._finder is not None:
            end = self._finder.find(text)
            self._keep(text if end is None else text[:end])
            if end is None:
                return
            whole = "".join(self._pieces)
            self._pieces, self._size, self._finder = [], 0, None
            value, _ = self._parsed(whole, 0)
            position = end
            yield value
        length = len(text)
        while True:
            position = SPACE.match(text, position).end()  # type: ignore[union-attr]
            if position == length:
                return
            if text[position] != "{":
                shown = text[position : position + 20]
                raise BrokenStream(f"an object begins with {{, object {self.count + 1} with {shown!r}")
            try:
                value, end = _decode(text, position)
            except (ValueError, RecursionError):
                yield from self._unfinished(text, position)
                return
            if end - position > self._object_chars_max:
                raise self._too_large()
            self._check_depth(text, position, end)
            position = end
            self.count += 1
            yield value

    def end(self) -> None:
        """BrokenStream if the stream ends in the middle of an object."""
        try:
            self._utf8.decode(b"", True)
        except UnicodeDecodeError:
            raise BrokenStream("the stream ends in the middle of a character") from None
        if self._finder is not None:
            raise BrokenStream(f"the stream ends in the middle of object {self.count + 1}")

    def _unfinished(self, text: str, position: int) -> Iterator[dict[str, Any]]:
        """An object that cannot be read: broken, or its end has not arrived."""
        finder = EndFinder(self._depth_max)
        end = finder.find(text, position)
        if end is not None:
            self._parsed(text[position:end], 0)  # raises: it was tried before
            raise BrokenStream(f"object {self.count + 1} cannot be read")
        self._finder = finder
        self._keep(text[position:])
        yield from ()

    def _keep(self, piece: str) -> None:
        self._size += len(piece)
        if self._size > self._object_chars_max:
            raise self._too_large()
        self._pieces.append(piece)

    def _parsed(self, text: str, position: int) -> tuple[dict[str, Any], int]:
        try:
            value, end = _decode(text, position)
        except json.JSONDecodeError as error:
            raise BrokenStream(f"object {self.count + 1}: {error.msg} at character {error.pos}") from None
        except ValueError as error:
            reason = "a number has too many digits" if "digits" in str(error) else str(error)
            raise BrokenStream(f"object {self.count + 1}: {reason}") from None
        except RecursionError:
            raise too_deep(self._depth_max) from None
        self.count += 1
        return value, end

    def _check_depth(self, text: str, start: int, end: int) -> None:
        opened = text.count("{", start, end) + text.count("[", start, end)
        if opened > self._depth_max:
            EndFinder(self._depth_max).find(text[start:end])

    def _too_large(self) -> TooLarge:
        return TooLarge(f"object {self.count + 1} has more than {self._object_chars_max} characters")


def too_deep(depth_max: int) -> BrokenStream:
    return BrokenStream(f"an object is nested more than {depth_max} levels deep")
