"""The throttle of replication, so that a reassignment leaves bandwidth for clients (KIP-73).

In: the throttled replicas of a topic (`leader.` or `follower.replication.throttled.replicas`), the broker's
rate (`...throttled.rate`), replicated bytes. Out: whether a replica must wait. In-sync replicas never wait:
they would fall out of the ISR.
Does not know: fetching, responses.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from barnabas.quotas.rates import SimpleRate

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.partitions.partition import Partition

UNLIMITED = 2**63 - 1
EVERY_REPLICA = "*"
RETRY_MS = 100


class ReplicationThrottle:
    """One direction: `kind` is "leader" for bytes sent to followers, "follower" for bytes fetched."""

    __slots__ = ("_broker", "_parsed", "_rate", "_rate_name", "_replicas_name", "retry_ms")

    def __init__(self, broker: Broker, kind: str) -> None:
        self._broker = broker
        self._rate_name = f"{kind}.replication.throttled.rate"
        self._replicas_name = f"{kind}.replication.throttled.replicas"
        settings = broker.settings
        self._rate = SimpleRate(
            settings["replication.quota.window.num"],
            settings["replication.quota.window.size.seconds"] * 1000,
        )
        self._parsed: dict[str, frozenset[int] | None] = {}  # by setting: the partitions here; None: all
        self.retry_ms = RETRY_MS

    @property
    def bytes_per_second(self) -> float:
        return self._rate.rate(self._broker.loop.time() * 1000)

    @property
    def is_unlimited(self) -> bool:
        return bool(self._broker.settings[self._rate_name] >= UNLIMITED)

    def is_throttled(self, partition: Partition) -> bool:
        """Whether the topic's setting names the replica on this broker."""
        text = self._broker.image.configs.topic(partition.topic).get(self._replicas_name)
        if not text:
            return False
        if text not in self._parsed:
            if len(self._parsed) > 1000:
                self._parsed.clear()
            self._parsed[text] = named_partitions(text, self._broker.node_id)
        named = self._parsed[text]
        return named is None or partition.index in named

    def is_exceeded(self) -> bool:
        return bool(self.bytes_per_second > self._broker.settings[self._rate_name])

    def count(self, partition: Partition, size: int) -> None:
        """Count replicated bytes."""
        if not self.is_unlimited and self.is_throttled(partition):
            self._rate.record(size, self._broker.loop.time() * 1000)

    def throttled(self, partitions: Iterable[Partition]) -> list[Partition]:
        """The followed partitions that must not be fetched now: throttled and not in sync."""
        if self.is_unlimited or not self.is_exceeded():
            return []
        node_id = self._broker.node_id
        topics = self._broker.image.topics
        found = []
        for partition in partitions:
            registration = topics.partition(partition.topic, partition.index)
            in_sync = registration is not None and node_id in registration.isr
            if not in_sync and self.is_throttled(partition):
                found.append(partition)
        return found

    def must_wait(self, partition: Partition, follower: int) -> bool:
        """Whether a follower gets no records of a partition that is led here for now."""
        return (
            not self.is_unlimited
            and follower not in partition.state.isr
            and self.is_throttled(partition)
            and self.is_exceeded()
        )


def named_partitions(text: str, node_id: int) -> frozenset[int] | None:
    """`0:1,1:2` names partition 0 on broker 1 and partition 1 on broker 2; `*` every replica."""
    parts = [part.strip() for part in text.split(",")]
    if EVERY_REPLICA in parts:
        return None
    found = []
    for part in parts:
        partition, _, broker = part.partition(":")
        if partition.isdigit() and broker.isdigit() and int(broker) == node_id:
            found.append(int(partition))
    return frozenset(found)
