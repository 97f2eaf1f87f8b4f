"""Moves between log dirs: a partition is copied while it is in use, then the copy replaces it.

In: AlterReplicaLogDirs, copies that a restart interrupted. Out: `-future` folders that become the partition's
own. Threads copy, at most at `replica.alter.log.dirs.io.max.bytes.per.second`. When little is missing, the
broker reports the new dir to the controller. Then, in one turn of the loop, it copies the rest and swaps the
logs.
Does not know: the files (see `storage.future_logs` and `storage.copying`).
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.storage.dirs import future_logs
from barnabas.storage.files import names
from barnabas.storage.files.names import TopicPartition
from barnabas.storage.logs import copying

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.partitions.partition import Partition
    from barnabas.broker.replicas.replicas import Replicas
    from barnabas.storage.dirs.log_dir import LogDir
    from barnabas.storage.logs.log import Log

log = logging.getLogger("barnabas.directories")
CHUNK_BYTES = 1 << 20
RETRY_MS = 100
CLOSING_S_MAX = 5.0
PREFERRED_MAX = 100_000  # partitions that do not exist here yet
MARK_BYTES = len(".") + 32 + len(names.FUTURE_FOLDER)


class LogDirMoves:
    def __init__(self, broker: Broker, replicas: Replicas) -> None:
        self._broker = broker
        self._replicas = replicas
        self._tasks: dict[TopicPartition, asyncio.Task[None]] = {}
        self._is_closing = False
        count = broker.settings["num.replica.alter.log.dirs.threads"] or len(broker.log_dirs.dirs)
        self._turns = asyncio.Semaphore(count)

    def resume(self) -> None:
        """Continue copies that were under way when the node stopped."""
        for topic_partition in list(self._broker.log_dirs.future_logs):
            partition = self._broker.partitions.get(*topic_partition)
            if partition is not None:
                self._begin(topic_partition, partition)

    async def close(self) -> None:
        """Stop copying; the next start continues. Waits for the threads, since the copies are closed next."""
        self._is_closing = True
        tasks = list(self._tasks.values())
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=CLOSING_S_MAX)
            for task in late:
                task.cancel()

    # -- requests ----------------------------------------------------------------------------------

    def alter(self, topic_partition: TopicPartition, path: str) -> None:
        """Move a partition to the dir at `path`. KafkaError: that is not possible."""
        broker = self._broker
        directory = self._destination(topic_partition, path)
        if broker.partitions.is_offline(*topic_partition):
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{topic_partition} is offline")
        partition = broker.partitions.get(*topic_partition)
        future = broker.log_dirs.future_logs.get(topic_partition)
        if partition is None:
            raise self._not_created_yet(topic_partition, directory)
        if future is not None:
            if broker.log_dirs.dir_of(future) is directory:
                if topic_partition not in self._tasks:  # its copy had failed
                    self._begin(topic_partition, partition)
                return
            self._cancel(topic_partition)
        if broker.log_dirs.dir_of(partition.log) is directory:
            return
        if directory.is_cordoned:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"{path} is cordoned: it accepts no partitions"
            )
        if len(broker.log_dirs.online()) < len(broker.log_dirs.dirs):
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, "a log dir is offline and may hold this partition too"
            )
        future_logs.create(broker.log_dirs, partition.log, directory, broker.clock.now_ms())
        self._begin(topic_partition, partition)

    def _not_created_yet(self, partition: TopicPartition, directory: LogDir) -> KafkaError:
        """Remember the dir for a partition that this broker does not have yet. Out: the error to respond."""
        preferred = self._broker.log_dirs.preferred
        if len(preferred) < PREFERRED_MAX:
            preferred[partition] = directory
        if self._broker.image.topics.partition(*partition) is None:
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return KafkaError(ErrorCode.REPLICA_NOT_AVAILABLE, f"{partition} is not here yet")

    def _destination(self, partition: TopicPartition, path: str) -> LogDir:
        if len(names.folder_name(partition)) + MARK_BYTES > names.FOLDER_NAME_BYTES_MAX:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"the name of {partition} is too long")
        wanted = path.rstrip("/") or "/"
        dirs = self._broker.log_dirs.dirs
        directory = next((each for each in dirs if each.absolute_path == wanted), None)
        if directory is None:
            raise KafkaError(ErrorCode.LOG_DIR_NOT_FOUND, f"{path} is not one of log.dirs")
        if directory.failure is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"the log dir {path} is offline")
        return directory

    def _cancel(self, partition: TopicPartition) -> None:
        task = self._tasks.pop(partition, None)
        if task is not None:
            task.cancel()
        future_logs.drop(self._broker.log_dirs, partition, self._broker.clock.now_ms())

    # -- copying -----------------------------------------------------------------------------------

    def _begin(self, topic_partition: TopicPartition, partition: Partition) -> None:
        task = self._broker.loop.create_task(self._move(topic_partition, partition))
        self._tasks[topic_partition] = task
        task.add_done_callback(lambda done: self._ended(topic_partition, done))

    def _ended(self, partition: TopicPartition, task: asyncio.Task[None]) -> None:
        if self._tasks.get(partition) is task:
            del self._tasks[partition]
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("could not move %s: %s", partition, error)

    async def _move(self, topic_partition: TopicPartition, partition: Partition) -> None:
        log_dirs = self._broker.log_dirs
        source, copy = partition.log, log_dirs.future_logs[topic_partition]
        source.is_moving = True
        try:
            async with self._turns:
                while source.is_claimed and self._should_continue(topic_partition, partition, copy):
                    await asyncio.sleep(RETRY_MS / 1000)  # the cleaner may use it
                await self._copy(topic_partition, partition, copy)
        finally:
            source.is_moving = topic_partition in log_dirs.future_logs
            if log_dirs.logs.get(topic_partition) is source and not self._is_closing:
                # The partition stays, and the controller may have been told of the new dir.
                broker, here = self._broker, log_dirs.dir_of(source).id
                broker.directories.note(partition.topic_id, partition.index, here)

    async def _copy(self, topic_partition: TopicPartition, partition: Partition, copy: Log) -> None:
        broker, log_dirs = self._broker, self._broker.log_dirs
        directory = log_dirs.dir_of(copy)
        is_assigned = False
        while self._should_continue(topic_partition, partition, copy):
            await self._catch_up(topic_partition, partition, copy)
            await broker.threads.run(copy.sync)
            if not self._should_continue(topic_partition, partition, copy):
                return
            if not is_assigned:
                await broker.directories.assign(partition.topic_id, partition.index, directory.id)
                is_assigned = True
            elif self._swap(topic_partition, partition, copy):
                log.info("moved %s to %s", topic_partition, directory.path)
                await broker.threads.run(future_logs.sync_name, log_dirs, copy)
                return
            else:
                await asyncio.sleep(RETRY_MS / 1000)

    def _should_continue(self, topic_partition: TopicPartition, partition: Partition, copy: Log) -> bool:
        """Whether the copy is still wanted: neither log was deleted or replaced, and no dir failed."""
        log_dirs = self._broker.log_dirs
        if self._is_closing or log_dirs.future_logs.get(topic_partition) is not copy:
            return False
        return log_dirs.logs.get(topic_partition) is partition.log

    async def _catch_up(self, topic_partition: TopicPartition, partition: Partition, copy: Log) -> None:
        """Copy until less than a chunk is missing."""
        broker = self._broker
        while self._should_continue(topic_partition, partition, copy):
            rate: int = broker.settings["replica.alter.log.dirs.io.max.bytes.per.second"]
            now_ms = broker.clock.now_ms()
            if rate == 0 or partition.log.truncation is not None:
                await asyncio.sleep(RETRY_MS / 1000)
                continue
            size = min(CHUNK_BYTES, rate)
            cut_at = copying.shared_end(partition.log, copy)
            copied = await broker.threads.run(copying.copy_some, partition.log, copy, size, now_ms, cut_at)
            if copied == 0:
                return
            await asyncio.sleep(copied / rate)

    def _swap(self, topic_partition: TopicPartition, partition: Partition, copy: Log) -> bool:
        """Copy the rest and swap the logs, in one turn of the loop. False: retry, since too much was written
        meanwhile, or other work holds the log's segments."""
        source = partition.log
        if source.truncation is not None or not source.claim():
            return False
        try:
            self._replicas.write_all()
            now_ms = self._broker.clock.now_ms()
            if copying.shared_end(source, copy) < copy.end_offset:
                return False  # the log was truncated: a thread truncates the copy
            copying.copy_some(source, copy, CHUNK_BYTES, now_ms)
            if copy.end_offset < source.end_offset:
                return False
            copying.complete(source, copy)
            if copy.recovery_point < source.recovery_point:
                copy.sync()  # bytes that were durable stay durable; they are less than a chunk
            partition.log = future_logs.promote(self._broker.log_dirs, topic_partition, now_ms)
            return True
        finally:
            source.release()
