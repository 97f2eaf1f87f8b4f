"""Formats without a schema: base64, any JSON, text."""

from __future__ import annotations

import binascii
from typing import Any

from barnabas.rest.formats import json_text
from barnabas.rest.formats.errors import DataMismatch


class BinaryCodec:
    """Bytes as base64, in the standard alphabet."""

    def encode(self, data: Any) -> bytes:
        try:
            return binascii.a2b_base64(data, strict_mode=True)
        except ValueError as error:  # binascii.Error, or characters beyond ASCII
            raise DataMismatch(f"not base64: {error}") from None
        except TypeError:
            raise DataMismatch(f"base64 must be a string, not {json_kind(data)}") from None

    def decode(self, payload: bytes) -> Any:
        return binascii.b2a_base64(payload, newline=False).decode()


class JsonCodec:
    """Any JSON value as its compact UTF-8 text."""

    def encode(self, data: Any) -> bytes:
        try:
            return json_text.dumps(data)
        except ValueError as error:
            raise DataMismatch(str(error)) from None

    def decode(self, payload: bytes) -> Any:
        try:
            return json_text.loads(payload)
        except ValueError as error:
            raise DataMismatch(f"the record holds no JSON: {error}") from None


class StringCodec:
    """A JSON string as its UTF-8 bytes."""

    def encode(self, data: Any) -> bytes:
        if not isinstance(data, str):
            raise DataMismatch(f"a string was expected, not {json_kind(data)}")
        try:
            return data.encode()
        except UnicodeEncodeError:
            raise DataMismatch("the string holds half of a surrogate pair") from None

    def decode(self, payload: bytes) -> Any:
        return payload.decode("utf-8", "replace")


def json_kind(data: Any) -> str:
    """The kind of a JSON value, in words for errors."""
    if data is None:
        return "null"
    if isinstance(data, bool):
        return "a boolean"
    if isinstance(data, int | float):
        return "a number"
    if isinstance(data, str):
        return "a string"
    return "a list" if isinstance(data, list) else "an object"
