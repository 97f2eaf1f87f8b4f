"""Formats of keys and values: text, bytes, numbers, JSON, dataclasses, pydantic models, windowed keys.

In: Python values. Out: the bytes that Java's serdes of the same name write. Does not know: registries.
"""

from __future__ import annotations

import dataclasses
import json
import struct
from typing import Any

from barnabas.plans.serdes import FromBytes, PlainSerde, Serde, ToBytes
from barnabas.plans.windows import SessionWindows, TimeWindows, Windowed

_LONG = struct.Struct(">q")
_TWO = struct.Struct(">qq")


class _NumberSerde(PlainSerde):
    """A number's format is pickled by its name: its functions are those of a compiled struct."""

    __slots__ = ()

    def __reduce__(self) -> Any:
        return serde_of, (self.format,)


def _number(name: str, form: str) -> PlainSerde:
    shape = struct.Struct(form)

    def from_bytes(data: bytes) -> Any:
        if len(data) != shape.size:
            raise ValueError(f"{len(data)} bytes are no {name}: {shape.size} are needed")
        return shape.unpack(data)[0]

    return _NumberSerde(name, shape.pack, from_bytes)


def _bytes(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError(f"bytes are needed, not {type(value).__name__}")
    return value


def _text(value: Any) -> bytes:
    if not isinstance(value, str):
        raise TypeError(f"a str is needed, not {type(value).__name__}")
    return value.encode()


def _to_json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


STRING = PlainSerde("string", _text, bytes.decode)
BYTES = PlainSerde("bytes", _bytes, lambda data: data)
SHORT = _number("int16", ">h")
INTEGER = _number("int32", ">i")
LONG = _number("int64", ">q")
FLOAT = _number("float", ">f")
DOUBLE = _number("double", ">d")
BOOLEAN = PlainSerde("boolean", lambda value: b"\x01" if value else b"\x00", lambda data: data != b"\x00")
JSON = PlainSerde("json", _to_json, json.loads)
_BY_TYPE: dict[type, PlainSerde] = {str: STRING, bytes: BYTES, int: LONG, float: DOUBLE, bool: BOOLEAN}
_BY_NAME = {
    serde.format: serde for serde in (STRING, BYTES, SHORT, INTEGER, LONG, FLOAT, DOUBLE, BOOLEAN, JSON)
}


def dataclass_serde(kind: type) -> PlainSerde:
    """A dataclass as a JSON object. Fields that the class does not have are ignored when it is read."""
    names = {field.name for field in dataclasses.fields(kind)}

    def from_bytes(data: bytes) -> Any:
        return kind(**{name: value for name, value in json.loads(data).items() if name in names})

    return PlainSerde("json", lambda value: _to_json(dataclasses.asdict(value)), from_bytes)


def model_serde(kind: Any) -> PlainSerde:
    """A pydantic model as a JSON object, checked when it is read."""
    return PlainSerde("json", lambda value: value.model_dump_json().encode(), kind.model_validate_json)


def serde_of(form: Any) -> Serde:
    """A serde from a serde, the name of a format, or a Python type."""
    if form in _BY_TYPE if isinstance(form, type) else False:
        return _BY_TYPE[form]
    if isinstance(form, str) and form in _BY_NAME:
        return _BY_NAME[form]
    if isinstance(form, type) and dataclasses.is_dataclass(form):
        return dataclass_serde(form)
    if isinstance(form, type) and hasattr(form, "model_validate_json"):
        return model_serde(form)
    if form in (dict, list):
        return JSON
    if isinstance(form, Serde):
        return form
    raise TypeError(
        f"{form!r} is no serde: give one of {', '.join(sorted(_BY_NAME))}, a type (str, int, float, bytes,"
        " bool, dict, a dataclass, a pydantic model) or an object with serializer() and deserializer()"
    )


@dataclasses.dataclass(frozen=True)
class WindowedSerde:
    """Windowed keys in Kafka's bytes: the key, then the start; of sessions the key, the end, then the
    start."""

    inner: Serde
    windows: Any

    @property
    def format(self) -> str:
        return f"windowed {self.inner.format}"

    def serializer(self, topic: str, is_key: bool) -> ToBytes:
        write = self.inner.serializer(topic, is_key)
        if isinstance(self.windows, SessionWindows):
            return lambda windowed: write(windowed.key) + _TWO.pack(windowed.end, windowed.start)
        return lambda windowed: write(windowed.key) + _LONG.pack(windowed.start)

    def deserializer(self, topic: str, is_key: bool) -> FromBytes:
        read = self.inner.deserializer(topic, is_key)
        if isinstance(self.windows, SessionWindows):

            def session(data: bytes) -> Windowed:
                end, start = _TWO.unpack(data[-16:])
                return Windowed(read(data[:-16]), start, end)

            return session
        is_time = isinstance(self.windows, TimeWindows)
        size = self.windows.size_ms if is_time else getattr(self.windows, "difference_ms", (1 << 63) - 1)

        def window(data: bytes) -> Windowed:
            (start,) = _LONG.unpack(data[-8:])
            return Windowed(read(data[:-8]), start, min(start + size, (1 << 63) - 1))

        return window
