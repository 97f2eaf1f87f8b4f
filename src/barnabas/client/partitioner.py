"""Partitions of records: Java's hash for keys, a sticky choice for records without one.

In: key bytes, number of partitions. Out: a partition. Keys land where Kafka's own clients put them, so
producers of both kinds may share a topic. Does not know: batches, the network.
"""

from random import Random

from barnabas.client.core.topology import Topic

SEED = 0x9747B28C
MULTIPLIER = 0x5BD1E995
MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Kafka's variant of MurmurHash2, as an unsigned number of 32 bits."""
    length = len(data)
    h = SEED ^ length
    whole = length & ~3
    for position in range(0, whole, 4):
        k = int.from_bytes(data[position : position + 4], "little") * MULTIPLIER & MASK
        k = (k ^ (k >> 24)) * MULTIPLIER & MASK
        h = (h * MULTIPLIER & MASK) ^ k
    if whole < length:
        h = (h ^ int.from_bytes(data[whole:], "little")) * MULTIPLIER & MASK
    h = (h ^ (h >> 13)) * MULTIPLIER & MASK
    return h ^ (h >> 15)


def partition_for_key(key: bytes, partitions: int) -> int:
    """The partition of a key among `partitions`, equal to that of Kafka's default partitioner."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


class StickyChoice:
    """One partition at a time for records without a key, until `batch_size_bytes` went to it (KIP-794)."""

    def __init__(self, rng: Random, batch_size_bytes: int) -> None:
        self._rng = rng
        self._batch_size_bytes = batch_size_bytes
        self._current: int | None = None
        self._bytes_sent = 0

    def choose(self, available: list[int], size_bytes: int) -> int:
        """The partition for a record of `size_bytes`; `available` are those that have a leader."""
        if self._current not in available or self._bytes_sent >= self._batch_size_bytes:
            others = [each for each in available if each != self._current] or available
            self._current = self._rng.choice(others)
            self._bytes_sent = 0
        assert self._current is not None
        self._bytes_sent += size_bytes
        return self._current


class Partitioner:
    """Chooses a partition for each record of a producer."""

    def __init__(self, rng: Random, batch_size_bytes: int) -> None:
        self._rng = rng
        self._batch_size_bytes = batch_size_bytes
        self._sticky: dict[str, StickyChoice] = {}

    def choose(self, topic: Topic, key: bytes | None, size_bytes: int) -> int:
        if key is not None:
            return partition_for_key(key, topic.partition_count)
        available = [index for index, each in topic.partitions.items() if each.leader >= 0]
        choice = self._sticky.get(topic.name)
        if choice is None:
            choice = self._sticky[topic.name] = StickyChoice(self._rng, self._batch_size_bytes)
        return choice.choose(available or list(topic.partitions), size_bytes)
