"""Follows `__consumer_offsets` and applies its records to the lag of a cluster.

In: a cluster client. Out: commits, and the ids of groups whose members may have changed. Fetches are small,
so that the records of one take the loop for a few milliseconds at most. Commits of open transactions count
when the transaction is committed. Does not know: requests to coordinators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.offsets import FoundOffset, OffsetSpec
from barnabas.client.consumer import Consumer, ConsumerSettings, OnOutOfRange
from barnabas.client.core.cluster import ClusterCore
from barnabas.client.core.fetching import ConsumerRecord, DamagedBatch
from barnabas.client.core.topology import TopicPartition
from barnabas.metadata.steps import Steps
from barnabas.monitor.lag.commit_records import CommitRecords
from barnabas.runtime.pieces import Pieces

TOPIC = "__consumer_offsets"
POLL_MS = 1_000.0
RECORDS_A_STEP = 100
# A fetch costs more than the records of a busy topic that it brings: it waits for some, but not for long.
CONSUMING = ConsumerSettings(
    fetch_wait_ms_max=250,
    fetch_bytes_min=32_768,
    fetch_bytes_max=131_072,
    partition_fetch_bytes_max=65_536,
    read_committed=True,
    on_out_of_range=OnOutOfRange.EARLIEST,
)


class OffsetsTopic:
    """`is_caught_up` is set once everything is read that was there at the start."""

    def __init__(
        self,
        cluster: ClusterCore,
        records: CommitRecords,
        pieces: Pieces,
        now_ms: Callable[[], int],
        *,
        from_latest: bool = False,
        topic: str = TOPIC,
        on_poll: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_poll` is called whenever the topic could be read, also if nothing was new."""
        self._cluster = cluster
        self._records = records
        self._pieces = pieces
        self._now_ms = now_ms
        self._start = OffsetSpec.LATEST if from_latest else OffsetSpec.EARLIEST
        self._topic = topic
        self._on_poll = on_poll
        self.is_caught_up = False
        self.groups_changed: set[str] = set()  # the watch describes them anew and clears this

    async def follow(self) -> None:
        """Read until cancelled. KafkaError if the topic cannot be read, NoTopic if there is none."""
        count = len((await self._cluster.topics([self._topic]))[self._topic].partitions)
        places = [TopicPartition(self._topic, index) for index in range(count)]
        goals = await self._goals(places)
        consumer = Consumer(self._cluster, CONSUMING)
        try:
            await consumer.assign_at(places, self._start)
            self._look_at(goals, consumer)
            while True:
                try:
                    found = await consumer.poll(POLL_MS)
                except DamagedBatch as damaged:
                    consumer.assign({damaged.where: damaged.next_offset})
                    continue
                self._on_poll()
                if found:
                    await self._pieces.run(self._apply(found))
                self._look_at(goals, consumer)
        finally:
            await consumer.close()

    async def _goals(self, places: list[TopicPartition]) -> dict[TopicPartition, int]:
        found = await Admin(self._cluster).list_offsets(
            dict.fromkeys(places, OffsetSpec.LATEST), read_committed=True
        )
        return {at: each.offset for at, each in found.items() if isinstance(each, FoundOffset)}

    def _look_at(self, goals: dict[TopicPartition, int], consumer: Consumer) -> None:
        if not self.is_caught_up:
            self.is_caught_up = all(consumer.positions.get(at, goal) >= goal for at, goal in goals.items())

    def _apply(self, found: list[ConsumerRecord]) -> Steps[None]:
        apply, changed, now_ms = self._records.apply, self.groups_changed, self._now_ms()
        for part in portions(found):
            for record in part:
                group = apply(record.key, record.value, record.offset, now_ms)
                if group is not None:
                    changed.add(group)
            yield


def portions(found: list[ConsumerRecord]) -> Iterator[list[ConsumerRecord]]:
    for at in range(0, len(found), RECORDS_A_STEP):
        yield found[at : at + RECORDS_A_STEP]
