"""Periodic work of a broker: checkpoints, due syncs, retention, deleted files, expiry of producers,
counts for the audit.

In: intervals from the settings. Out: calls to storage, in threads where they are slow. Each duty has one
task, so runs of it never overlap. A failure is logged, and the next run retries.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from barnabas.broker.audit.switch import counter_of
from barnabas.broker.upkeep.log_syncing import sync_log, sync_names
from barnabas.broker.upkeep.retention import Retention
from barnabas.protocol import KafkaError
from barnabas.storage.dirs.log_dirs import log_start_offset, recovery_point
from barnabas.storage.files import names

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.partitions.partition import Partition
    from barnabas.replication.producers import ProducerStates
    from barnabas.storage.dirs.log_dirs import Checkpoint, OffsetOf
    from barnabas.storage.files.names import TopicPartition
    from barnabas.storage.logs.log import Log

log = logging.getLogger("barnabas.maintenance")
Duty = Callable[[], Awaitable[None]]
DELETE_CHECK_MS = 1_000
INTERVAL_MS_MAX = 24 * 3600 * 1000  # longer intervals mean never


class Maintenance:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._tasks: list[asyncio.Task[None]] = []
        self._retention = Retention(broker)
        self._stopping = asyncio.Event()
        self._marks_written: Checkpoint | None = None
        self._audit = counter_of(broker)

    def start(self) -> None:
        settings = self._broker.settings
        duties: list[tuple[Duty, int]] = [
            (self.checkpoint_recovery_points, settings["log.flush.offset.checkpoint.interval.ms"]),
            (self.checkpoint_log_starts, settings["log.flush.start.offset.checkpoint.interval.ms"]),
            (self.checkpoint_high_watermarks, settings["replica.high.watermark.checkpoint.interval.ms"]),
            (self.sync_due, settings["log.flush.scheduler.interval.ms"]),
            (self.expire_producers, settings["producer.id.expiration.check.interval.ms"]),
            (self._retention.run, settings["log.retention.check.interval.ms"]),
            (self.remove_deleted, DELETE_CHECK_MS),
        ]
        self._tasks = [
            asyncio.get_running_loop().create_task(self._repeat(duty, interval_ms))
            for duty, interval_ms in duties
            if interval_ms <= INTERVAL_MS_MAX
        ]
        if self._audit is not None:
            self._audit.start()

    async def stop(self) -> None:
        """Wait for running duties, since two threads must not write the same checkpoint."""
        self._stopping.set()
        self._retention.is_stopping = True
        if self._audit is not None:
            await self._audit.close()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _repeat(self, duty: Duty, interval_ms: int) -> None:
        wait_ms = min(interval_ms, self._broker.settings["log.initial.task.delay.ms"])
        while not await self._stops_within(wait_ms):
            wait_ms = interval_ms
            try:
                await duty()
            except (KafkaError, OSError) as error:
                log.error("%s failed: %s", getattr(duty, "__name__", duty), error)
            except Exception:  # a shortage of memory or threads, for example: the next run may succeed
                log.exception("%s failed", getattr(duty, "__name__", duty))

    async def _stops_within(self, duration_ms: int) -> bool:
        try:
            await asyncio.wait_for(self._stopping.wait(), duration_ms / 1000)
        except TimeoutError:
            return False
        return True

    # -- duties ------------------------------------------------------------------------------------

    async def checkpoint_recovery_points(self) -> None:
        broker = self._broker
        await broker.pieces.run(sync_names(broker.threads.syncs, list(broker.log_dirs.logs.values())))
        await self._store(names.RECOVERY_POINT_CHECKPOINT, recovery_point)

    async def checkpoint_log_starts(self) -> None:
        await self._store(names.LOG_START_OFFSET_CHECKPOINT, log_start_offset)

    async def checkpoint_high_watermarks(self) -> None:
        """Write the high watermarks, unless none has changed."""
        self._marks_written = await self._store(
            names.HIGH_WATERMARK_CHECKPOINT, self._high_watermark, unless=self._marks_written
        )

    async def _store(self, name: str, offset_of: OffsetOf, unless: Checkpoint | None = None) -> Checkpoint:
        broker = self._broker
        found = await broker.pieces.run(broker.log_dirs.checkpoint_in_steps(offset_of))
        if found != unless:
            await broker.threads.syncs.run(broker.log_dirs.store_checkpoint, name, found)
        return found

    def _high_watermark(self, topic_partition: TopicPartition, log: Log) -> int | None:
        partition = self._broker.partitions.get(*topic_partition)
        return None if partition is None else partition.high_watermark

    async def sync_due(self) -> None:
        """Sync logs that were not synced for `flush.ms` after a write."""
        now_ms = self._broker.clock.now_ms()
        due: list[Log] = []

        def look(partition: Partition) -> None:
            if partition.log.is_sync_due(now_ms):
                due.append(partition.log)

        await self._of_each(look)
        for each in due:
            await sync_log(self._broker.threads.syncs, each, None, now_ms)

    async def expire_producers(self) -> None:
        expiration_ms: int = self._broker.settings["producer.id.expiration.ms"]
        now_ms = self._broker.clock.now_ms()
        found: list[ProducerStates] = []

        def look(partition: Partition) -> None:
            if partition.log.producers_loaded and len(partition.log.producers):
                found.append(partition.log.producers)

        await self._of_each(look)
        for producers in found:
            await self._broker.pieces.run(producers.expire(now_ms, expiration_ms))

    async def _of_each(self, do: Callable[[Partition], None]) -> None:
        await self._broker.pieces.run(self._broker.partitions.in_steps(do))

    async def remove_deleted(self) -> None:
        """Remove deleted files and folders after `file.delete.delay.ms`."""
        graveyard, now_ms = self._broker.log_dirs.context.graveyard, self._broker.clock.now_ms()
        due_ms = graveyard.next_due_ms()
        if due_ms is not None and due_ms <= now_ms:
            await self._broker.threads.run(graveyard.remove_due, now_ms)
