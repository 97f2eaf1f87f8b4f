"""What must be true of a cluster at every moment, seen from above: through its nodes' own state.

Checked: a partition has one leader an epoch, whoever is asked; so has the quorum; what a node has committed,
of the metadata and of every partition, is the same on all nodes and for ever; a node's high watermark does
not move back while it lives. Committed batches are read once from each node, when its high watermark has
passed them. Compacted partitions are not compared: nodes clean them at different times.
Does not know: clients, what they were promised.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from zlib import crc32

from barnabas.protocol import KafkaError
from barnabas.records.batch import headers
from barnabas.simulation.cluster import SimulatedCluster
from barnabas.simulation.disk import Stopped
from barnabas.simulation.history import Wrong
from barnabas.simulation.node import SimulatedNode

if TYPE_CHECKING:
    from barnabas.broker.partition import Partition
    from barnabas.metadata.image import MetadataImage

LOOK_S = 0.1
READ_BYTES = 1 << 20
EPOCH_AT, EPOCH_BYTES = 12, 4  # partitionLeaderEpoch in a batch; producers do not seal it
METADATA = "__cluster_metadata"
Key = tuple[Any, ...]


class ClusterChecks:
    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self._leaders: dict[Key, int] = {}  # (topic id, partition, epoch); (quorum, epoch)
        self._committed: dict[Key, dict[int, int]] = {}  # batches of a partition by base offset: their CRC
        self._watermarks: dict[Key, tuple[object, int]] = {}  # by node, its life, partition: of which object
        self._read_to: dict[Key, int] = {}

    async def run(self) -> None:
        """For a task of the harness."""
        while True:
            self.look()
            await asyncio.sleep(LOOK_S)

    def look(self) -> None:
        for node in self._cluster.nodes.values():
            if node.node is not None and node.process is not None and node.process.is_alive:
                try:
                    self._look_at(node)
                except (Stopped, KafkaError, OSError):
                    continue  # its disk is broken, or it ended under our eyes

    def _look_at(self, node: SimulatedNode) -> None:
        assert node.node is not None
        self._metadata_of(node)
        if node.node_id not in self._cluster.shape.brokers:
            return
        broker = node.node.broker
        self._image_of(broker.image)
        for partition in list(broker.partitions):
            self._partition_of(node, partition)

    # -- leaders -----------------------------------------------------------------------------------

    def _image_of(self, image: MetadataImage) -> None:
        for topic in image.topics.by_id.values():
            for index, each in topic.partitions.items():
                if each.leader >= 0:
                    self._led((topic.id, index, each.leader_epoch), each.leader, f"{topic.name}-{index}")

    def _led(self, key: Key, leader: int, what: str) -> None:
        known = self._leaders.setdefault(key, leader)
        if known != leader:
            raise Wrong(f"{what} has two leaders in epoch {key[-1]}: {known} and {leader}")

    # -- what is committed -------------------------------------------------------------------------

    def _metadata_of(self, node: SimulatedNode) -> None:
        found = getattr(node.node, "_metadata_log", None)
        if found is None:
            return
        state = found.election_state
        if state.leader_id is not None and state.leader_id >= 0:
            self._led((METADATA, state.epoch), state.leader_id, "the quorum")
        watermark = self._grown(node, (METADATA,), found, found.high_watermark)
        start = found.start_offset
        self._compare(
            (METADATA,), node, start, watermark, lambda offset: found.read(offset, READ_BYTES), "the metadata"
        )

    def _partition_of(self, node: SimulatedNode, partition: Partition) -> None:
        key = partition.topic_id, partition.index
        if partition.is_leader:
            self._led((*key, partition.leader_epoch), node.node_id, str(partition))
        watermark = self._grown(node, key, partition, partition.state.high_watermark)
        log = partition.log
        if log.settings.compact:
            return
        end = min(watermark, log.written_offset)

        def read(offset: int) -> bytes:
            return log.read(offset, READ_BYTES, log.written_offset).read()

        self._compare(key, node, log.log_start_offset, end, read, str(partition))

    def _grown(self, node: SimulatedNode, key: Key, of: object, watermark: int) -> int:
        """A replica that left its broker and came back begins anew: it is another object then."""
        place = (node.node_id, node.lives, *key)
        whose, before = self._watermarks.get(place, (of, -1))
        if whose is not of:
            self._read_to.pop(place, None)
        elif watermark < before:
            raise Wrong(f"the high watermark of {of} on {node.host} went back: {before} to {watermark}")
        self._watermarks[place] = of, watermark
        return watermark

    def _compare(self, key: Key, node: SimulatedNode, start: int, end: int, read: Any, what: str) -> None:
        """What was committed since the last look, against what others have committed there."""
        place = (node.node_id, node.lives, *key)
        known = self._committed.setdefault(key, {})
        offset = max(self._read_to.get(place, 0), start)
        while offset < end:
            data = read(offset)
            if not data:
                break
            before = offset
            for position, header in headers(data):
                if header.base_offset < offset or header.next_offset > end:
                    continue
                crc = sum_of(data, position, header.size, with_epoch=key == (METADATA,))
                if known.setdefault(header.base_offset, crc) != crc:
                    raise Wrong(
                        f"{what} differs at {header.base_offset}, which is committed: {node.host} has "
                        "another batch than others had"
                    )
                offset = header.next_offset
            if offset == before:
                break
        self._read_to[place] = offset

    # -- at the end --------------------------------------------------------------------------------

    def replicas_are_equal(self) -> bool:
        """Whether every replica ends where the others end, and all of it is committed; when all is quiet it
        must become so."""
        image = self._cluster.image()
        assert image is not None
        for topic in image.topics.by_id.values():
            for index, each in topic.partitions.items():
                ends = set()
                for replica in each.replicas:
                    node = self._cluster.nodes[replica].node
                    found = node.broker.partitions.get_by_id(topic.id, index) if node is not None else None
                    ends.add(found.log.end_offset if found is not None else -1)
                    if found is not None and found.is_leader:
                        ends.add(found.state.high_watermark)
                if len(ends) > 1:
                    return False
        return True


def sum_of(data: bytes, position: int, size: int, *, with_epoch: bool) -> int:
    """A batch as one number. Followers keep the epoch that the leader wrote."""
    batch = data[position : position + size]
    if with_epoch:
        return crc32(batch)
    return crc32(batch[EPOCH_AT + EPOCH_BYTES :], crc32(batch[:EPOCH_AT]))
