"""Writes the markers that end transactions, and retries until every partition has its own.

In: markers of transactions whose end is decided and committed. Out: control batches in partitions that this
broker leads, requests to other leaders, and a report of each marker that is written. Where one write is
enough (no other replica, no sync before a response) a marker is written at once; otherwise it waits until it
is committed. Failed markers are retried. Deleted partitions need none.
Does not know: the state of transactions, what is decided.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.coordinators.marker_sender import FULL
from barnabas.broker.coordinators.offsets_topic import OFFSETS_TOPIC
from barnabas.metadata.partitions import NO_LEADER
from barnabas.protocol import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.transactions.outcome import Markers, TopicPartition

log = logging.getLogger("barnabas.transactions")
RETRY_MS = 50
RETRY_MS_MAX = 1_000
FENCED = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED)
PARTITION_NOT_READY = KafkaError(
    ErrorCode.NOT_LEADER_OR_FOLLOWER, "the partition is led elsewhere, or not ready yet"
)
# Reasons that pass by themselves: a leader is elected, a group coordinator has loaded, markers are sent.
EXPECTED = {(error.code, error.message) for error in (PARTITION_NOT_READY, FULL)}

OnWritten = Callable[["Markers", Sequence["TopicPartition"]], None]


class MarkerWriter:
    """The markers of one shard of transactions."""

    __slots__ = ("_broker", "_is_closed", "_last_reason", "_on_written", "_retry_ms", "_timer", "_unwritten")

    def __init__(self, broker: Broker, on_written: OnWritten) -> None:
        self._broker = broker
        self._on_written = on_written
        self._unwritten: list[tuple[Markers, TopicPartition]] = []  # to be tried again
        self._retry_ms = RETRY_MS
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False
        self._last_reason: tuple[int, str] | None = None

    @property
    def unwritten_count(self) -> int:
        return len(self._unwritten)

    def close(self) -> None:
        """Stop writing; the next coordinator of the shard writes what is left."""
        self._is_closed = True
        self._unwritten = []
        if self._timer is not None:
            self._timer.cancel()

    def write(self, markers: Markers) -> None:
        """Write the markers of one transaction."""
        self._write(markers, markers.partitions)

    def _write(self, markers: Markers, partitions: Sequence[TopicPartition]) -> None:
        done = []
        for partition in partitions:
            try:
                if self._write_one(markers, partition):
                    done.append(partition)
            except KafkaError as error:
                self._failed(markers, partition, error)
        if done:
            self._on_written(markers, done)

    def _write_one(self, markers: Markers, topic_partition: TopicPartition) -> bool:
        """Write a marker. Out: whether it is committed already. KafkaError: it is not written."""
        broker = self._broker
        partition = broker.partitions.get(*topic_partition)
        if partition is None or not partition.is_leader:
            registered = broker.image.topics.partition(*topic_partition)
            if registered is None:
                log.info("%s is deleted and needs no marker of %s", topic_partition, markers.transactional_id)
                return True
            if registered.leader == NO_LEADER or registered.leader == broker.node_id:
                raise PARTITION_NOT_READY.copy()
            broker.markers.send(
                registered.leader,
                markers,
                topic_partition,
                partial(self._committed, markers, topic_partition),
            )
            return False
        now_ms = broker.clock.now_ms()
        if topic_partition.topic == OFFSETS_TOPIC:
            host = broker.groups.hosts.get(topic_partition.partition)
            if host is None or host.error is not None:
                raise PARTITION_NOT_READY.copy()
            offset = host.append_marker(markers.end, now_ms)
            write_early = host.journal.write_early
        else:
            offset = partition.append_marker(markers.end, now_ms)
            write_early = partition.write_early
        if partition.is_committed_by_writing:
            write_early()
            return True
        partition.when_committed(offset, partial(self._committed, markers, topic_partition))
        return False

    def _committed(self, markers: Markers, partition: TopicPartition, error: KafkaError | None) -> None:
        if self._is_closed:
            return
        if error is None:
            self._on_written(markers, [partition])
        else:
            self._failed(markers, partition, error)

    def _failed(self, markers: Markers, partition: TopicPartition, error: KafkaError) -> None:
        if self._is_closed:
            return
        if error.code in FENCED:
            log.warning(
                "%s refused the marker of %s because the transaction was ended in a newer epoch: %s",
                partition,
                markers.transactional_id,
                error.message,
            )
            return
        reason = error.code, error.message
        if reason not in EXPECTED and reason != self._last_reason:
            self._last_reason = reason  # one log line, since thousands may fail for the same reason
            log.warning(
                "could not write the marker of %s to %s, retrying: %s",
                markers.transactional_id,
                partition,
                error.message,
            )
        self._unwritten.append((markers, partition))
        if self._timer is None:
            self._timer = self._broker.loop.call_later(self._retry_ms / 1000, self._on_time)

    def metadata_changed(self) -> None:
        """Retry at once: partitions may have new leaders, or be deleted."""
        if self._unwritten:
            self._retry_ms = RETRY_MS
            self._on_time()

    def _on_time(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        unwritten, self._unwritten = self._unwritten, []
        self._retry_ms = min(2 * self._retry_ms, RETRY_MS_MAX)
        for markers, partition in unwritten:
            self._write(markers, [partition])
        if not self._unwritten:
            self._retry_ms = RETRY_MS
