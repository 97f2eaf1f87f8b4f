"""The contract of a format: which columns it takes, and the errors of bytes that do not fit.

A *row* is a dict from names of columns to values, in the order of the columns. A codec reads and writes the
key's columns or the value's columns of a source. Does not know: topics' partitions, tasks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

from barnabas.sql.errors import SqlError, did_you_mean
from barnabas.sql.metastore.schemas import Column, Format
from barnabas.sql.types.sql_types import Array, Decimal, Map, SqlType, Struct

KAFKA, JSON, JSON_SR, AVRO = "KAFKA", "JSON", "JSON_SR", "AVRO"
PROTOBUF, PROTOBUF_NOSR, DELIMITED, NONE = "PROTOBUF", "PROTOBUF_NOSR", "DELIMITED", "NONE"
Row = dict[str, Any]


class BadBytes(ValueError):
    """Bytes that are no row of the format."""


class BadKeyBytes(BadBytes):
    """The same of a record's key."""


class BadRow(ValueError):
    """A row that the format cannot write."""


class RowCodec(Protocol):
    """Reads and writes the key or the value of one topic. None stands for a missing key or a tombstone."""

    def to_bytes(self, row: Mapping[str, Any]) -> bytes | None: ...

    def from_bytes(self, data: bytes) -> Row | None:
        """BadBytes where they do not fit. None for a bare value that is null."""


@dataclass(frozen=True, slots=True)
class FormatFacts:
    """`can_wrap` and `can_unwrap` are about a single column; `kind` is the registry's word for schemas."""

    name: str
    for_keys: bool = True
    for_values: bool = True
    columns_max: int | None = None
    nests: bool = True
    can_wrap: bool = True
    can_unwrap: bool = True
    kind: str | None = None

    @property
    def has_registry(self) -> bool:
        return self.kind is not None


FORMATS: Mapping[str, FormatFacts] = MappingProxyType(
    {
        facts.name: facts
        for facts in (
            FormatFacts(KAFKA, columns_max=1, nests=False, can_wrap=False),
            FormatFacts(JSON),
            FormatFacts(JSON_SR, kind="JSON"),
            FormatFacts(AVRO, kind="AVRO"),
            FormatFacts(PROTOBUF, can_unwrap=False, kind="PROTOBUF"),
            FormatFacts(PROTOBUF_NOSR, can_unwrap=False),
            FormatFacts(DELIMITED, nests=False, can_wrap=False),
            FormatFacts(NONE, for_values=False, columns_max=0, can_wrap=False),
        )
    }
)
KAFKA_TYPES = ("INTEGER", "BIGINT", "DOUBLE", "STRING", "BYTES")


def facts_of(name: str) -> FormatFacts:
    found = FORMATS.get(name.upper())
    if found is None:
        raise SqlError(f"Unknown format: {name}.{did_you_mean(name, FORMATS)}")
    return found


def check_columns(form: Format, columns: Sequence[Column], *, is_key: bool) -> None:
    """SqlError where a format cannot hold the columns of a key or a value."""
    facts = facts_of(form.name)
    part = "key" if is_key else "value"
    if not (facts.for_keys if is_key else facts.for_values):
        raise SqlError(f"The '{facts.name}' format can only be used for {'values' if is_key else 'keys'}.")
    if facts.columns_max is not None and len(columns) > facts.columns_max:
        if facts.columns_max == 0:
            raise SqlError(
                f"The 'NONE' format can only be used when no columns are defined. Got: {columns[0]}"
            )
        names = ", ".join(str(each) for each in columns)
        raise SqlError(
            f"The '{facts.name}' format only supports a single field. Got: [{names}].\n"
            f"For several {part} columns use JSON, AVRO, PROTOBUF or DELIMITED."
        )
    for column in columns:
        if facts.name == KAFKA and column.kind.base not in KAFKA_TYPES:
            raise SqlError(
                f"The 'KAFKA' format does not support type '{column.kind.base}', column: {column.name}"
            )
        if not facts.nests and isinstance(column.kind, Array | Map | Struct):
            raise SqlError(
                f"The '{facts.name}' format does not support type '{column.kind.base}', column: {column.name}"
            )
        if is_key and has_map(column.kind):
            raise SqlError(f"Map keys, including types that contain maps, are not supported: {column.name}")


def has_map(kind: SqlType) -> bool:
    if isinstance(kind, Map):
        return True
    if isinstance(kind, Array):
        return has_map(kind.item)
    return isinstance(kind, Struct) and any(has_map(inner) for _, inner in kind.fields)


def has_decimal(kind: SqlType) -> bool:
    if isinstance(kind, Array):
        return has_decimal(kind.item)
    if isinstance(kind, Map):
        return has_decimal(kind.value)
    if isinstance(kind, Struct):
        return any(has_decimal(inner) for _, inner in kind.fields)
    return isinstance(kind, Decimal)


def is_bare(form: Format, columns: Sequence[Column], *, is_key: bool) -> bool:
    """Whether the one column is written without a record around it."""
    facts = facts_of(form.name)
    if len(columns) != 1 or not facts.can_unwrap:
        return False
    return is_key or not facts.can_wrap or not form.is_wrapped


def by_any_case(names: Sequence[str], wanted: str) -> str | None:
    """The name as it stands there: the same one, else the first that differs in case only."""
    if wanted in names:
        return wanted
    upper = wanted.upper()
    return next((name for name in names if name.upper() == upper), None)
