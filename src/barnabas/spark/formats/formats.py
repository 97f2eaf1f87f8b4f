"""Keys and values as columns: bytes of records decoded by a format, and encoded again.

In: options such as `value.format` and `value.schema`. Out: for reading, the type of the column as Spark
writes it, and a typed array instead of one of bytes, with an error for each row that is broken; for writing,
bytes.
Formats are entries of one table; those by a schema registry have a module of their own.
Does not know: connections, topics, what happens to rows that cannot be decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from barnabas.spark.basics.settings import OptionError

BINARY = "binary"
REGISTRY = "registry"  # the type of schema that the subject has
OPTIONS = (
    "format",
    "schema",
    "message",
    "subject",
    "schema.version",
    "schema.id.location",
)  # behind `key.` and `value.`
MODES = ("permissive", "drop", "fail")
SIDES = ("key", "value")
Misfits = (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, TypeError, ValueError)


class Codec(Protocol):
    """One format with its schema."""

    @property
    def ddl(self) -> str:
        """The type of the column, as Spark writes types."""

    def decode(self, data: bytes) -> Any:
        """A value as `pa.array` takes it; an exception says why there is none."""

    def encode(self, value: Any) -> bytes:
        """The same the other way."""


class CannotDecode(Exception):
    """Records cannot be decoded now, and it is not their fault: the query ends, none of them is broken."""


@dataclass(frozen=True, slots=True)
class Registered:
    """A version of a subject in a schema registry, with the settings of the registry's client."""

    properties: tuple[tuple[str, str], ...] = field(repr=False)  # passwords among them
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class Format:
    """The options of one side: only text, so that it travels to executors."""

    side: str
    name: str
    schema: str = ""
    message: str = ""
    registered: Registered | None = None
    ids_in_headers: bool = False  # a header names the schema of a record, if it has that header

    def codec(self) -> Codec:
        """The codec, or an OptionError that names the option."""
        if self.registered is not None:
            from barnabas.spark.formats.registry import codec_of

            return codec_of(self)
        return formats()[self.name](self)

    def wrong(self, option: str, problem: object) -> OptionError:
        return OptionError(f"the option {self.side}.{option} {problem}")


Make = Callable[[Format], Codec]


def formats() -> dict[str, Make]:
    """Values of `key.format` and `value.format`."""
    from barnabas.spark.formats import avro, plain_formats, protobuf

    return {**plain_formats.FORMATS, "avro": avro.AvroCodec, "protobuf": protobuf.ProtobufCodec}


def format_of(options: Mapping[str, str], side: str) -> Format | None:
    """The format of a side; None when it stays bytes."""
    from barnabas.spark.formats.registry import ids_in_headers, registered_of

    name = options.get(f"{side}.format", BINARY).strip().lower()
    if name == BINARY:
        for other in OPTIONS[1:]:
            if f"{side}.{other}" in options:
                raise OptionError(f"the option {side}.{other} needs the option {side}.format")
        return None
    if name not in (*formats(), REGISTRY):
        allowed = ", ".join([BINARY, *formats(), REGISTRY])
        raise OptionError(f"the option {side}.format is {name!r}, it may be {allowed}")
    registered = registered_of(options, side, name)
    message = options.get(f"{side}.message", "")
    in_headers = registered is not None and ids_in_headers(options, side)
    found = Format(side, name, options.get(f"{side}.schema", ""), message, registered, in_headers)
    found.codec()  # mistakes show before the query starts
    return found


def mode_of(options: Mapping[str, str]) -> str:
    mode = options.get("mode", MODES[0]).strip().lower()
    if mode not in MODES:
        raise OptionError(f"the option mode is {mode!r}, it may be {', '.join(MODES)}")
    return mode


def decode_column(
    codec: Codec, column: pa.Array, arrow_type: pa.DataType
) -> tuple[pa.Array, list[str | None] | None]:
    """The typed column, null where nothing can be decoded, and the errors; None when there are none."""
    values: list[Any] = []
    errors: list[str | None] | None = None
    decode = codec.decode
    for row, data in enumerate(column.to_pylist()):
        value = None
        if data is not None:
            try:
                value = decode(data)
            except CannotDecode:
                raise
            except Exception as error:
                errors = errors or [None] * len(column)
                errors[row] = reason(error)
        values.append(value)
    try:
        return pa.array(values, arrow_type), errors
    except Misfits:
        return one_by_one(values, arrow_type, errors or [None] * len(values))


def one_by_one(
    values: Sequence[Any], arrow_type: pa.DataType, errors: list[str | None]
) -> tuple[pa.Array, list[str | None]]:
    """Some value does not fit the schema: find out which."""
    found = []
    for row, value in enumerate(values):
        try:
            found.append(pa.array([value], arrow_type))
        except Misfits as error:
            errors[row] = reason(error)
            found.append(pa.nulls(1, arrow_type))
    return pa.concat_arrays(found), errors


def reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def encode_column(codec: Codec, column: pa.Array) -> pa.Array:
    rows = column.to_pylist(maps_as_pydicts="strict")
    values = [None if value is None else codec.encode(value) for value in rows]
    return pa.array(values, pa.binary())
