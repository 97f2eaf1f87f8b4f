"""Formats of keys and values: text, bytes, numbers, JSON, dataclasses, pydantic models, windowed keys.

In: Python values. Out: the bytes that Java's serdes of the same name write. Does not know: registries.
"""

from __future__ import annotations

import dataclasses
import json
import struct
from collections.abc import Callable
from typing import Any, Generic, TypeAlias, overload

from barnabas.plans.serdes import PlainSerde, Serde
from barnabas.plans.type_variables import K2, T
from barnabas.plans.windows import SessionWindows, TimeWindows, Windowed

# A type or a serde tells the type of keys or values. The name of a format ("int64") does not.
Form: TypeAlias = type[T] | Serde[T]

_LONG = struct.Struct(">q")
_TWO = struct.Struct(">qq")


class _NumberSerde(PlainSerde[T]):
    """A number's format is pickled by its name: its functions are those of a compiled struct."""

    __slots__ = ()

    def __reduce__(self) -> Any:
        return serde_of, (self.format,)


def _number(name: str, form: str) -> PlainSerde[Any]:
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


STRING: PlainSerde[str] = PlainSerde("string", _text, bytes.decode)
BYTES: PlainSerde[bytes] = PlainSerde("bytes", _bytes, lambda data: data)
SHORT: PlainSerde[int] = _number("int16", ">h")
INTEGER: PlainSerde[int] = _number("int32", ">i")
LONG: PlainSerde[int] = _number("int64", ">q")
FLOAT: PlainSerde[float] = _number("float", ">f")
DOUBLE: PlainSerde[float] = _number("double", ">d")
BOOLEAN: PlainSerde[bool] = PlainSerde(
    "boolean", lambda value: b"\x01" if value else b"\x00", lambda data: data != b"\x00"
)
JSON: PlainSerde[Any] = PlainSerde("json", _to_json, json.loads)
_BY_TYPE: dict[type, PlainSerde[Any]] = {str: STRING, bytes: BYTES, int: LONG, float: DOUBLE, bool: BOOLEAN}
_BY_NAME: dict[str, PlainSerde[Any]] = {
    serde.format: serde for serde in (STRING, BYTES, SHORT, INTEGER, LONG, FLOAT, DOUBLE, BOOLEAN, JSON)
}


def dataclass_serde(kind: type[T]) -> PlainSerde[T]:
    """A dataclass as a JSON object. Fields that the class does not have are ignored when it is read."""
    fields: Any = dataclasses.fields
    as_dict: Any = dataclasses.asdict  # checkers know no type of all dataclasses
    names = {field.name for field in fields(kind)}

    def from_bytes(data: bytes) -> Any:
        return kind(**{name: value for name, value in json.loads(data).items() if name in names})

    return PlainSerde("json", lambda value: _to_json(as_dict(value)), from_bytes)


def model_serde(kind: Any) -> PlainSerde[Any]:
    """A pydantic model as a JSON object, checked when it is read."""
    return PlainSerde("json", lambda value: value.model_dump_json().encode(), kind.model_validate_json)


@overload
def serde_of(form: Form[T]) -> Serde[T]: ...


@overload
def serde_of(form: str) -> Serde[Any]: ...


def serde_of(form: Any) -> Serde[Any]:
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
class WindowedSerde(Generic[K2]):
    """Windowed keys in Kafka's bytes: the key, then the start; of sessions the key, the end, then the
    start."""

    inner: Serde[K2]
    windows: Any

    @property
    def format(self) -> str:
        return f"windowed {self.inner.format}"

    def serializer(self, topic: str, is_key: bool) -> Callable[[Windowed[K2]], bytes]:
        write = self.inner.serializer(topic, is_key)
        if isinstance(self.windows, SessionWindows):
            return lambda windowed: write(windowed.key) + _TWO.pack(windowed.end, windowed.start)
        return lambda windowed: write(windowed.key) + _LONG.pack(windowed.start)

    def deserializer(self, topic: str, is_key: bool) -> Callable[[bytes], Windowed[K2]]:
        read = self.inner.deserializer(topic, is_key)
        if isinstance(self.windows, SessionWindows):

            def session(data: bytes) -> Windowed[K2]:
                end, start = _TWO.unpack(data[-16:])
                return Windowed(read(data[:-16]), start, end)

            return session
        is_time = isinstance(self.windows, TimeWindows)
        size = self.windows.size_ms if is_time else getattr(self.windows, "difference_ms", (1 << 63) - 1)

        def window(data: bytes) -> Windowed[K2]:
            (start,) = _LONG.unpack(data[-8:])
            return Windowed(read(data[:-8]), start, min(start + size, (1 << 63) - 1))

        return window
