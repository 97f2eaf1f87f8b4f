"""Transforms and converters of a task, over columns: records to bytes for sources, back for sinks.

In: Records or raw columns. Out: tables for the encoder of batches, or Records. A step that fails on a batch
is tried on halves of it, until the records at fault stand alone; those go to the error handler, the others
go on. Does not know: connections, offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from barnabas.connect.data import Column, Header, Headers, Records
from barnabas.connect.plugins import Kind, Plugins, RetriableError
from barnabas.connect.tasks.errors import ErrorHandler, RawRecord, Stage

HEADER_TYPE = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
DEFAULT_HEADERS = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
SHOWN_CHARS_MAX = 300

RawOf = Callable[[int], RawRecord]


@dataclass(frozen=True, slots=True)
class Step:
    """One transform, with the predicate that guards it."""

    alias: str
    name: str  # the class as configured
    transform: Any
    predicate: Any = None
    negate: bool = False


@dataclass(frozen=True, slots=True)
class Whole:
    """What a transform made of a whole batch, in the shape of one that tells failures by index."""

    records: Records
    indices: list[int] | None = None
    failures: Mapping[int, Exception] = field(default_factory=dict)


def aliases(text: str | None) -> list[str]:
    return [each.strip() for each in (text or "").split(",") if each.strip()]


def under(config: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {name.removeprefix(prefix): value for name, value in config.items() if name.startswith(prefix)}


def steps_of(config: Mapping[str, str], plugins: Plugins) -> list[Step]:
    """The transforms of a connector, configured, in order."""
    predicates = {}
    for alias in aliases(config.get("predicates")):
        prefix = f"predicates.{alias}."
        predicates[alias] = plugins.load(config[prefix + "type"], Kind.PREDICATE)()
        predicates[alias].configure(under(config, prefix))
    steps = []
    for alias in aliases(config.get("transforms")):
        prefix = f"transforms.{alias}."
        own = under(config, prefix)
        name = own.pop("type")
        predicate = predicates[own.pop("predicate")] if "predicate" in own else None
        negate = own.pop("negate", "false").strip().lower() == "true"
        transform = plugins.load(name, Kind.TRANSFORMATION)()
        transform.configure(own)
        steps.append(Step(alias, name, transform, predicate, negate))
    return steps


def converter_of(side: str, worker: Mapping[str, str], config: Mapping[str, str], plugins: Plugins) -> Any:
    """The converter of keys, values or headers: the connector's, else the worker's. A connector that names
    one brings all of its settings; the worker's settings belong to the worker's converter."""
    name = f"{side}.converter"
    owner = config if name in config else worker
    given = under(owner, f"{name}.")
    if side == "header":
        converter = plugins.load(owner.get(name, DEFAULT_HEADERS), Kind.HEADER_CONVERTER)()
        converter.configure(given)
    else:
        converter = plugins.load(owner[name], Kind.CONVERTER)()
        converter.configure(given, side == "key")
    return converter


class Chain:
    """All that happens to records between a task and its topics."""

    def __init__(
        self, steps: Sequence[Step], key: Any, value: Any, header: Any, errors: ErrorHandler
    ) -> None:
        self.steps = steps
        self.key = key
        self.value = value
        self.header = header
        self.errors = errors

    @classmethod
    def of(
        cls, worker: Mapping[str, str], config: Mapping[str, str], plugins: Plugins, errors: ErrorHandler
    ) -> Chain:
        key, value, header = (
            converter_of(side, worker, config, plugins) for side in ("key", "value", "header")
        )
        return cls(steps_of(config, plugins), key, value, header, errors)

    def close(self) -> None:
        for each in (self.key, self.value, self.header, *(step.transform for step in self.steps)):
            close = getattr(each, "close", None)
            if close is not None:
                close()

    # -- transforms ----------------------------------------------------------------------------------

    def transformed(self, records: Records, raw: Sequence[RawRecord] | None = None) -> list[Records]:
        """The records after all transforms; several Records when schemas differ afterwards. `raw` are the
        records as they were, for dead letters; of sources they are made when needed."""
        found = [(records, raw)]
        for step in self.steps:
            following: list[tuple[Records, Sequence[RawRecord] | None]] = []
            for part, origin in found:
                following += self._step(step, part, origin)
            found = following
        return [part for part, _ in found if len(part)]

    def _step(
        self, step: Step, records: Records, raw: Sequence[RawRecord] | None
    ) -> list[tuple[Records, Sequence[RawRecord] | None]]:
        if step.predicate is None:
            return self._apply(step, records, raw)
        mask = step.predicate.test(records)
        flags = [
            bool(each) != step.negate for each in (mask.to_pylist() if isinstance(mask, pa.Array) else mask)
        ]
        found: list[tuple[Records, Sequence[RawRecord] | None]] = []
        start = 0
        for index in range(1, len(flags) + 1):  # runs of equal answers, so that order stays
            if index < len(flags) and flags[index] == flags[start]:
                continue
            whole = start == 0 and index == len(flags)
            part = records if whole else records.take(list(range(start, index)))
            origin = raw if whole or raw is None else raw[start:index]
            found += self._apply(step, part, origin) if flags[start] else [(part, origin)]
            start = index
        return found

    def _apply(
        self, step: Step, records: Records, raw: Sequence[RawRecord] | None
    ) -> list[tuple[Records, Sequence[RawRecord] | None]]:
        if not len(records):
            return []
        try:
            made = self.errors.retrying(lambda: step.transform.apply(records))
        except Exception as error:
            if len(records) == 1:
                origin = raw[0] if raw else of_values(records)
                self.errors.failed(origin, Stage.TRANSFORMATION, step.name, error)
                return []
            if isinstance(error, RetriableError):
                raise
            middle = len(records) // 2
            halves = (range(middle), range(middle, len(records)))
            return [
                each
                for some in halves
                for each in self._apply(
                    step, records.take(list(some)), None if raw is None else raw[some.start : some.stop]
                )
            ]
        if made is None or isinstance(made, Records):  # a transform that knows nothing of single failures
            made = Whole(made if made is not None else records.take([]))
        for index, failure in sorted(made.failures.items()):
            origin = raw[index] if raw else of_values(records, index)
            self.errors.failed(origin, Stage.TRANSFORMATION, step.name, failure)
        if not len(made.records):
            return []
        if raw is None or made.indices is None:
            kept = raw if made.indices is None and len(made.records) == len(records) else None
        else:
            kept = raw if len(made.indices) == len(raw) else [raw[index] for index in made.indices]
        return [(made.records, kept)]

    # -- sources: to bytes -------------------------------------------------------------------------

    def encoded(self, records: Records) -> list[pa.Table]:
        """Tables as the encoder of batches takes them, one for each topic, in the order of the records."""
        return [self._encoded(topic, part) for topic, part in by_topic(records) if len(part)]

    def _encoded(self, topic: str, records: Records) -> pa.Table:
        headers = records.headers
        bad: set[int] = set()
        columns: dict[str, Any] = {}
        for side, converter, column, stage in (
            ("key", self.key, records.keys, Stage.KEY_CONVERTER),
            ("value", self.value, records.values, Stage.VALUE_CONVERTER),
        ):
            made = self.errors.retrying(
                lambda converter=converter, column=column: converter.to_bytes(topic, column, headers)  # type: ignore[misc]
            )
            for index, error in made.failures.items():
                if index not in bad:
                    bad.add(index)
                    self.errors.failed(of_values(records, index), stage, type(converter).__qualname__, error)
            columns[side] = made.data
        if headers is not None:
            columns["headers"] = self._header_bytes(topic, records, bad)
        columns["timestamp"] = records.timestamps.cast(pa.timestamp("ms"))
        if records.partitions is not None:
            columns["partition"] = records.partitions
        columns["topic"] = pa.DictionaryArray.from_arrays(
            pa.repeat(pa.scalar(0, pa.int32()), len(records)), pa.array([topic])
        )
        table = pa.table(columns)
        return table.take([i for i in range(len(records)) if i not in bad]) if bad else table

    def _header_bytes(self, topic: str, records: Records, bad: set[int]) -> pa.Array:
        rows: list[list[dict[str, Any]]] = []
        for index, headers in enumerate(records.headers or ()):
            row: list[dict[str, Any]] = []
            try:
                for name, value, schema in headers:
                    row.append({"key": name, "value": self.header.to_header(topic, name, value, schema)})
            except Exception as error:
                if index not in bad:
                    bad.add(index)
                    where = type(self.header).__qualname__
                    self.errors.failed(of_values(records, index), Stage.HEADER_CONVERTER, where, error)
            rows.append(row)
        return pa.array(rows, HEADER_TYPE)

    # -- sinks: from bytes ---------------------------------------------------------------------------

    def decoded(self, topic: str, raw: Sequence[RawRecord]) -> list[tuple[Records, list[RawRecord]]]:
        """Records of one topic, cut where schemas change, each with the raw records that it stands for."""
        bad: set[int] = set()
        headers = self._headers(topic, raw, bad)
        sides = []
        for converter, values, stage in (
            (self.key, [each.key for each in raw], Stage.KEY_CONVERTER),
            (self.value, [each.value for each in raw], Stage.VALUE_CONVERTER),
        ):
            data = pa.array(values, pa.binary())
            made = self.errors.retrying(
                lambda converter=converter, data=data: converter.from_bytes(topic, data, headers)  # type: ignore[misc]
            )
            for index, error in sorted(made.failures.items()):
                if index not in bad:
                    bad.add(index)
                    self.errors.failed(raw[index], stage, type(converter).__qualname__, error)
            sides.append(made.parts)
        return [
            self._of_parts(topic, raw, indices, key, value, headers)
            for indices, key, value in aligned(sides[0], sides[1], bad, len(raw))
        ]

    def _headers(self, topic: str, raw: Sequence[RawRecord], bad: set[int]) -> list[Headers] | None:
        if not any(each.headers for each in raw):
            return None
        found: list[Headers] = []
        for index, each in enumerate(raw):
            try:
                made = tuple(
                    Header(name, *self.header.from_header(topic, name, value)) for name, value in each.headers
                )
            except Exception as error:
                bad.add(index)
                self.errors.failed(each, Stage.HEADER_CONVERTER, type(self.header).__qualname__, error)
                made = ()
            found.append(made)
        return found

    @staticmethod
    def _of_parts(
        topic: str,
        raw: Sequence[RawRecord],
        indices: Sequence[int],
        key: Column,
        value: Column,
        headers: list[Headers] | None,
    ) -> tuple[Records, list[RawRecord]]:
        chosen = [raw[index] for index in indices]
        records = Records.of(
            topic,
            value,
            key,
            timestamps=[each.timestamp_ms for each in chosen],
            partitions=[each.partition for each in chosen],
            offsets=[each.offset for each in chosen],
            headers=None if headers is None else [headers[index] for index in indices],
        )
        return records, chosen


def aligned(
    keys: Iterable[Any], values: Iterable[Any], bad: set[int], count: int
) -> list[tuple[list[int], Column, Column]]:
    """Runs of records whose keys have one schema and whose values have one, in the order of records."""
    places: list[list[tuple[Column, int] | None]] = []
    for parts in (keys, values):
        found: list[tuple[Column, int] | None] = [None] * count
        for indices, column in parts:
            if not bad and len(indices) == count:
                found = [(column, index) for index in range(count)]
                break
            for place, index in enumerate(indices):
                found[index] = (column, place)
        places.append(found)
    runs: list[tuple[list[int], Column, Column]] = []
    run: list[int] = []
    pair: tuple[Column, Column] | None = None

    def close() -> None:
        if run and pair is not None:
            taken = [
                whole_or_some(column, [place[1] for i in run if (place := side[i]) is not None])
                for column, side in zip(pair, places, strict=True)
            ]
            runs.append((list(run), taken[0], taken[1]))

    for index in range(count):
        key, value = places[0][index], places[1][index]
        if index in bad or key is None or value is None:
            continue
        if pair is None or key[0] is not pair[0] or value[0] is not pair[1]:
            close()
            run.clear()
            pair = (key[0], value[0])
        run.append(index)
    close()
    return runs


def whole_or_some(column: Column, places: list[int]) -> Column:
    return (
        column if len(places) == len(column) and places == list(range(len(column))) else column.take(places)
    )


def by_topic(records: Records) -> list[tuple[str, Records]]:
    """Records of one topic each; usually there is only one."""
    topics = records.topics
    encoded = topics if pa.types.is_dictionary(topics.type) else topics.dictionary_encode()
    if len(encoded.dictionary) == 1 and not encoded.null_count:
        return [(encoded.dictionary[0].as_py(), records)]
    found: dict[str, list[int]] = {}
    for index, name in enumerate(topics.to_pylist()):
        found.setdefault(name, []).append(index)
    return [(name, replace(records.take(some), positions=[])) for name, some in found.items()]


def of_values(records: Records, index: int = 0) -> RawRecord:
    """A record of a source, as far as an error can name it."""
    one = next(iter(records.take([index]).rows()))
    return RawRecord(one.topic, one.partition, one.offset, shown=repr((one.key, one.value))[:SHOWN_CHARS_MAX])
