"""The sink of object stores and folders: a SinkTask that writes columns as files, each record once.

Each partition has a cutter; a complete group of files is written, then its offsets may be committed. Names
carry the first offset, so files that are written again replace themselves. HDFS names have the last offset
too; where a partition has one folder, the position after a restart comes from them. Why a thread and no Spark
job: decision 0064.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from datetime import datetime, tzinfo
from typing import Any, TypeAlias

import numpy as np
import pyarrow.compute as pc

from barnabas.client.core.topology import TopicPartition
from barnabas.connect.connectors.objects.companions import header_column, key_column
from barnabas.connect.connectors.objects.cutting import Cutter, OpenFile
from barnabas.connect.connectors.objects.formats import check_values
from barnabas.connect.connectors.objects.object_settings import HEADERS, KEYS, VALUES, Layout, layout_of
from barnabas.connect.connectors.objects.spools import Spool, is_large
from barnabas.connect.data import DataError, Records
from barnabas.connect.plugins import ConnectError, RetriableError, SinkContext, SinkOffsets, SinkTask

Placed: TypeAlias = tuple[Records, Any, Any]  # records, the folder of each, the time of each


class ObjectSinkTask(SinkTask):
    def start(self, context: SinkContext) -> None:
        super().start(context)
        self._layout: Layout = layout_of(context.settings)
        self._cutters: dict[TopicPartition, Cutter] = {}
        self._committed: dict[TopicPartition, int] = {}
        self._since: dict[TopicPartition, float] = {}  # wall clock of the first record of the open group

    def open(self, partitions: Iterable[TopicPartition]) -> None:
        for where in partitions:
            self._cutters[where] = Cutter(self._layout.rules)
            delim = self._layout.file_delim
            self._layout.storage.drop_unfinished(
                self._layout.topics_dir, f"{where.topic}{delim}{where.partition}{delim}"
            )
            if self._layout.seeks_by_names and (known := self._next_of_names(where)) is not None:
                self.context.seek({where: known})

    def put(self, records: Records) -> None:
        self._write_due()
        if self._layout.on_null != "write":
            records = self._without_nulls(records)
        topics, partitions = records.topics.to_pylist(), records.partitions.to_pylist()
        groups: dict[tuple[str, int], list[int]] = {}
        for index, where in enumerate(zip(topics, partitions, strict=True)):
            groups.setdefault(where, []).append(index)
        for (topic, partition), indices in groups.items():
            mine = records if len(groups) == 1 else records.take(indices)
            self._feed(TopicPartition(topic, partition), mine)

    def _without_nulls(self, records: Records) -> Records:
        missing = records.values.is_null()
        if not pc.any(missing).as_py():
            return records
        indices = [index for index, is_missing in enumerate(missing.to_pylist()) if is_missing]
        if self._layout.on_null == "fail":
            text = (
                "the record has no value: behavior.on.null.values=ignore leaves out tombstones, write stores"
                " their keys"
            )
            self._refuse(records, indices, text)
        gone = set(indices)
        return records.take([index for index in range(len(records)) if index not in gone])

    def _refuse(self, records: Records, indices: Sequence[int], text: str) -> None:
        """Records that no file takes: `errors.tolerance` decides about them."""
        for index in indices:
            where = f"{records.topics[index].as_py()}-{records.partitions[index].as_py()}"
            failure = ConnectError(f"{where} offset {records.offsets[index].as_py()}: {text}")
            self.context.errant(records, [index], failure)

    def _placed(self, records: Records) -> list[Placed]:
        """Records with their folders and times. Those that have none, or that the format does not take, are
        reported one by one."""
        layout = self._layout
        are_tombstones = bool(records.values.is_null()[0].as_py())
        try:
            for part, form in layout.parts.items():
                if part == VALUES and not are_tombstones:
                    check_values(form, records.values)
                elif part == KEYS and records.keys.schema is None:
                    key_column(records, form.name)
            times = None
            if layout.rules.rotate_interval_ms > 0:
                times = (layout.extract_of_tombstones if are_tombstones else layout.extract)(records)
            if are_tombstones:
                return [(records, np.full(len(records), layout.tombstones, object), times)]
            return [(records, layout.encoder(records), times)]
        except RetriableError:
            raise
        except (ConnectError, DataError) as error:
            if len(records) == 1:
                self._refuse(records, [0], str(error))
                return []
        middle = len(records) // 2
        halves = (range(middle), range(middle, len(records)))
        return [each for half in halves for each in self._placed(records.take(list(half)))]

    def _feed(self, where: TopicPartition, records: Records) -> None:
        cutter = self._cutters.setdefault(where, Cutter(self._layout.rules))
        if cutter.is_full:  # its files could not be written the last time
            self._write(where, cutter)
        for part in runs_of(records):
            for each, folders, times in self._placed(part):
                self._cut(where, cutter, each, folders, times)

    def _cut(self, where: TopicPartition, cutter: Cutter, records: Records, folders: Any, times: Any) -> None:
        done = 0
        while done < len(records):
            rest = records if done == 0 else records.take(list(range(done, len(records))))
            done += cutter.add(rest, folders[done:], None if times is None else times[done:])
            self._spool(cutter)
            self._since.setdefault(where, time.time())
            if cutter.is_full:
                self._write(where, cutter)

    def _write(self, where: TopicPartition, cutter: Cutter) -> None:
        cutter.is_full = True  # an error leaves it due
        for file in cutter.files.values():
            spools = self._spools_of(file)
            stem = self._stem(where, file)
            for part, spool in reversed(spools.items()):  # values last, when their companions are there
                try:
                    spool.send(self._layout.storage, f"{stem}{self._layout.extension_of(part)}")
                except RetriableError:
                    self.context.retry_after_ms(self._layout.backoff_ms)
                    raise
        for file in cutter.files.values():
            self._drop(file)
        cutter.done()
        self._since.pop(where, None)
        self._committed[where] = cutter.next_offset

    def _spool(self, cutter: Cutter) -> None:
        """Write out what became large."""
        for file in cutter.files.values():
            if is_large(file):
                self._spools_of(file, is_large=True)

    def _spools_of(self, file: OpenFile, *, is_large: bool = False) -> dict[str, Spool]:
        """The files of a folder's records by part (values, keys, headers), with all records that waited."""
        if file.spool is None:
            file.spool = {
                part: Spool(form, is_large=is_large)
                for part, form in self._layout.parts.items()
                if part != VALUES or file.folder != self._layout.tombstones
            }
        spools: dict[str, Spool] = file.spool
        for records in file.waiting:
            for part, spool in spools.items():
                form = self._layout.parts[part].name
                if part == VALUES:
                    spool.write(records.values)
                elif part == KEYS:
                    spool.write(key_column(records, form))
                else:
                    spool.write(header_column(records, form))
        file.waiting.clear()
        return spools

    def _drop(self, file: OpenFile) -> None:
        for spool in (file.spool or {}).values():
            spool.close()

    def _stem(self, where: TopicPartition, file: OpenFile) -> str:
        layout, width = self._layout, self._layout.pad
        parts = [where.topic, str(where.partition), f"{file.start:0{width}d}"]
        if layout.ends_in_names:
            parts.append(f"{file.end:0{width}d}")
        return "/".join((layout.topics_dir, where.topic, file.folder, layout.file_delim.join(parts)))

    def _next_of_names(self, where: TopicPartition) -> int | None:
        delim = re.escape(self._layout.file_delim)
        # The file of the values is the last of its group: those of keys and headers alone do not count.
        end = rf"(?!\.(?:{KEYS}|{HEADERS})\.)\..+"
        form = re.compile(rf"{re.escape(where.topic)}{delim}{where.partition}{delim}\d+{delim}(\d+){end}")
        folder = f"{self._layout.topics_dir}/{where.topic}/partition={where.partition}"
        names = self._layout.storage.names(folder)
        ends = [int(found[1]) for name in names if (found := form.fullmatch(name.rsplit("/", 1)[-1]))]
        return max(ends) + 1 if ends else None

    def flush(self, offsets: SinkOffsets) -> SinkOffsets | None:
        self._write_due()
        return dict(self._committed)

    def _write_due(self) -> None:
        """Close the files that the schedule ends. Looked at with records and with commits, so that files of a
        topic without new records are closed, too."""
        if self._layout.schedule_ms <= 0:
            return
        now = time.time()
        for where, cutter in self._cutters.items():
            if not cutter.is_empty and self._is_due(self._since.get(where, now), now):
                self._write(where, cutter)

    def _is_due(self, since: float, now: float) -> bool:
        """A boundary of the schedule, counted from midnight, lies between the first record and now."""
        interval_s = self._layout.schedule_ms / 1000
        midnight = midnight_before(since, self._layout.zone)
        return (since - midnight) // interval_s < (now - midnight) // interval_s

    def stop(self) -> None:
        for cutter in getattr(self, "_cutters", {}).values():
            for file in cutter.files.values():
                self._drop(file)
        if hasattr(self, "_layout"):
            self._layout.storage.close()

    def close(self, partitions: Iterable[TopicPartition]) -> None:
        """Open files are dropped: their records come again, to the next owner."""
        for where in list(partitions):
            for file in self._cutters[where].files.values() if where in self._cutters else ():
                self._drop(file)
            for kept in (self._cutters, self._committed, self._since):
                kept.pop(where, None)


def runs_of(records: Records) -> list[Records]:
    """The records, divided where tombstones follow values or values follow tombstones."""
    nulls = records.values.is_null()
    count = nulls.true_count
    if not count or count == len(records):
        return [records] if len(records) else []
    flags = np.array(nulls.to_pylist(), bool)
    ends = [*(np.flatnonzero(flags[1:] != flags[:-1]) + 1).tolist(), len(records)]
    return [records.take(list(range(first, end))) for first, end in zip([0, *ends[:-1]], ends, strict=True)]


def midnight_before(at: float, zone: tzinfo) -> float:
    local = datetime.fromtimestamp(at, zone)
    return local.replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
