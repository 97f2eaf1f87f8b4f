"""Transforms and converters of a task, over columns: records to bytes for sources, back for sinks.

In: Records or raw columns. Out: tables for the encoder of batches, or Records. Records that a transform or a
converter refuses go to the error handler, the others go on. Does not know: connections, offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from barnabas.connect.data import Column, Header, Headers, Records
from barnabas.connect.plugins import ConnectError, Kind, Plugins, RetriableError
from barnabas.connect.tasks.errors import ErrorHandler, RawRecord, Stage, class_name
from barnabas.connect.tasks.raw_records import RawRecords
from barnabas.connect.transforms.chain import TransformChain, under

HEADER_TYPE = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
DEFAULT_HEADERS = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
SHOWN_CHARS_MAX = 300

RawOf = Callable[[int], RawRecord]


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
        self, transforms: TransformChain, key: Any, value: Any, header: Any, errors: ErrorHandler
    ) -> None:
        self.transforms = transforms
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
        transforms = TransformChain.of(config, plugins, errors.retrying)
        return cls(transforms, key, value, header, errors)

    def close(self) -> None:
        for each in (self.key, self.value, self.header, self.transforms):
            close = getattr(each, "close", None)
            if close is not None:
                close()

    def _converted(self, operation: Callable[[], Any]) -> Any:
        """Convert; what may pass is tried again as long as errors.retry.timeout allows, then it is final."""
        try:
            return self.errors.retrying(operation)
        except RetriableError as error:
            limit_ms = self.errors.settings.retry_timeout_ms
            raise ConnectError(
                f"a converter fails; errors.retry.timeout is {limit_ms} ms: {error}"
            ) from error

    # -- transforms ----------------------------------------------------------------------------------

    def transformed(self, records: Records, raw: Sequence[RawRecord] | None = None) -> list[Records]:
        """The records after all transforms; several Records when schemas differ afterwards. `raw` are the
        records as they were, for dead letters; of sources they are made when needed."""
        if not self.transforms.steps:
            return [records] if len(records) else []
        made = self.transforms.apply(records)
        for index, failure in sorted(made.failures.items()):
            origin = raw[index] if raw else of_values(records, index)
            self.errors.failed(origin, Stage.TRANSFORMATION, failure.step.name, failure.error)
        return [part.records for part in made.parts]

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
            made = self._converted(
                lambda converter=converter, column=column: converter.to_bytes(topic, column, headers)  # type: ignore[misc]
            )
            for index, error in made.failures.items():
                if index not in bad:
                    bad.add(index)
                    self.errors.failed(of_values(records, index), stage, class_name(converter), error)
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
                    where = class_name(self.header)
                    self.errors.failed(of_values(records, index), Stage.HEADER_CONVERTER, where, error)
            rows.append(row)
        return pa.array(rows, HEADER_TYPE)

    # -- sinks: from bytes ---------------------------------------------------------------------------

    def decoded(self, topic: str, raw: RawRecords) -> list[tuple[Records, RawRecords]]:
        """Records of one topic, cut where schemas change, each with the raw records that it stands for."""
        bad: set[int] = set()
        headers = self._headers(topic, raw, bad)
        sides = []
        for converter, data, stage in (
            (self.key, raw.keys, Stage.KEY_CONVERTER),
            (self.value, raw.values, Stage.VALUE_CONVERTER),
        ):
            made = self._converted(
                lambda converter=converter, data=data: converter.from_bytes(topic, data, headers)  # type: ignore[misc]
            )
            for index, error in sorted(made.failures.items()):
                if index not in bad:
                    bad.add(index)
                    self.errors.failed(raw[index], stage, class_name(converter), error)
            sides.append(made.parts)
        return [
            self._of_parts(topic, raw, indices, key, value, headers)
            for indices, key, value in aligned(sides[0], sides[1], bad, len(raw))
        ]

    def _headers(self, topic: str, raw: RawRecords, bad: set[int]) -> list[Headers] | None:
        if raw.headers is None:
            return None
        found: list[Headers] = []
        for index, own in enumerate(raw.headers):
            try:
                made = tuple(
                    Header(name, *self.header.from_header(topic, name, value)) for name, value in own
                )
            except Exception as error:
                bad.add(index)
                self.errors.failed(raw[index], Stage.HEADER_CONVERTER, class_name(self.header), error)
                made = ()
            found.append(made)
        return found

    @staticmethod
    def _of_parts(
        topic: str,
        raw: RawRecords,
        indices: Sequence[int],
        key: Column,
        value: Column,
        headers: list[Headers] | None,
    ) -> tuple[Records, RawRecords]:
        chosen = raw.take(indices)
        records = Records.of(
            topic,
            value,
            key,
            timestamps=chosen.timestamps,
            partitions=chosen.partitions,
            offsets=chosen.offsets,
            headers=None if headers is None else [headers[index] for index in indices],
        )
        return records, chosen


def aligned(
    keys: Iterable[Any], values: Iterable[Any], bad: set[int], count: int
) -> list[tuple[list[int], Column, Column]]:
    """Runs of records whose keys have one schema and whose values have one, in the order of records."""
    keys, values = list(keys), list(values)
    if not bad and len(keys) == len(values) == 1 and len(keys[0][0]) == len(values[0][0]) == count:
        return [(keys[0][0], keys[0][1], values[0][1])]
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
