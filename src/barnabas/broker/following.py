"""Following: every partition that another broker leads is fetched from that broker.

In: leadership as the metadata tells it. Out: one `LeaderFetcher` a leader, as long as it has something to
fetch.
Does not know: requests, what is fetched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.leader_fetcher import Key, LeaderFetcher
from barnabas.broker.replication_throttle import ReplicationThrottle

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.partition import Partition
    from barnabas.broker.tick import Tick


class Following:
    def __init__(self, broker: Broker, tick: Tick) -> None:
        self._broker = broker
        self._tick = tick
        self._fetchers: dict[int, LeaderFetcher] = {}
        self._leader_of: dict[Key, int] = {}
        self.throttle = ReplicationThrottle(broker, "follower")

    @property
    def partition_count(self) -> int:
        return len(self._leader_of)

    def follow(self, partition: Partition, leader_id: int, leader_epoch: int) -> None:
        """Fetch a partition from its leader, from the end of its log on."""
        key = partition.topic_id, partition.index
        known = self._leader_of.get(key)
        if known is not None:
            if known == leader_id and self._fetchers[known].epoch_of(key) == leader_epoch:
                return
            self.stop(partition)
        self._leader_of[key] = leader_id
        fetcher = self._fetchers.get(leader_id)
        if fetcher is None:
            fetcher = self._fetchers[leader_id] = LeaderFetcher(
                self._broker, self._tick, leader_id, self.throttle
            )
        fetcher.add(partition, leader_epoch)

    def stop(self, partition: Partition) -> None:
        """It is led here, or by nobody, or is gone."""
        key = partition.topic_id, partition.index
        leader_id = self._leader_of.pop(key, None)
        if leader_id is None:
            return
        fetcher = self._fetchers[leader_id]
        fetcher.remove(key)
        if not len(fetcher):
            del self._fetchers[leader_id]
            fetcher.close()

    def close(self) -> None:
        for fetcher in self._fetchers.values():
            fetcher.close()
        self._fetchers, self._leader_of = {}, {}
