"""The contract of transforms and predicates: records in, records out, failures by index.

A transform sees records of one schema at a time and works on whole columns. If it raises an error, the chain
cuts the batch in halves until the records that fail are alone, so that one bad record costs few extra calls
and no other record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeVar

import pyarrow as pa

from barnabas import __version__
from barnabas.connect.config import ConfigDef, Settings
from barnabas.connect.data import Column, DataError, Records

PREFIX = "org.apache.kafka.connect.transforms."


class SchemaError(DataError):
    """The schema itself does not fit: all records of it fail alike."""


@dataclass
class Transformed:
    """Records that remain, the indices that they had, and the errors of those that failed."""

    records: Records
    indices: Sequence[int]
    failures: Mapping[int, Exception] = field(default_factory=dict)


class Transform:
    """Changes records. Subclasses override `change`, which takes all records or raises an error."""

    VERSION: ClassVar[str] = __version__
    CONFIG: ClassVar[ConfigDef] = ConfigDef()
    JAVA_NAMES: ClassVar[tuple[str, ...]] = ()

    settings: Settings

    def configure(self, config: Mapping[str, str]) -> None:
        """Take the settings, without the prefix `transforms.<alias>.`."""
        self.settings = self.CONFIG.parse(config)

    def change(self, records: Records) -> Records:
        """The records after the transform, as many as before."""
        raise NotImplementedError

    def apply(self, records: Records) -> Transformed | Records:
        """The records after the transform, or an error; the chain finds the records at fault. One that drops
        records, or knows itself which fail, returns `Transformed`."""
        return self.change(records)

    def close(self) -> None:
        """Close what `configure` opened."""


class Predicate:
    """Says which records a transform applies to."""

    VERSION: ClassVar[str] = __version__
    CONFIG: ClassVar[ConfigDef] = ConfigDef()
    JAVA_NAMES: ClassVar[tuple[str, ...]] = ()

    settings: Settings

    def configure(self, config: Mapping[str, str]) -> None:
        self.settings = self.CONFIG.parse(config)

    def test(self, records: Records) -> Any:
        """An Arrow array of booleans, one for each record."""
        raise NotImplementedError

    def close(self) -> None:
        """Close what `configure` opened."""


class FieldTransform(Transform):
    """A transform of keys or of values. Values without schema go one by one through `plain`."""

    on: ClassVar[str] = "values"
    Key: ClassVar[type[Transform]]
    Value: ClassVar[type[Transform]]

    def change(self, records: Records) -> Records:
        column: Column = getattr(records, self.on)
        if column.schema is None:
            made = Column(None, [self.plain(value, row, records) for row, value in enumerate(column.data)])
        else:
            made = self.column(column, records)
        return with_column(records, self.on, made)

    def column(self, column: Column, records: Records) -> Column:
        """The column with a schema after the transform."""
        raise NotImplementedError

    def plain(self, value: Any, row: int, records: Records) -> Any:
        """One value without schema after the transform; `row` is its place in the records."""
        raise NotImplementedError


def with_column(records: Records, on: str, column: Column) -> Records:
    """Records with another column of keys or values."""
    return replace(records, keys=column) if on == "keys" else replace(records, values=column)


T = TypeVar("T", bound=type[FieldTransform])


def both(made: T) -> T:
    """Give a transform the forms of Java's inner classes: `Cast$Key` and `Cast$Value`."""
    for name, on in (("Key", "keys"), ("Value", "values")):
        java = (f"{PREFIX}{made.__name__}${name}",)
        attributes = {"on": on, "JAVA_NAMES": java, "__module__": made.__module__, "__doc__": made.__doc__}
        setattr(made, name, type(f"{made.__name__}{name}", (made,), attributes))
    return made


def joined(pieces: list[Records]) -> Records:
    """Records of equal schemas, one after the other."""
    if len(pieces) == 1:
        return pieces[0]
    first = pieces[0]

    def column(pick: Callable[[Records], Column]) -> Column:
        data = [pick(one).data for one in pieces]
        schema = pick(first).schema
        return Column(
            schema, [one for some in data for one in some] if schema is None else pa.concat_arrays(data)
        )

    def array(name: str) -> Any:
        parts = [getattr(one, name) for one in pieces]
        if parts[0] is None:
            return None
        parts = [one.dictionary_decode() if isinstance(one, pa.DictionaryArray) else one for one in parts]
        return pa.concat_arrays(parts)

    headers: list[Any] | None = None
    if any(one.headers is not None for one in pieces):
        headers = [each for one in pieces for each in (one.headers or [()] * len(one))]
    return replace(
        first,
        topics=array("topics"),
        keys=column(lambda one: one.keys),
        values=column(lambda one: one.values),
        timestamps=array("timestamps"),
        partitions=array("partitions"),
        headers=headers,
        offsets=array("offsets"),
    )
