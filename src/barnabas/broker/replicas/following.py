"""The fetchers of this broker: each partition that another broker leads is fetched from that broker.

In: leaders, from the metadata. Out: at most `num.replica.fetchers` of `LeaderFetcher` for each leader, each
with its own connection, while they have partitions; a partition always has the same one.
Does not know: requests, what is fetched.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from barnabas.broker.coordinators.topic import java_hash
from barnabas.broker.quotas.replication_throttle import ReplicationThrottle
from barnabas.broker.replicas.leader_fetcher import LeaderFetcher
from barnabas.broker.replicas.session_names import Key

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.partitions.partition import Partition
    from barnabas.broker.produce.tick import Tick
    from barnabas.settings import BrokerSettings

COUNT = "num.replica.fetchers"
INT32 = 1 << 32


class Source(NamedTuple):
    """The leader of a partition, and the number of its fetcher."""

    leader_id: int
    number: int


class Following:
    def __init__(self, broker: Broker, tick: Tick) -> None:
        self._broker = broker
        self._tick = tick
        self._count: int = broker.settings[COUNT]
        self._fetchers: dict[Source, LeaderFetcher] = {}
        self._source_of: dict[Key, Source] = {}
        self._is_closed = False
        self.throttle = ReplicationThrottle(broker, "follower")
        broker.dynamic.on_change((COUNT,), self._resize)

    @property
    def partition_count(self) -> int:
        return len(self._source_of)

    @property
    def fetcher_count(self) -> int:
        return len(self._fetchers)

    def lags(self) -> Iterator[tuple[Source, Partition, int]]:
        """How many records each partition is behind the high watermark that its leader told last."""
        for source, fetcher in list(self._fetchers.items()):
            for each in fetcher.followed():
                partition = each.partition
                yield source, partition, max(partition.leader_high_watermark - partition.log.end_offset, 0)

    def requests(self) -> list[tuple[int, int, int]]:
        """Leader, number and fetch responses of each fetcher."""
        return [
            (source.leader_id, source.number, fetcher.responses_total)
            for source, fetcher in self._fetchers.items()
        ]

    @property
    def failed_count(self) -> int:
        """Partitions that are not fetched for a while, because their leader refused, or to repair them."""
        return sum(each.is_delayed for fetcher in self._fetchers.values() for each in fetcher.followed())

    def follow(self, partition: Partition, leader_id: int, leader_epoch: int) -> None:
        """Fetch a partition from its leader, from its own log end on."""
        if self._is_closed:  # the metadata still changes while this broker stops, and its logs are closed
            return
        key = partition.topic_id, partition.index
        source = Source(leader_id, fetcher_number(partition.topic, partition.index, self._count))
        known = self._source_of.get(key)
        if known is not None:
            if known == source and self._fetchers[known].epoch_of(key) == leader_epoch:
                return
            self.stop(partition)
        self._source_of[key] = source
        fetcher = self._fetchers.get(source)
        if fetcher is None:
            fetcher = self._fetchers[source] = LeaderFetcher(
                self._broker, self._tick, leader_id, self.throttle, source.number
            )
        fetcher.add(partition, leader_epoch)

    def stop(self, partition: Partition) -> None:
        """Stop fetching a partition: this broker leads it, it has no leader, or it was removed."""
        key = partition.topic_id, partition.index
        source = self._source_of.pop(key, None)
        if source is None:
            return
        fetcher = self._fetchers[source]
        fetcher.remove(key)
        if not len(fetcher):
            del self._fetchers[source]
            fetcher.close()

    def _resize(self, before: BrokerSettings, after: BrokerSettings) -> None:
        """Change the number of fetchers, and move partitions to their new fetchers."""
        self._count = after[COUNT]
        followed = [
            (each.partition, fetcher.leader_id, each.epoch)
            for fetcher in self._fetchers.values()
            for each in fetcher.followed()
        ]
        for partition, leader_id, epoch in followed:
            self.follow(partition, leader_id, epoch)

    def close(self) -> None:
        self._is_closed = True
        for fetcher in self._fetchers.values():
            fetcher.close()
        self._fetchers, self._source_of = {}, {}


def fetcher_number(topic: str, index: int, count: int) -> int:
    """The fetcher of a leader that has a partition, as Kafka spreads them."""
    if count == 1:
        return 0
    mixed = (31 * java_hash(topic) + index) % INT32
    signed = mixed - INT32 if mixed >= INT32 // 2 else mixed
    return (0 if signed == -(INT32 // 2) else abs(signed)) % count
