"""The part of a format that the edges of a plan need: bytes from values, values from bytes.

In: a topic and whether keys or values are meant (formats of a registry derive the subject from them). Out:
two functions. None never reaches them: a null stays null everywhere.
Does not know: which formats exist (`streams/serdes` has them).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, runtime_checkable

from barnabas.plans.type_variables import T

ToBytes = Callable[[Any], bytes]
FromBytes = Callable[[bytes], Any]


class RegistryAway(Exception):
    """The registry did not answer: the record is neither good nor bad, so it must be tried again."""


@runtime_checkable
class Serde(Protocol[T]):
    """A format of keys or values, which have the type `T`. `format` names it for compilers: `string`,
    `int64`, `json`, `avro`, …

    A serde of a format without a fixed type (`json`) may have an attribute `spark_type`: the type of its
    values in Spark's DDL (`struct<user: string, amount: double>`). Then its values can be columns."""

    @property
    def format(self) -> str: ...

    def serializer(self, topic: str, is_key: bool) -> Callable[[T], bytes]: ...

    def deserializer(self, topic: str, is_key: bool) -> Callable[[bytes], T]: ...


@dataclass(frozen=True, slots=True)
class PlainSerde(Generic[T]):
    """A format that needs no topic: two functions and a name."""

    format: str
    to_bytes: Callable[[T], bytes]
    from_bytes: Callable[[bytes], T]
    spark_type: str | None = None

    def serializer(self, topic: str, is_key: bool) -> Callable[[T], bytes]:
        return self.to_bytes

    def deserializer(self, topic: str, is_key: bool) -> Callable[[bytes], T]:
        return self.from_bytes

    def __repr__(self) -> str:
        return f"<serde {self.format}>"
