"""Field types of Kafka's protocol, as they appear in message declarations.

Each name is an alias of the Python type for such values; the codec uses the name itself. A `Uuid` is 16
bytes. `Records` is a bytes-like slice of the decoded frame, or in a message to encode any object with a
length.
"""

from __future__ import annotations

from typing import Any, TypeAlias

Bool: TypeAlias = bool
Int8: TypeAlias = int
Int16: TypeAlias = int
UInt16: TypeAlias = int
Int32: TypeAlias = int
UInt32: TypeAlias = int
Int64: TypeAlias = int
Float64: TypeAlias = float
Uuid: TypeAlias = bytes
String: TypeAlias = str
Bytes: TypeAlias = bytes
Records: TypeAlias = Any

NULL_UUID = bytes(16)

FIXED_FORMATS = {
    "Bool": "?",
    "Int8": "b",
    "Int16": "h",
    "UInt16": "H",
    "Int32": "i",
    "UInt32": "I",
    "Int64": "q",
    "Float64": "d",
    "Uuid": "16s",
}
"""`struct` formats of the types with a fixed size."""

FIXED_SIZES = {
    "Bool": 1,
    "Int8": 1,
    "Int16": 2,
    "UInt16": 2,
    "Int32": 4,
    "UInt32": 4,
    "Int64": 8,
    "Float64": 8,
    "Uuid": 16,
}

ZERO_VALUES: dict[str, Any] = {
    "Bool": False,
    "Int8": 0,
    "Int16": 0,
    "UInt16": 0,
    "Int32": 0,
    "UInt32": 0,
    "Int64": 0,
    "Float64": 0.0,
    "Uuid": NULL_UUID,
    "String": "",
    "Bytes": b"",
    "Records": None,
}
"""The value of a field without a declared default."""

STRING_LENGTH_MAX = 0x7FFF
"""Kafka refuses longer strings in every version, even if the length is a varint."""
