"""The state of cleaning: how far every log is clean, which logs cannot be cleaned, the last results.

In: results of passes. Out: `cleaner-offset-checkpoint` in each log dir, in Kafka's format; numbers for the
metrics. An entry moves to another dir with its log. Does not know: how logs are chosen and cleaned.
"""

from __future__ import annotations

import logging
from collections.abc import Container, Iterable
from typing import TYPE_CHECKING

from barnabas.storage.files.names import CLEANER_CHECKPOINT, TopicPartition
from barnabas.storage.logs.reading import floor

if TYPE_CHECKING:
    from barnabas.storage.compaction.cleanable import Cleanable
    from barnabas.storage.compaction.job import CleaningStats
    from barnabas.storage.dirs.log_dirs import LogDirs

log = logging.getLogger("barnabas.cleaner")


class CleaningState:
    def __init__(self, log_dirs: LogDirs) -> None:
        self._log_dirs = log_dirs
        self._clean_to: dict[TopicPartition, int] | None = None  # loaded at first use
        self._uncleanable: dict[TopicPartition, None] = {}
        self.last_look_ms = 0
        self.max_dirty_ratio = 0.0
        self.max_delay_ms = 0
        self.last_stats: CleaningStats | None = None
        self.bytes_moved = 0  # read and written by all passes

    # -- checkpoints -------------------------------------------------------------------------------

    def checkpoint(self, partition: TopicPartition) -> int | None:
        return self._loaded().get(partition)

    def clean_to(self, partition: TopicPartition, offset: int) -> None:
        self._loaded()[partition] = offset

    def truncated(self, partition: TopicPartition, offset: int) -> None:
        """Note a truncation: records from `offset` on will be dirty."""
        known = self._loaded().get(partition)
        if known is not None and known > offset:
            self._loaded()[partition] = offset

    def forget(self, topics: Container[str]) -> bool:
        """Forget deleted topics. Out: whether a checkpoint changed, so that `store` must run. The cost
        depends on the number of known checkpoints, not of deleted partitions."""
        for partition in [each for each in self._uncleanable if each.topic in topics]:
            del self._uncleanable[partition]
        known = self._loaded()
        deleted = [each for each in known if each.topic in topics]
        for partition in deleted:
            del known[partition]
        return bool(deleted)

    def store(self) -> None:
        """Write the checkpoints of all dirs. Slow: call it in a thread."""
        known = dict(self._loaded())  # copied in one step, since the loop may change it
        for directory in self._log_dirs.online():
            offsets = {
                partition: known[partition] for partition in list(directory.logs) if partition in known
            }
            try:
                directory.store_offsets(CLEANER_CHECKPOINT, offsets)
            except OSError as error:
                log.error("could not write %s/%s: %s", directory.path, CLEANER_CHECKPOINT, error)

    def _loaded(self) -> dict[TopicPartition, int]:
        if self._clean_to is None:
            found: dict[TopicPartition, int] = {}
            for directory in self._log_dirs.online():
                for partition, offset in directory.load_offsets(CLEANER_CHECKPOINT).items():
                    if partition in directory.logs or partition not in found:
                        found[partition] = offset
            self._clean_to = found
        return self._clean_to

    # -- results -----------------------------------------------------------------------------------

    def begin_look(self, now_ms: int) -> None:
        self.last_look_ms = now_ms
        deleted = [partition for partition in self._uncleanable if partition not in self._log_dirs.logs]
        for partition in deleted:
            del self._uncleanable[partition]

    def end_look(self, found: Iterable[Cleanable]) -> None:
        found = list(found)
        self.max_dirty_ratio = max((each.dirty_ratio for each in found), default=0.0)
        self.max_delay_ms = max((each.delay_ms for each in found), default=0)

    def is_uncleanable(self, partition: TopicPartition) -> bool:
        return partition in self._uncleanable

    def mark_uncleanable(self, partition: TopicPartition, reason: str) -> None:
        log.error("%s cannot be cleaned, the cleaner skips it from now on: %s", partition, reason)
        self._uncleanable[partition] = None

    def uncleanable(self) -> list[TopicPartition]:
        return list(self._uncleanable)

    def dirty_bytes(self, partition: TopicPartition) -> int:
        """Dirty bytes of a log, without reading it: whole segments, except the active one."""
        found = self._log_dirs.logs.get(partition)
        if found is None:
            return 0
        segments = found.segments
        first = max(floor(segments, self.checkpoint(partition) or found.log_start_offset), 0)
        return sum(segment.size for segment in segments[first:-1])
