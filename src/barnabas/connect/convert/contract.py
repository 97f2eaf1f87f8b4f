"""The contract of converters: bytes of a topic become columns, columns become bytes.

A converter works on whole columns. Records that it cannot convert are reported by their index and do not
stop the others. Schemas may differ inside of a batch: the answer has one part for each run of equal
schemas, in the order of the records, so that a sink sees them as they were written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa

from barnabas import __version__
from barnabas.connect.config import REQUIRED, ConfigDef, ConfigType, Importance, Settings, one_of
from barnabas.connect.data import Column, Headers, Schema

KEY, VALUE, HEADER = "key", "value", "header"


class Part(NamedTuple):
    """Records of one schema: their indices in the batch, and their values."""

    indices: list[int]
    column: Column


@dataclass
class Converted:
    """Result of converting a column of bytes."""

    parts: list[Part] = field(default_factory=list)
    failures: dict[int, Exception] = field(default_factory=dict)


@dataclass
class Encoded:
    """Result of converting a column of values: bytes, null where a record failed or has no value."""

    data: Any  # pa.Array of binary
    failures: dict[int, Exception] = field(default_factory=dict)


def with_type(definition: ConfigDef | None = None) -> ConfigDef:
    """The setting that all converters have."""
    return (definition or ConfigDef()).define(
        "converter.type",
        ConfigType.STRING,
        REQUIRED,
        validator=one_of(KEY, VALUE, HEADER),
        importance=Importance.LOW,
        doc="What is converted: keys, values or headers. The worker sets it.",
    )


class Converter:
    """Converts keys or values. Subclasses override `configure`, `from_bytes` and `to_bytes`."""

    VERSION: ClassVar[str] = __version__
    CONFIG: ClassVar[ConfigDef] = with_type()
    JAVA_NAMES: ClassVar[tuple[str, ...]] = ()

    settings: Settings
    is_key: bool

    def configure(self, config: Mapping[str, str], is_key: bool) -> None:
        """Take the settings, without the prefix `key.converter.` or `value.converter.`."""
        self.is_key = is_key
        self.settings = self.CONFIG.parse({"converter.type": KEY if is_key else VALUE, **config})

    def from_bytes(self, topic: str, data: pa.Array, headers: list[Headers] | None = None) -> Converted:
        """Convert bytes of records of one topic into columns."""
        raise NotImplementedError

    def to_bytes(self, topic: str, column: Column, headers: list[Headers] | None = None) -> Encoded:
        """Convert a column into bytes for one topic."""
        raise NotImplementedError

    def close(self) -> None:
        """Close what `configure` opened."""


class HeaderConverter:
    """Converts values of headers, one by one."""

    VERSION: ClassVar[str] = __version__
    CONFIG: ClassVar[ConfigDef] = ConfigDef()
    JAVA_NAMES: ClassVar[tuple[str, ...]] = ()

    settings: Settings

    def configure(self, config: Mapping[str, str], is_key: bool = False) -> None:
        self.settings = self.CONFIG.parse({"converter.type": HEADER, **config})

    def from_header(self, topic: str, name: str, data: bytes | None) -> tuple[Any, Schema | None]:
        """The value of a header and its schema."""
        raise NotImplementedError

    def to_header(self, topic: str, name: str, value: Any, schema: Schema | None) -> bytes | None:
        """The bytes of a header."""
        raise NotImplementedError

    def close(self) -> None:
        """Close what `configure` opened."""


class ConverterOfHeaders(HeaderConverter):
    """A converter of values in the place of a header converter, as Connect's own converters are used."""

    def __init__(self, converter: Converter) -> None:
        self.converter = converter

    def configure(self, config: Mapping[str, str], is_key: bool = False) -> None:
        self.converter.configure({**config, "converter.type": HEADER}, False)

    def from_header(self, topic: str, name: str, data: bytes | None) -> tuple[Any, Schema | None]:
        found = self.converter.from_bytes(topic, pa.array([data], pa.binary()))
        for error in found.failures.values():
            raise error
        column = found.parts[0].column
        return column.pylist()[0], column.schema

    def to_header(self, topic: str, name: str, value: Any, schema: Schema | None) -> bytes | None:
        made = self.converter.to_bytes(topic, Column.of([value], schema))
        for error in made.failures.values():
            raise error
        data: bytes | None = made.data[0].as_py()
        return data

    def close(self) -> None:
        self.converter.close()


def whole(column: Column) -> Converted:
    """An answer with one part and no failure."""
    return Converted([Part(list(range(len(column))), column)])


def runs(schemas: list[Schema | None], values: list[Any], failures: dict[int, Exception]) -> Converted:
    """Parts of equal schemas in the order of the records. Values without schema and value join their
    neighbours: a null in a column stands for a tombstone."""
    made = Converted([], failures)
    indices: list[int] = []
    current: Schema | None = None
    has_value = False

    def close() -> None:
        if not indices:
            return
        try:
            column = Column.of([values[index] for index in indices], current)
            made.parts.append(Part(list(indices), column))
        except Exception:
            one_by_one(indices, current)

    def one_by_one(chosen: list[int], schema: Schema | None) -> None:
        kept = []
        for index in chosen:
            try:
                Column.of([values[index]], schema)
                kept.append(index)
            except Exception as error:
                failures[index] = error
        if kept:
            made.parts.append(Part(kept, Column.of([values[index] for index in kept], schema)))

    for index, schema in enumerate(schemas):
        if index in failures:
            continue
        if values[index] is None and schema is None:
            indices.append(index)
            continue
        if has_value and schema != current:
            close()
            indices = []
        indices.append(index)
        current, has_value = schema, True
    close()
    return made
