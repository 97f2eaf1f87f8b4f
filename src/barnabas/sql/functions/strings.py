"""Functions of texts and bytes."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import struct
import uuid
from typing import Any

from barnabas.sql.errors import EvaluationError
from barnabas.sql.functions.registry import CODES, function

PADDED_LENGTH_MAX = 10_000_000
UNICODE = re.compile(r"\\u([0-9a-fA-F]{4})")
SPACES = "".join(map(chr, range(33)))  # what Java's trim takes off


@function("UCASE")
def upper(text: str) -> str:
    return text.upper()


@function("LCASE")
def lower(text: str) -> str:
    return text.lower()


@function("TRIM")
def trim(text: str) -> str:
    return text.strip(SPACES)


@function("LEN")
def length(value: str | bytes) -> int:
    """Texts count in UTF-16 units."""
    return len(value) if isinstance(value, bytes) else len(value) + sum(each > "\uffff" for each in value)


@function("INITCAP")
def capitals(text: str) -> str:
    return re.sub(r"\S+", lambda word: word[0][0].upper() + word[0][1:].lower(), text.lstrip())


@function("REPLACE")
def replace(text: str, old: str, new: str) -> str:
    return text.replace(old, new)


@function("CONCAT")
def concat(*values: Any) -> Any:
    given = [each for each in values if each is not None]
    if not given:
        return ""
    return type(given[0])().join(given)


@function("CONCAT_WS")
def concat_with(separator: Any, *values: Any) -> Any:
    return None if separator is None else separator.join(each for each in values if each is not None)


@function("CHR")
def character(value: int | str | None) -> str | None:
    if isinstance(value, str):
        match = UNICODE.fullmatch(value)
        value = int(match[1], 16) if match is not None else None
    if value is None or not 0 <= value <= 0x10FFFF:
        return None
    return chr(value)


@function("SUBSTRING")
def substring(text: Any, position: int, length: int | None = None) -> Any:
    start = position - 1 if position > 0 else max(0, len(text) + position) if position < 0 else 0
    end = len(text) if length is None else start + max(0, length)
    return text[start:end]


@function("INSTR")
def position_in(text: str | None, part: str | None, position: int = 1, occurrence: int = 1) -> int:
    if text is None or part is None or position == 0 or abs(position) > len(text) or occurrence < 1:
        return 0
    found = position - 2 if position > 0 else len(text) + position + 1
    for _ in range(occurrence):
        if position > 0:
            found = text.find(part, found + 1)
        else:
            found = text.rfind(part, 0, found - 1 + len(part)) if found > 0 else -1
        if found < 0:
            return 0
    return found + 1


def padded(value: Any, length: int | None, pad: Any) -> Any:
    """The padding, or None where there is no result."""
    if value is None or not pad or length is None or length < 0:
        return None
    if length > PADDED_LENGTH_MAX:
        raise EvaluationError(f"a text of {length} characters is too long: at most {PADDED_LENGTH_MAX}")
    missing = max(0, length - len(value))
    return (pad * (missing // len(pad) + 1))[:missing]


@function("LPAD")
def pad_left(value: Any, length: int | None, pad: Any) -> Any:
    padding = padded(value, length, pad)
    return None if padding is None else (padding + value)[:length] if padding else value[:length]


@function("RPAD")
def pad_right(value: Any, length: int | None, pad: Any) -> Any:
    padding = padded(value, length, pad)
    return None if padding is None else (value + padding)[:length]


@function("SPLIT")
def split(value: Any, delimiter: Any) -> list[Any]:
    if not delimiter:
        return [value[index : index + 1] for index in range(len(value))]
    return list(value.split(delimiter))


@function("SPLIT_TO_MAP")
def split_to_map(text: str | None, entries: str | None, pairs: str | None) -> dict[str, str] | None:
    if text is None or not entries or not pairs or entries == pairs:
        return None
    return dict(each.split(pairs, 1) for each in text.split(entries) if pairs in each)


@function("MD5")
def md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


@function("UUID")
def new_uuid(value: bytes | None = b"") -> str | None:
    if value is None or (value and len(value) != 16):
        return None
    return str(uuid.UUID(bytes=value) if value else uuid.uuid4())


def mask_with(text: str, marks: tuple[str | None, ...]) -> str:
    upper, lower, digit, other = marks if marks else ("X", "x", "n", "-")

    def masked(sign: str) -> str:
        if sign.isupper():
            mark = upper
        elif sign.islower():
            mark = lower
        else:
            mark = digit if sign.isdigit() else other
        return sign if mark is None else mark

    return "".join(map(masked, text))


@function("MASK")
def mask(text: str | None, *marks: str | None) -> str | None:
    return None if text is None else mask_with(text, marks)


def mask_part(is_left: bool, keeps: bool, name: str) -> None:
    def code(text: str | None, count: int, *marks: str | None) -> str | None:
        if text is None:
            return None
        if count < 0:
            raise EvaluationError(f"{name}: {count} characters is negative")
        edge = min(count, len(text)) if is_left else max(0, len(text) - count)
        first, last = text[:edge], text[edge:]
        if is_left != keeps:
            return mask_with(first, marks) + last
        return first + mask_with(last, marks)

    CODES[name] = code


mask_part(True, False, "MASK_LEFT")
mask_part(False, False, "MASK_RIGHT")
mask_part(True, True, "MASK_KEEP_LEFT")
mask_part(False, True, "MASK_KEEP_RIGHT")
# Kept on the right means that the left is masked, and the other way round.


@function("TO_BYTES")
def to_bytes(text: str, encoding: str) -> bytes:
    try:
        match encoding.lower():
            case "hex":
                return bytes.fromhex(re.sub(r"^(0[xX])|^[xX]'(.*)'$", lambda m: m[2] or "", text))
            case "utf8":
                return text.encode()
            case "ascii":
                return text.encode("ascii", "replace")
            case "base64":
                return base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error) as error:
        raise EvaluationError(f"{text[:40]!r} is no {encoding}: {error}") from None
    raise EvaluationError(f"the encoding {encoding!r} is unknown: use hex, utf8, ascii or base64")


@function("FROM_BYTES")
def from_bytes(value: bytes, encoding: str) -> str:
    match encoding.lower():
        case "hex":
            return value.hex().upper()
        case "utf8":
            return value.decode("utf-8", "replace")
        case "ascii":
            return value.decode("ascii", "replace")
        case "base64":
            return base64.b64encode(value).decode()
    raise EvaluationError(f"the encoding {encoding!r} is unknown: use hex, utf8, ascii or base64")


@function("ENCODE")
def encode(text: str, given: str, wanted: str) -> str:
    if given.lower() == wanted.lower():
        raise EvaluationError(f"ENCODE from {given} to {wanted}: two different encodings are needed")
    return from_bytes(to_bytes(text, given), wanted)


def number_of_bytes(name: str, layout: str, size: int) -> None:
    @function(name)
    def code(value: bytes | None, order: str = "BIG_ENDIAN") -> Any:
        if value is None:
            return None
        sign = {"BIG_ENDIAN": ">", "LITTLE_ENDIAN": "<"}.get(order)
        if sign is None or len(value) != size:
            raise EvaluationError(f"{name} takes {size} bytes, BIG_ENDIAN or LITTLE_ENDIAN")
        return struct.unpack(sign + layout, value)[0]


number_of_bytes("INT_FROM_BYTES", "i", 4)
number_of_bytes("BIGINT_FROM_BYTES", "q", 8)
number_of_bytes("DOUBLE_FROM_BYTES", "d", 8)
