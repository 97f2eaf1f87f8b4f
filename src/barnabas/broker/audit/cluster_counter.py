"""Counts the records of all partitions that this broker leads (`barnabas.audit.counts.enable`).

In: the logs of led partitions, up to their last stable offset. Out: count messages with ranges of offsets.
It follows the log behind the produce path: nothing waits for it. Retries of idempotent producers are not in
the log, aborted transactions are counted apart, control records not at all. A new leader goes on where the
audit topic says that counting ended; two leaders that count the same range find the same counts, and readers
take one. If its log ends before that, or has other records there, an unclean election has removed records
that were counted: it sends a correction.
Does not know: requests, how counts are compared.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from barnabas.audit.core.batch_counts import BatchCounts, Disorder, Opens
from barnabas.audit.core.messages import NO_CORRECTION, NO_EPOCH, CountMessage, StreamKind
from barnabas.audit.counters.audit_topic import REPLICAS, ensure_topic, is_counted
from barnabas.audit.counters.audit_topic_reader import AuditTopicReader
from barnabas.audit.counters.counted_ranges import CountedRanges, Progress
from barnabas.audit.counters.publisher import Publisher
from barnabas.broker.access.own_client import own_client
from barnabas.broker.access.retried_task import RetriedTask
from barnabas.broker.audit.log_counts import count_log
from barnabas.client.core.cluster import ClusterCore
from barnabas.client.core.errors import NoTopic
from barnabas.protocol import KafkaError, uuid

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.partitions.partition import Partition

log = logging.getLogger("barnabas.audit")
MESSAGES_AT_ONCE = 200
PARTITION_BYTES_MAX = 64 * 1024 * 1024  # of the log, for one message
BROKERS_S_MAX = 30.0
BROKERS_AGAIN_S = 0.5
PARTITIONS_A_TURN = 200  # looked at before the loop runs others

Led = tuple[bytes, int, int]  # topic id, partition, leader epoch


class ClusterCounter:
    def __init__(self, broker: Broker) -> None:
        settings = broker.settings
        self._broker = broker
        self._topic: str = settings["barnabas.audit.counts.topic"]
        self._tier: str = settings["barnabas.audit.counts.tier"]
        self._width_ms: int = settings["barnabas.audit.counts.bucket.ms"]
        self._interval_s: float = settings["barnabas.audit.counts.interval.ms"] / 1000
        self._opens = Opens(settings["barnabas.audit.counts.read"])
        self._host = f"broker-{broker.node_id}"
        self._next: dict[Led, int] = {}  # the offset to count next
        self._disorders: dict[Led, Disorder] = {}
        self._is_behind = False
        self._task = RetriedTask(self._attempt, self._warn)

    def start(self) -> None:
        self._task.start()

    async def close(self) -> None:
        await self._task.close()

    async def _attempt(self) -> None:
        """Count until an error."""
        async with own_client(self._broker, "audit-counts") as cluster:
            await self._wait_for_brokers(cluster)
            await ensure_topic(cluster, self._topic)
            reader, counted = AuditTopicReader(cluster, self._topic), CountedRanges(self._tier)
            publisher = Publisher(cluster, self._topic)
            try:
                while True:
                    is_behind = await self._count_all(reader, counted, publisher)
                    self._task.succeeded()
                    await asyncio.sleep(0 if is_behind else self._interval_s)
            finally:
                await reader.close()
                await publisher.close()

    async def _wait_for_brokers(self, cluster: ClusterCore) -> None:
        """Wait a while for the other brokers of a cluster that starts: the audit topic gets as many replicas
        as there are brokers when it is made."""
        try:
            await cluster.topics([self._topic])
            return
        except NoTopic:
            pass
        settings = self._broker.settings
        controllers = settings["controller.quorum.voters"] or settings["controller.quorum.bootstrap.servers"]
        wanted = min(REPLICAS, len(controllers))
        until = asyncio.get_running_loop().time() + BROKERS_S_MAX
        while asyncio.get_running_loop().time() < until:
            if len((await cluster.retrying(cluster.refresh)).nodes) >= wanted:
                return
            await asyncio.sleep(BROKERS_AGAIN_S)

    def _warn(self, error: Exception, retry_s: float) -> None:
        log.warning(
            "records are not counted now: %s. They are counted later, while the log has them. This node's "
            "own principal needs Read, Write and Describe on %s. Trying again in %.0f s",
            error,
            self._topic,
            retry_s,
        )
        self._next.clear()  # the last messages may be stored or not: the topic tells

    async def _count_all(
        self, reader: AuditTopicReader, counted: CountedRanges, publisher: Publisher
    ) -> bool:
        """Count what came since the last time in all led partitions. Whether some have more than fits one
        message."""
        self._is_behind = False
        led = await self._led_partitions()
        self._next = {key: offset for key, offset in self._next.items() if key in led}
        self._disorders = {key: each for key, each in self._disorders.items() if key in led}
        if led.keys() - self._next.keys():
            await reader.catch_up_with(counted.see)
        waiting: list[tuple[Led, CountMessage]] = []
        for key, partition in led.items():
            try:
                message = await self._count(key, partition, counted)
            except KafkaError as error:
                log.warning("%s is not counted now: %s", partition, error.message)
                continue
            if message is not None:
                waiting.append((key, message))
            if len(waiting) >= MESSAGES_AT_ONCE:
                await self._send(publisher, waiting)
        await self._send(publisher, waiting)
        return self._is_behind

    async def _led_partitions(self) -> dict[Led, Partition]:
        found: dict[Led, Partition] = {}
        for number, partition in enumerate(list(self._broker.partitions), 1):
            if partition.is_leader and not partition.is_internal and is_counted(partition.topic, self._topic):
                found[partition.topic_id, partition.index, partition.leader_epoch] = partition
            if not number % PARTITIONS_A_TURN:
                await asyncio.sleep(0)
        return found

    async def _count(self, key: Led, partition: Partition, counted: CountedRanges) -> CountMessage | None:
        log_, upper_offset = partition.log, partition.last_stable_offset
        stream = f"{self._broker.cluster_id}/{uuid.to_text(partition.topic_id)}-{partition.index}"
        start = self._next.get(key)
        if start is None:
            progress = counted.streams.get(stream)
            start = log_.log_start_offset if progress is None else progress.end
            lost = lost_from(partition, progress) if progress is not None else None
            if progress is not None and lost is not None:
                return self._correction(key, partition, progress, stream, lost)
            self._next[key] = start
        first = max(start, log_.log_start_offset)  # retention or DeleteRecords may have been faster
        if first >= upper_offset:
            return None
        threads = self._broker.threads.background
        if not log_.has_loaded_aborted(first):
            await threads.run(log_.load_aborted, first)
        aborted = log_.aborted_transactions(first, upper_offset)
        disorder = self._disorders.setdefault(key, Disorder(self._width_ms))
        counts = BatchCounts(first, self._width_ms, self._broker.clock.now_ms(), self._opens, disorder)
        await threads.run(count_log, log_, counts, upper_offset, aborted, PARTITION_BYTES_MAX, threads.pause)
        if counts.end <= first:
            return None
        self._is_behind = self._is_behind or counts.end < upper_offset
        return self._message(partition, stream, start, counts)

    def _correction(
        self, key: Led, partition: Partition, progress: Progress, stream: str, lost: int
    ) -> CountMessage | None:
        """Take back all counts from the last known cut before the loss on. What the log has there is counted
        again by the messages behind the correction."""
        cut = progress.cut_before(lost)
        is_known = cut is not None and cut >= partition.log.log_start_offset
        log.warning(
            "an unclean election has removed records of %s from offset %d on, counted up to %d: %s",
            partition,
            lost,
            progress.end,
            "their counts are taken back"
            if is_known
            else "nothing tells the counts up to there, so they stay",
        )
        if cut is None or not is_known:
            self._next[key] = max(lost, partition.log.log_start_offset)
            return None
        counts = BatchCounts(cut, self._width_ms, self._broker.clock.now_ms())
        counts.epoch = progress.epoch + 1
        return self._message(partition, stream, cut, counts, lost)

    def _message(
        self,
        partition: Partition,
        stream: str,
        start: int,
        counts: BatchCounts,
        correction: int = NO_CORRECTION,
    ) -> CountMessage:
        return CountMessage(
            self._tier,
            partition.topic,
            self._host,
            stream,
            StreamKind.OFFSETS,
            start,
            counts.end,
            self._broker.clock.now_ms(),
            counts.entries(partition.index),
            self._width_ms,
            expired=counts.start - start + counts.damaged,
            epoch=counts.epoch,
            correction=correction,
            is_compacted=partition.log.settings.compact,
        )

    async def _send(self, publisher: Publisher, waiting: list[tuple[Led, CountMessage]]) -> None:
        if not waiting:
            return
        await publisher.send([message for _, message in waiting])
        for key, message in waiting:
            self._next[key] = message.end
        waiting.clear()


def lost_from(partition: Partition, progress: Progress) -> int | None:
    """The offset from which on the log has other records than those that were counted, or none."""
    end = partition.log.end_offset
    if progress.epoch != NO_EPOCH:
        known, epoch_end = partition.epoch_end(progress.epoch)
        if known >= 0:
            end = min(end, epoch_end)
    return end if end < progress.end else None
