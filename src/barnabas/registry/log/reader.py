"""The registry's own reader: applies the records of the topic in order, from the first one on, and follows.

In: a cluster, the topic's partition, the state. Out: the state, and waits until an offset is applied. While
no broker responds it keeps trying; the state stays as it is. It ends with `failure` when the topic is not
the one that it read. Does not know: what records mean, who writes them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.offsets import OffsetSpec
from barnabas.client.consumer import Consumer, ConsumerSettings, OnOutOfRange
from barnabas.client.core.cluster import ClusterCore
from barnabas.client.core.errors import ClientError
from barnabas.client.core.fetching import ConsumerRecord, DamagedBatch
from barnabas.client.core.topology import TopicPartition
from barnabas.decisions.commit_waits import CommitFuture, CommitWaits, committed_future
from barnabas.protocol import ErrorCode, KafkaError, ProtocolError
from barnabas.registry.log.changes import KeyValue, Replica

log = logging.getLogger("barnabas.registry")

POLL_MS = 1_000.0
RETRY_S = 0.2
RECORDS_AT_ONCE = 500  # between two turns of the event loop, while the topic is read for the first time
FOLLOWING = ConsumerSettings(
    fetch_wait_ms_max=500,
    partition_fetch_bytes_max=8 << 20,
    on_out_of_range=OnOutOfRange.FAIL,
)
# The only writer knows what it wrote: brokers need not send it back for each record.
WRITING = replace(FOLLOWING, fetch_wait_ms_max=200, fetch_bytes_min=1 << 16)


class LogReader:
    def __init__(self, cluster: ClusterCore, place: TopicPartition, topic_id: bytes, state: Replica) -> None:
        self.next_offset = 0  # records before it are applied
        self.failure: Exception | None = None
        self._cluster = cluster
        self._place = place
        self._topic_id = topic_id
        self._state = state
        self._consumer = Consumer(cluster, FOLLOWING)
        self._waits: CommitWaits[CommitFuture] = CommitWaits(place)
        self._is_caught_up = False
        self._problem = ""  # the last one that was logged
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Read everything that is there now, then follow."""
        end = await self.end_offset()
        await self._consumer.assign_at([self._place], OffsetSpec.EARLIEST)
        self.next_offset = self._consumer.positions[self._place]
        self._task = asyncio.create_task(self._run())
        await self.passed(end - 1)
        self._is_caught_up = True

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._consumer.close()
        self._waits.tell_lost(-1, ClientError(f"the reader of {self._place.topic} was stopped"))

    async def end_offset(self) -> int:
        """The offset behind the last record that is committed now."""
        found = await Admin(self._cluster).list_offsets({self._place: OffsetSpec.LATEST})
        end = found[self._place]
        if isinstance(end, KafkaError):
            raise end
        return end.offset

    async def passed(self, offset: int) -> None:
        """Wait until the record at an offset is applied. Raises what the reader ended with."""
        if self.failure is not None:
            raise self.failure
        if self.next_offset > offset:
            return
        await committed_future(self._waits, offset)

    # -- records of this node ----------------------------------------------------------------------

    def expect_own_records(self, is_writer: bool) -> None:
        """Whether this node writes, and nobody else: it hands over its records itself then."""
        self._consumer.settings = WRITING if is_writer else FOLLOWING

    def apply_own(self, base_offset: int, records: Sequence[KeyValue], timestamp_ms: int) -> bool:
        """Apply committed records that this node wrote. False if others before them are not applied yet."""
        if self.next_offset != base_offset or self.failure is not None:
            return False
        for key, value in records:
            self._state.apply(key, value, timestamp_ms)
        # A fetch under way may bring them as well: the consumer skips what lies before its position.
        self._consumer.assign({self._place: base_offset + len(records)})
        self._advance()
        return True

    # -- following ---------------------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            while True:
                await self._apply(await self._poll())
                self._check_topic()
        except Exception as error:
            log.exception("the reader of %s ended", self._place.topic)
            self.failure = error
            self._waits.tell_lost(-1, error)

    async def _poll(self) -> list[ConsumerRecord]:
        try:
            records = await self._consumer.poll(POLL_MS)
        except DamagedBatch as damaged:
            log.error("a part of %s is skipped: %s", self._place, damaged)
            self._consumer.assign({self._place: damaged.next_offset})
            return []
        except (KafkaError, ClientError, ProtocolError) as error:
            if isinstance(error, KafkaError) and error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
                raise TopicReplaced(self._place.topic) from error
            if str(error) != self._problem:
                self._problem = str(error)
                log.warning("%s cannot be read at the moment: %s", self._place, error)
            await asyncio.sleep(RETRY_S)
            return []
        self._problem = ""
        return records

    async def _apply(self, records: list[ConsumerRecord]) -> None:
        apply = self._state.apply
        for index, record in enumerate(records, 1):
            apply(record.key, record.value, record.timestamp)
            if index % RECORDS_AT_ONCE == 0 and not self._is_caught_up:
                await asyncio.sleep(0)  # health checks are answered meanwhile
        self._advance()

    def _advance(self) -> None:
        self.next_offset = self._consumer.positions[self._place]
        self._waits.tell_committed(self.next_offset)

    def _check_topic(self) -> None:
        known = self._cluster.topology.topics.get(self._place.topic)
        if known is not None and not known.error_code and known.topic_id != self._topic_id:
            raise TopicReplaced(self._place.topic)


class TopicReplaced(ClientError):
    """Another topic has the name, or records were deleted: the state does not fit any more."""

    def __init__(self, topic: str) -> None:
        super().__init__(
            f"the topic {topic} was deleted, created anew or cut: restart the service to read it again"
        )
