"""Cuts the records of one partition into files, by rules that depend on the records alone.

In: records in the order of their offsets. Out: finished groups of files. One ends at `flush.size` records,
at a span of record timestamps, or at a change of schema that `schema.compatibility` does not bridge, for all
folders together. The same records from the same offset on give the same files with the same names, however
they come: a file that is written again after a crash replaces itself. Records that came before are dropped.
Tombstones have no schema, so they come apart from values.
Does not know: storage, formats.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from barnabas.connect.connectors.objects.compatibility import closes, projected
from barnabas.connect.data import Records, Schema


@dataclass(slots=True)
class OpenFile:
    """Records of one folder. `waiting` are those that no spool has yet."""

    folder: str
    start: int
    end: int = 0
    waiting: list[Records] = field(default_factory=list)
    spool: Any = None  # of the sink: what was written out already


@dataclass(frozen=True, slots=True)
class Rules:
    flush_size: int
    rotate_interval_ms: int = -1
    rotates_on_folder: bool = True
    compatibility: str = "NONE"
    stores_keys: bool = False


class Cutter:
    """`add` takes records and returns how many fit before the group is complete; `is_full` says that it is.
    The caller writes `files`, then calls `done`."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self.files: dict[str, OpenFile] = {}
        self.is_full = False
        self.next_offset = -1  # behind the last record that was taken
        self._count = 0
        self._base_ms = 0
        self._folder = ""
        self._schema: Schema | None = None
        self._has_values = False  # the open group: then `_schema` is theirs
        self._key_schema: Schema | None = None

    @property
    def is_empty(self) -> bool:
        return self._count == 0

    def done(self) -> None:
        self.files, self._count, self.is_full = {}, 0, False

    def add(self, records: Records, folders: Any, times: Any | None) -> int:
        """Take records from the front; how many. Those that were taken before count, but are dropped."""
        offsets = records.offsets.to_numpy()
        first = int(np.searchsorted(offsets, self.next_offset)) if self.next_offset >= 0 else 0
        if first == len(records):
            return first
        if self._count and self._closes(records):
            self.is_full = True
            return first
        if not self._count:
            self._has_values, self._key_schema = False, records.keys.schema
        if not self._has_values and not is_tombstone(records):
            self._schema, self._has_values = records.values.schema, True
        end = min(len(records), first + self._rules.flush_size - self._count)
        if times is not None:
            end = self._end_by_time(folders, times, first, end)
        if end > first:
            self._append(records, folders, offsets, first, end)
        self.is_full = self.is_full or self._count >= self._rules.flush_size
        return end

    def _closes(self, records: Records) -> bool:
        if self._rules.stores_keys and records.keys.schema != self._key_schema:
            return True
        if not self._has_values or is_tombstone(records):
            return False  # tombstones have no schema
        return closes(self._rules.compatibility, self._schema, records.values.schema)

    def _end_by_time(self, folders: Any, times: Any, first: int, end: int) -> int:
        if self._count == 0:
            self._base_ms, self._folder = int(times[first]), str(folders[first])
        over = times[first:end] - self._base_ms >= self._rules.rotate_interval_ms
        if self._rules.rotates_on_folder:
            over |= folders[first:end] != self._folder
        if not over.any():
            return end
        self.is_full = True
        return first + int(np.argmax(over))

    def _append(self, records: Records, folders: Any, offsets: Any, first: int, end: int) -> None:
        unique, codes = np.unique(folders[first:end].astype(str), return_inverse=True)
        for code, folder in enumerate(unique):
            chosen = first + np.flatnonzero(codes == code)
            file = self.files.setdefault(str(folder), OpenFile(str(folder), int(offsets[chosen[0]])))
            part = records if len(chosen) == len(records) else records.take(chosen.tolist())
            fits = is_tombstone(part) or part.values.schema == self._schema
            if self._schema is not None and not fits:
                part = with_values(part, projected(part.values, self._schema))
            file.waiting.append(part)
            file.end = int(offsets[chosen[-1]])
        self._count += end - first
        self.next_offset = int(offsets[end - 1]) + 1


def is_tombstone(records: Records) -> bool:
    """Whether the first record has no value. Callers do not mix tombstones with values."""
    return bool(records.values.is_null()[0].as_py())


def with_values(records: Records, values: Any) -> Records:
    from dataclasses import replace

    return replace(records, values=values)
