"""Functions of JSON texts and of URLs."""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import json
import re
from typing import Any
from urllib.parse import quote_plus, unquote, unquote_plus, urlsplit

from barnabas.sql.errors import EvaluationError
from barnabas.sql.functions.registry import function

PATH = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\['([^']*)'\]")
ABSENT = object()
INVALID_URI = re.compile(r"[\s<>\"{}|\\^`]|%(?![0-9A-Fa-f]{2})")


def parsed(text: str) -> Any:
    try:
        return json.loads(text, parse_float=decimal.Decimal)
    except (ValueError, RecursionError):
        raise EvaluationError(f"{text[:40]!r} is no JSON") from None


def parsed_or_absent(text: str | None) -> Any:
    if text is None:
        return ABSENT
    try:
        return parsed(text)
    except EvaluationError:
        return ABSENT


def as_json(value: Any, sort: bool = False) -> str:
    return json.dumps(plain(value), separators=(",", ":"), ensure_ascii=False, sort_keys=sort)


class Digits(float):
    """A number that JSON shows with the digits it had."""

    def __init__(self, value: decimal.Decimal) -> None:
        self.text = format(value, "f")

    def __repr__(self) -> str:
        return self.text


def plain(value: Any) -> Any:
    """A value with types that JSON has."""
    match value:
        case decimal.Decimal():
            return Digits(value)
        case bytes():
            return base64.b64encode(value).decode()
        case dt.datetime():
            return value.isoformat(timespec="milliseconds")
        case dt.date() | dt.time():
            return value.isoformat()
        case list():
            return [plain(each) for each in value]
        case dict():
            return {name: plain(each) for name, each in value.items()}
    return value


@function("EXTRACTJSONFIELD")
def extract(text: str | None, path: str | None) -> str | None:
    if text is None or path is None:
        return None
    if not path.startswith("$"):
        raise EvaluationError(f"the path {path!r} does not begin with $")
    found, place = parsed(text), 1
    while place < len(path):
        step = PATH.match(path, place)
        if step is None:
            raise EvaluationError(f"the path {path!r} is wrong at {path[place:]!r}: use $.a.b[0]")
        place = step.end()
        if step[2] is not None:
            if not isinstance(found, list) or int(step[2]) >= len(found):
                return None
            found = found[int(step[2])]
        else:
            name = step[1] or step[3]
            if not isinstance(found, dict) or name not in found:
                return None
            found = found[name]
    return found if isinstance(found, str) else as_json(found)


@function("IS_JSON_STRING")
def is_json(text: str | None) -> bool:
    return parsed_or_absent(text) is not ABSENT


@function("JSON_ARRAY_CONTAINS")
def json_contains(text: str | None, wanted: Any) -> bool:
    found = parsed_or_absent(text)
    if not isinstance(found, list):
        return False
    if isinstance(wanted, float):
        return any(isinstance(each, decimal.Decimal) and float(each) == wanted for each in found)
    return any(type(each) is type(wanted) and each == wanted for each in found)


@function("JSON_ARRAY_LENGTH")
def json_length(text: str | None) -> int | None:
    if text is None:
        return None
    found = parsed(text)
    return len(found) if isinstance(found, list) else None


@function("JSON_CONCAT")
def json_concat(*texts: str | None) -> str | None:
    found = [parsed_or_absent(each) for each in texts]
    if not found or ABSENT in found:
        return None
    if all(isinstance(each, dict) for each in found):
        merged: dict[str, Any] = {}
        for each in found:
            merged |= each
        return as_json(merged)
    joined: list[Any] = []
    for each in found:
        joined += each if isinstance(each, list) else [each]
    return as_json(joined)


@function("JSON_ITEMS")
def json_items(text: str | None) -> list[str] | None:
    found = parsed_or_absent(text)
    return [as_json(each) for each in found] if isinstance(found, list) else None


@function("JSON_KEYS")
def json_keys(text: str | None) -> list[str] | None:
    found = parsed_or_absent(text)
    return list(found) if isinstance(found, dict) else None


@function("JSON_RECORDS")
def json_records(text: str | None) -> dict[str, str] | None:
    found = parsed_or_absent(text)
    return {name: as_json(each) for name, each in found.items()} if isinstance(found, dict) else None


@function("TO_JSON_STRING")
def to_json(value: Any) -> str:
    return as_json(value, sort=True)


@function("URL_ENCODE_PARAM")
def encode_param(text: str) -> str:
    return quote_plus(text, safe="*-._")


@function("URL_DECODE_PARAM")
def decode_param(text: str) -> str:
    return unquote_plus(text)


def uri(text: str) -> Any:
    if INVALID_URI.search(text):
        raise EvaluationError(f"{text[:80]!r} is no URI")
    try:
        return urlsplit(text)
    except ValueError as error:
        raise EvaluationError(f"{text[:80]!r} is no URI: {error}") from None


@function("URL_EXTRACT_PROTOCOL")
def protocol_of(text: str | None) -> str | None:
    return None if text is None else uri(text).scheme or None


@function("URL_EXTRACT_HOST")
def host_of(text: str | None) -> str | None:
    return None if text is None else uri(text).hostname


@function("URL_EXTRACT_PORT")
def port_of(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        port: int | None = uri(text).port
    except ValueError as error:
        raise EvaluationError(f"{text[:80]!r} is no URI: {error}") from None
    return port


@function("URL_EXTRACT_PATH")
def path_of(text: str | None) -> str | None:
    return None if text is None else unquote(uri(text).path)


@function("URL_EXTRACT_QUERY")
def query_of(text: str | None) -> str | None:
    return None if text is None else unquote(uri(text).query) or None


@function("URL_EXTRACT_FRAGMENT")
def fragment_of(text: str | None) -> str | None:
    return None if text is None else unquote(uri(text).fragment) or None


@function("URL_EXTRACT_PARAMETER")
def parameter_of(text: str | None, name: str | None) -> str | None:
    if text is None or name is None:
        return None
    for pair in uri(text).query.split("&"):
        given, _, value = pair.partition("=")
        if unquote(given) == name:
            return unquote(value)
    return None
