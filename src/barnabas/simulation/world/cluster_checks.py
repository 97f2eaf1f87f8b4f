"""Invariants of a cluster at every moment, checked on the state of its nodes.

Checks: a partition has one leader in each epoch on all nodes, and so has the quorum; a leader is in the ISR,
and no fenced broker is; committed records of the metadata log and of every partition are the same on all
nodes and never change; the high watermark of a running node never decreases; a node never forgets its epoch
and vote, not even in a crash. Committed batches are read once from each node, when its high watermark has
passed them. Compacted partitions are not compared, since nodes clean them at different times.
Does not know: clients.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from zlib import crc32

from barnabas.protocol import KafkaError
from barnabas.raft import election_state
from barnabas.records.batch import headers
from barnabas.simulation.world.cluster import SimulatedCluster
from barnabas.simulation.world.disk import Stopped
from barnabas.simulation.world.history import Wrong
from barnabas.simulation.world.node import DATA, SimulatedNode

if TYPE_CHECKING:
    from barnabas.broker.partitions.partition import Partition
    from barnabas.metadata.image import MetadataImage
    from barnabas.quorum.metadata_log import MetadataLog

LOOK_S = 0.1
READ_BYTES = 1 << 20
EPOCH_AT, EPOCH_BYTES = 12, 4  # partitionLeaderEpoch in a batch; the checksum does not cover it
METADATA = "__cluster_metadata"
QUORUM_STATE = f"{DATA}/{METADATA}-0/quorum-state"
Key = tuple[Any, ...]


class ClusterChecks:
    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self._leaders: dict[Key, int] = {}  # (topic id, partition, epoch); (quorum, epoch)
        self._committed: dict[Key, dict[int, int]] = {}  # batches of a partition by base offset: their CRC
        self._watermarks: dict[
            Key, tuple[object, int]
        ] = {}  # by node, process, partition: the object and its high watermark
        self._read_to: dict[Key, int] = {}
        self._votes: dict[Key, tuple[int, int]] = {}  # by node and disk: the newest epoch, and the vote in it
        self._images: dict[int, MetadataImage] = {}  # by node: the image that was checked last
        self._durable: dict[int, tuple[bytes, int]] = {}  # by node: `quorum-state` and its epoch

    async def run(self) -> None:
        """Check until the history ends: a task of the harness."""
        while True:
            self.look()
            await asyncio.sleep(LOOK_S)

    def look(self) -> None:
        for node in self._cluster.nodes.values():
            if node.starting is not None and node.process is not None and node.process.is_alive:
                try:
                    self._look_at(node)
                except (Stopped, KafkaError, OSError):
                    continue  # its disk has failed, or it ended during the check

    def _look_at(self, node: SimulatedNode) -> None:
        metadata = node.metadata
        assert metadata is not None or node.node is None
        if metadata is not None:
            self._metadata_of(node, metadata)
        if node.node is None or node.node_id not in self._cluster.shape.brokers:
            return
        broker = node.node.broker
        if self._images.get(node.node_id) is not broker.image:
            self._images[node.node_id] = broker.image
            self._image_of(broker.image)
        for partition in list(broker.partitions):
            self._partition_of(node, partition)

    # -- leaders -----------------------------------------------------------------------------------

    def _image_of(self, image: MetadataImage) -> None:
        fenced = {broker.id for broker in image.cluster.brokers.values() if broker.fenced}
        for topic in image.topics.by_id.values():
            for index, each in topic.partitions.items():
                what = f"{topic.name}-{index}"
                if each.leader >= 0:
                    self._led((topic.id, index, each.leader_epoch), each.leader, what)
                    if each.leader not in each.isr:
                        raise Wrong(f"{each.leader} leads {what} and is not in sync: {each.isr}")
                if len(each.isr) > 1 and fenced & set(each.isr):
                    raise Wrong(f"{what} counts on {fenced & set(each.isr)}, who are fenced: {each.isr}")

    def _led(self, key: Key, leader: int, what: str) -> None:
        known = self._leaders.setdefault(key, leader)
        if known != leader:
            raise Wrong(f"{what} has two leaders in epoch {key[-1]}: {known} and {leader}")

    def _voted(self, node: SimulatedNode, epoch: int, voted_id: int) -> None:
        """Check that a node votes once in an epoch and never forgets its vote."""
        voter = node.node_id, node.wipes
        before, voted_before = self._votes.get(voter, (-1, -1))
        if epoch < before and node.node_id in self._cluster.shape.controllers:
            raise Wrong(f"{node.host} has forgotten epoch {before} of the quorum: it is in {epoch}")
        if epoch == before and voted_before >= 0 and voted_id >= 0 and voted_id != voted_before:
            raise Wrong(f"{node.host} has voted twice in epoch {epoch}: for {voted_before} and {voted_id}")
        self._votes[voter] = epoch, voted_id if epoch > before or voted_id >= 0 else voted_before

    def _durable_epoch(self, node: SimulatedNode) -> int:
        """The epoch of the quorum in the file `quorum-state`, which the node reads after a restart."""
        try:
            content = node.disk.read(QUORUM_STATE)
            known, epoch = self._durable.get(node.node_id, (b"", -1))
            if content != known:
                epoch = election_state.decode(content.decode()).epoch
                self._durable[node.node_id] = content, epoch
            return epoch
        except (FileNotFoundError, election_state.CorruptElectionState):
            return -1

    # -- what is committed -------------------------------------------------------------------------

    def _metadata_of(self, node: SimulatedNode, found: MetadataLog) -> None:
        state = found.election_state
        self._voted(node, state.epoch, state.voted_id)
        durable = self._durable_epoch(node)
        if state.epoch < durable:
            raise Wrong(f"{node.host} is in epoch {state.epoch} of the quorum, and its disk in {durable}")
        if state.leader_id >= 0:
            self._led((METADATA, state.epoch), state.leader_id, "the quorum")
        if found.high_watermark < 0:
            return  # a new leader of the quorum has no high watermark before its first commit
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
        """Check that the high watermark did not decrease. A replica that was removed and added again is
        another object and starts again."""
        place = (node.node_id, node.lives, *key)
        whose, before = self._watermarks.get(place, (of, -1))
        if whose is not of:
            self._read_to.pop(place, None)
        elif watermark < before:
            what = "the metadata" if key == (METADATA,) else of
            raise Wrong(f"the high watermark of {what} on {node.host} went back: {before} to {watermark}")
        self._watermarks[place] = of, watermark
        return watermark

    def _compare(self, key: Key, node: SimulatedNode, start: int, end: int, read: Any, what: str) -> None:
        """Compare the batches committed since the last check with those of other nodes."""
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
        """Whether all replicas of each partition have the same end offset and a high watermark at that
        offset, so that each could lead without hiding records. Without faults this must become true."""
        image = self._cluster.image()
        assert image is not None
        for topic in image.topics.by_id.values():
            for index, each in topic.partitions.items():
                ends = set()
                for replica in each.replicas:
                    node = self._cluster.nodes[replica].node
                    found = node.broker.partitions.get_by_id(topic.id, index) if node is not None else None
                    ends.add(found.log.end_offset if found is not None else -1)
                    if found is not None:
                        ends.add(found.state.high_watermark)
                if len(ends) > 1:
                    return False
        return True


def sum_of(data: bytes, position: int, size: int, *, with_epoch: bool) -> int:
    """A checksum of a batch. Followers keep the leader's epoch in it."""
    batch = data[position : position + size]
    if with_epoch:
        return crc32(batch)
    return crc32(batch[EPOCH_AT + EPOCH_BYTES :], crc32(batch[:EPOCH_AT]))
