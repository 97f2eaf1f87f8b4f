"""A log cleaner: finds the dirtiest compacted log and cleans it with its worker, one log at a time.

In: the partitions, their settings and last stable offsets, and how far they are clean. Out: logs whose closed
segments hold the last record of each key, and an updated `CleaningState`. Settings are read for each pass. A
log that cannot be cleaned is marked and skipped until it is deleted. Does not know: how a log is cleaned (see
`storage.compaction`), when to look, other cleaners.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from barnabas.broker.upkeep.cleaner_worker import Abandoned, ProcessWorker, ThreadWorker, Uncleanable, Worker
from barnabas.protocol import KafkaError
from barnabas.runtime.disk import REAL_DISK
from barnabas.runtime.shortage import Shortage
from barnabas.storage.compaction.cleanable import Cleanable, CleanerLimits, assess, job_for
from barnabas.storage.compaction.job import CleanedGroup, CleaningStats
from barnabas.storage.files.names import CLEANED, TopicPartition
from barnabas.storage.logs import replacement
from barnabas.storage.segments.segment import CorruptLog, Segment

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.partitions.partition import Partition
    from barnabas.broker.upkeep.cleaning_state import CleaningState
    from barnabas.storage.logs.log import Log

log = logging.getLogger("barnabas.cleaner")


class LogCleaner:
    """`current` is the partition that is being cleaned."""

    def __init__(self, broker: Broker, state: CleaningState) -> None:
        self._broker = broker
        self._state = state
        disk = broker.log_dirs.context.disk
        threads = broker.threads.background
        self._worker: Worker = (
            ProcessWorker(broker.pieces) if disk.base is REAL_DISK else ThreadWorker(threads, disk)
        )
        self._stopping = False
        self.current: TopicPartition | None = None

    async def clean_dirtiest(self) -> bool:
        """Clean the dirtiest log that is due. Out: whether a log was cleaned."""
        now_ms = self._broker.clock.now_ms()
        chosen = await self._choose(now_ms)
        if chosen is None:
            await self._worker.idle(now_ms)
            return False
        found, cleanable = chosen
        if self._stopping or not found.claim_for_cleaning():
            return False  # the cleaner stops, or another one claimed the log
        self.current = found.topic_partition
        try:
            return await self._clean(found, cleanable, now_ms)
        finally:
            self.current = None
            found.release()

    async def abandon(self) -> None:
        """End the current pass."""
        await self._worker.stop()

    async def stop(self) -> None:
        """End the current pass, and begin no other."""
        self._stopping = True
        await self._worker.stop()

    # -- choosing ----------------------------------------------------------------------------------

    async def _choose(self, now_ms: int) -> tuple[Log, Cleanable] | None:
        looks: list[tuple[Log, int | None, int]] = []

        def look(partition: Partition) -> None:
            found = partition.log
            if (
                found.settings.compact
                and len(found.segments) > 1
                and not found.is_claimed
                and found.truncation is None
                and found.topic_partition not in self._broker.log_dirs.future_logs  # being moved
                and not self._state.is_uncleanable(found.topic_partition)
            ):
                checkpoint = self._state.checkpoint(found.topic_partition)
                looks.append((found, checkpoint, partition.last_stable_offset))

        await self._broker.pieces.run(self._broker.partitions.in_steps(look))
        found, uncleanable = await self._broker.threads.run(assess_all, looks, now_ms) if looks else ([], [])
        for where, reason in uncleanable:
            self._state.mark_uncleanable(where, reason)
        for each, cleanable in found:
            if cleanable.is_reset:
                self._state.clean_to(each.topic_partition, cleanable.first_dirty_offset)
        self._state.end_look([cleanable for _, cleanable in found])
        due = [
            (each, cleanable)
            for each, cleanable in found
            if cleanable.is_due(each.settings.min_cleanable_dirty_ratio) and self._is_here(each)
        ]
        return max(due, key=lambda item: item[1].dirty_ratio, default=None)

    def _is_here(self, found: Log) -> bool:
        return self._broker.log_dirs.logs.get(found.topic_partition) is found

    # -- cleaning ----------------------------------------------------------------------------------

    async def _clean(self, found: Log, cleanable: Cleanable, now_ms: int) -> bool:
        where = found.topic_partition
        log.info(
            "cleaning %s: offsets %d to %d are dirty (%.0f %%)",
            where,
            cleanable.first_dirty_offset,
            cleanable.first_uncleanable_offset,
            100 * cleanable.dirty_ratio,
        )

        truncations = found.truncations

        async def place(group: CleanedGroup) -> bool:
            # After a truncation, segments of the same names may hold other records.
            return found.truncations == truncations and await self._place(found, group, now_ms)

        try:
            expiration_ms = self._broker.settings["producer.id.expiration.ms"]
            steps = job_for(found, cleanable, self._limits(), now_ms, expiration_ms)
            job = await self._broker.pieces.run(steps)
            job = replace(job, keys=found.context.disk.exported_keys(found.directory))
            stats = await self._worker.clean(job, place)
        except Uncleanable as error:
            if self._is_here(found):
                self._state.mark_uncleanable(where, str(error))
        except Abandoned as error:
            if not self._stopping:
                log.info("cleaning of %s ended early: %s", where, error)
        except OSError as error:
            if self._is_here(found):  # else it was deleted during the pass
                log.error("%s", found.context.failure("clean", found.directory, error).message)
        except KafkaError as error:
            log.error("cleaning of %s failed: %s", where, error.message)
        else:
            await self._done(found, cleanable, stats)
            return True
        await self._clear(found)
        return False

    async def _place(self, found: Log, group: CleanedGroup, now_ms: int) -> bool:
        """Replace the old segments of a group with the cleaned one."""
        old = [segment for segment in found.segments if segment.base_offset in group.base_offsets]
        if self._stopping or not self._is_here(found) or len(old) != len(group.base_offsets):
            return False
        new = [Segment(found.context, found.directory, old[0].base_offset, group.size, CLEANED)]
        run = self._broker.threads.run
        await run(replacement.prepare, found, new)
        if not self._is_here(found) or not replacement.exchange(found, old, new):
            await run(replacement.discard, new)
            return False
        await run(replacement.finish, found, old, new, now_ms)
        return True

    async def _done(self, found: Log, cleanable: Cleanable, stats: CleaningStats) -> None:
        where = found.topic_partition
        self._state.last_stats = stats
        self._state.bytes_moved += stats.map_bytes_read + stats.bytes_read + stats.bytes_written
        if where not in self._broker.log_dirs.future_logs:  # else a copy was begun, which is not as clean
            self._state.clean_to(where, stats.end_offset)
            await self._broker.threads.run(self._state.store)
        log.info(
            "cleaned %s up to offset %d: %d of %d records, %.1f of %.1f MB are left, in %.1f s (%.0f MB/s)",
            where,
            stats.end_offset,
            stats.records_written,
            stats.records_read,
            stats.bytes_written / 1e6,
            stats.bytes_read / 1e6,
            stats.seconds,
            (stats.bytes_read + stats.map_bytes_read) / 1e6 / max(stats.seconds, 0.001),
        )
        if stats.invalid_records:
            log.warning(
                "%s had %d records without a key, which cleaning removed", where, stats.invalid_records
            )

    async def _clear(self, found: Log) -> None:
        """Remove the files of a pass that ended early."""
        if self._is_here(found):
            try:
                await self._broker.threads.run(remove_cleaned, found)
            except OSError as error:
                log.error("could not remove the cleaner's files of %s: %s", found.topic_partition, error)

    def _limits(self) -> CleanerLimits:
        settings = self._broker.settings
        cleaners = settings["log.cleaner.threads"]
        key_bytes = settings["log.cleaner.dedupe.buffer.size"] // cleaners
        return CleanerLimits(
            key_bytes_max=int(key_bytes * settings["log.cleaner.io.buffer.load.factor"]),
            io_buffer_bytes=max(settings["log.cleaner.io.buffer.size"] // cleaners // 2, 1),
            io_bytes_per_second=settings["log.cleaner.io.max.bytes.per.second"] / cleaners,
        )


def remove_cleaned(found: Log) -> None:
    disk = found.context.disk
    for name in disk.listdir(found.directory):
        if name.endswith(CLEANED):
            disk.unlink(f"{found.directory}/{name}")


def assess_all(
    looks: list[tuple[Log, int | None, int]], now_ms: int
) -> tuple[list[tuple[Log, Cleanable]], list[tuple[TopicPartition, str]]]:
    """Assess logs; in a thread, since it reads indexes. Out: cleanable logs, and uncleanable ones with
    reasons."""
    found, uncleanable = [], []
    for each, checkpoint, last_stable_offset in looks:
        try:
            cleanable = assess(each, checkpoint, last_stable_offset, now_ms)
        except (OSError, Shortage, MemoryError):
            continue  # deleted meanwhile, or its disk failed: the next read or write reports that
        except (KafkaError, CorruptLog, ValueError) as error:
            uncleanable.append((each.topic_partition, str(error)))
        else:
            found.append((each, cleanable))
    return found, uncleanable
