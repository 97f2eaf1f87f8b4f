"""Serdes of plans over codecs of rows: keys are tuples of the key columns' values, values are dicts.

They travel to executors; a codec is made there for each topic. Does not know: which plan uses them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from barnabas.plans.serdes import FromBytes, ToBytes
from barnabas.sql.formats.codecs import NO_REGISTRY, row_codec
from barnabas.sql.formats.contract import BadBytes, BadKeyBytes
from barnabas.sql.formats.registries import RegistryPlace
from barnabas.sql.metastore.schemas import Column, Format


@dataclass(frozen=True)
class ColumnsSerde:
    """A `Serde` of the key's or the value's columns. A bare null is written as None: a tombstone."""

    row_format: Format
    columns: tuple[Column, ...]
    is_key: bool
    registry: RegistryPlace = NO_REGISTRY

    @property
    def format(self) -> str:
        return f"sql {self.row_format.name}"

    def serializer(self, topic: str, is_key: bool) -> ToBytes:
        write: Any = self._codec(topic).to_bytes
        if not self.is_key:
            return write  # type: ignore[no-any-return]
        names = [each.name for each in self.columns]

        def write_key(key: tuple[Any, ...]) -> Any:
            return write(dict(zip(names, key, strict=True)))

        return write_key

    def deserializer(self, topic: str, is_key: bool) -> FromBytes:
        read: FromBytes = self._codec(topic).from_bytes
        if not self.is_key:
            return read
        names = [each.name for each in self.columns]

        def read_key(data: bytes) -> tuple[Any, ...] | None:
            try:
                row = read(data)
            except BadBytes as error:
                raise BadKeyBytes(str(error)) from error.__cause__
            return tuple(row[name] for name in names) if row else None

        return read_key

    def _codec(self, topic: str) -> Any:
        return row_codec(
            self.row_format, self.columns, is_key=self.is_key, topic=topic, registry=self.registry
        )
