"""Records that a sink cannot take: found on executors over columns, and given to `errors.*` (KIP-610).

In: the check of a sink, decoded records with their raw ones. Out: the records that fit; the others go to the
error handler of the piece, as those that a converter refuses. Records without a schema are looked at in
groups of one type each, so that one that does not fit does not change the type of the others. Does not know:
tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from barnabas.connect.data import DataError, Records
from barnabas.connect.jobs.shaping import MixedTypes, ShapedRecords, of_one_type
from barnabas.connect.plugins import ConnectError
from barnabas.connect.plugins.spark import RecordCheck
from barnabas.connect.tasks.errors import ErrorHandler, RawRecord, Stage
from barnabas.connect.tasks.raw_records import RawRecords


@dataclass(frozen=True)
class Refusals:
    """The check of a sink at work in a piece. `sink` names it in dead letters."""

    check: RecordCheck
    sink: str
    errors: ErrorHandler

    def kept(self, topic: str, records: Records, origin: RawRecords) -> list[ShapedRecords]:
        """The records that the sink takes, in order."""
        kept, refused = judged(self.check, topic, records)
        for index, text in sorted(refused.items()):
            where = records.partitions[index].as_py(), records.offsets[index].as_py()
            raw = origin.at(*where) or RawRecord(topic, *where)
            self.errors.failed(raw, Stage.TASK_PUT, self.sink, ConnectError(text))
        return kept


def judged(check: RecordCheck, topic: str, records: Records) -> tuple[list[ShapedRecords], dict[int, str]]:
    """The records that a check takes, and the indices of the others, each with the reason."""
    try:
        whole = shape(records)
        if not refused_of(check, topic, whole):
            return [whole], {}
    except MixedTypes:
        pass
    refused: dict[int, str] = {}
    for indices in alike(records):
        try:
            found = refused_of(check, topic, shape(records.take(indices)))
        except MixedTypes as error:
            found = dict.fromkeys(range(len(indices)), f"a value has no one type: {error}")
        refused.update((indices[place], text) for place, text in found.items())
    kept = records.take([index for index in range(len(records)) if index not in refused])
    return list(runs(kept)), refused


def shape(records: Records) -> ShapedRecords:
    return ShapedRecords(records, of_one_type(records.keys), of_one_type(records.values))


def refused_of(check: RecordCheck, topic: str, some: ShapedRecords) -> dict[int, str]:
    """The rows that the check refuses, and those that do not fit into Spark's types."""
    try:
        table = some.framed(topic)
    except (pa.ArrowException, DataError, OverflowError) as error:
        count = len(some.records)
        if count == 1:
            return {0: f"Spark cannot hold it: {error}"}
        found: dict[int, str] = {}
        for start, end in ((0, count // 2), (count // 2, count)):
            half = shape(some.records.take(list(range(start, end))))
            found.update((start + place, text) for place, text in refused_of(check, topic, half).items())
        return found
    return dict(check(table))


def alike(records: Records) -> list[list[int]]:
    """Indices of records whose keys and values have one type, for those without a schema."""
    sides = [each.data for each in (records.keys, records.values) if each.schema is None]
    if not sides:
        return [list(range(len(records)))]
    found: dict[Any, list[int]] = {}
    for index, values in enumerate(zip(*sides, strict=True)):
        found.setdefault(tuple(map(signature, values)), []).append(index)
    return list(found.values())


def signature(value: Any) -> Any:
    """A value that stands for the type of another."""
    if isinstance(value, dict):
        named = ((name, signature(each)) for name, each in value.items() if each is not None)
        return dict, frozenset(named)
    if isinstance(value, (list, tuple)):
        return list, frozenset(map(signature, value))
    return type(value)


def runs(records: Records) -> Iterator[ShapedRecords]:
    """Records behind each other whose values have one type."""
    if not len(records):
        return
    try:
        yield shape(records)
    except MixedTypes:
        middle = len(records) // 2
        for half in (range(middle), range(middle, len(records))):
            yield from runs(records.take(list(half)))
