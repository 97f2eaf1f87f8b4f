"""All partitions of this broker, by name and by topic id.

In: the metadata image (which partitions exist), `add` and `remove` (which are here), `take_offline` (which
are in a failed log dir). Out: the partition, or the error for a request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.runtime.pieces import Steps

if TYPE_CHECKING:
    from barnabas.broker.partitions.partition import Partition
    from barnabas.metadata.image import MetadataImage


class Partitions:
    __slots__ = ("_image", "_offline", "by_id", "by_name")

    def __init__(self, image: Callable[[], MetadataImage]) -> None:
        self._image = image
        self.by_name: dict[tuple[str, int], Partition] = {}  # others may read it, only this class changes it
        self.by_id: dict[tuple[bytes, int], Partition] = {}
        self._offline: set[tuple[str, int]] = set()

    def __iter__(self) -> Iterator[Partition]:
        return iter(self.by_name.values())

    def __len__(self) -> int:
        return len(self.by_name)

    def in_steps(self, do: Callable[[Partition], None], a_step: int = 32) -> Steps[None]:
        """Call `do` with each partition that is here now, unless it is removed meanwhile."""
        for count, partition in enumerate(list(self.by_name.values()), 1):
            if self.by_name.get((partition.topic, partition.index)) is partition:
                do(partition)
            if not count % a_step:
                yield

    def get(self, topic: str, index: int) -> Partition | None:
        return self.by_name.get((topic, index))

    def get_by_id(self, topic_id: bytes, index: int) -> Partition | None:
        return self.by_id.get((topic_id, index))

    def leader(self, topic: str, index: int) -> Partition:
        """The partition that this broker leads. Raises the error for the request otherwise."""
        found = self.by_name.get((topic, index))
        if found is not None and found.is_leader:
            return found
        if found is None and self._image().topics.partition(topic, index) is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        self._check_online(topic, index)
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def leader_by_id(self, topic_id: bytes, index: int) -> Partition:
        found = self.by_id.get((topic_id, index))
        if found is not None and found.is_leader:
            return found
        topic = self._image().topics.by_id.get(topic_id)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        if index not in topic.partitions:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        self._check_online(topic.name, index)
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def replica(self, topic: str, topic_id: bytes, index: int) -> Partition:
        """The partition that this broker leads or follows (KIP-392)."""
        found = self.by_name.get((topic, index)) if topic else self.by_id.get((topic_id, index))
        if found is not None:
            return found
        return self.leader(topic, index) if topic else self.leader_by_id(topic_id, index)

    def _check_online(self, topic: str, index: int) -> None:
        if (topic, index) in self._offline:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"{topic}-{index} lies in a log dir that is offline"
            )

    def is_offline(self, topic: str, index: int) -> bool:
        return (topic, index) in self._offline

    def take_offline(self, topic: str, index: int) -> None:
        """Remove a partition whose log dir has failed, until the next start."""
        self._offline.add((topic, index))
        found = self.by_name.get((topic, index))
        if found is not None:
            self.remove(found)

    def forget_offline(self, topic: str, index: int) -> None:
        """Forget an offline partition: it was deleted or moved."""
        self._offline.discard((topic, index))

    @property
    def offline_count(self) -> int:
        return len(self._offline)

    def add(self, partition: Partition) -> None:
        self._offline.discard((partition.topic, partition.index))
        self.by_name[partition.topic, partition.index] = partition
        self.by_id[partition.topic_id, partition.index] = partition

    def remove(self, partition: Partition) -> None:
        del self.by_name[partition.topic, partition.index]
        del self.by_id[partition.topic_id, partition.index]
