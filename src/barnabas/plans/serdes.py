"""The part of a format that the edges of a plan need: bytes from values, values from bytes.

In: a topic and whether keys or values are meant (formats of a registry derive the subject from them). Out:
two functions. None never reaches them: a null stays null everywhere.
Does not know: which formats exist (`streams/serdes` has them).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

ToBytes = Callable[[Any], bytes]
FromBytes = Callable[[bytes], Any]


class RegistryAway(Exception):
    """The registry did not answer: the record is neither good nor bad, so it must be tried again."""


@runtime_checkable
class Serde(Protocol):
    """A format of keys or values. `format` names it for compilers: `string`, `int64`, `json`, `avro`, …

    A serde of a format without a fixed type (`json`) may have an attribute `spark_type`: the type of its
    values in Spark's DDL (`struct<user: string, amount: double>`). Then its values can be columns."""

    @property
    def format(self) -> str: ...

    def serializer(self, topic: str, is_key: bool) -> ToBytes: ...

    def deserializer(self, topic: str, is_key: bool) -> FromBytes: ...


@dataclass(frozen=True, slots=True)
class PlainSerde:
    """A format that needs no topic: two functions and a name."""

    format: str
    to_bytes: ToBytes
    from_bytes: FromBytes
    spark_type: str | None = None

    def serializer(self, topic: str, is_key: bool) -> ToBytes:
        return self.to_bytes

    def deserializer(self, topic: str, is_key: bool) -> FromBytes:
        return self.from_bytes

    def __repr__(self) -> str:
        return f"<serde {self.format}>"
