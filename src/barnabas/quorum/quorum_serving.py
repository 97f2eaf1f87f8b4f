"""Serves the metadata log to other nodes: batches, snapshots, and who leads.

In: Fetch and FetchSnapshot requests of voters, observers and brokers. Out: their responses. A fetch without
news waits until something is appended or committed, or until its wait time passes.
Does not know: elections, connections.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse
from barnabas.protocol.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from barnabas.quorum.metadata_log import MetadataLog
from barnabas.raft.leader_hint import LeaderHint
from barnabas.raft.log_ends import compare
from barnabas.raft.messages import ReplicaKey
from barnabas.raft.quorum_description import METADATA_PARTITION, METADATA_TOPIC
from barnabas.raft.snapshot_ids import SnapshotId

METADATA_TOPIC_ID = (1).to_bytes(16, "big")
READ_BYTES_MAX = 8 << 20
TOPIC_IDS = 13  # the first version of Fetch that names topics by id
NODE_ENDPOINTS = 16

Topic = FetchResponse.FetchableTopicResponse
PartitionData = Topic.PartitionData
SnapshotTopic = FetchSnapshotResponse.TopicSnapshot
SnapshotPart = SnapshotTopic.PartitionSnapshot


class Serving:
    """`on_fetch` is called for every replica that fetches from this leader."""

    def __init__(
        self,
        log: MetadataLog,
        cluster_id: str,
        leading: Callable[[], LeaderHint],
        on_fetch: Callable[[ReplicaKey], None],
    ) -> None:
        self._log = log
        self._on_fetch = on_fetch
        self._cluster_id = cluster_id
        self._leading = leading
        self._snapshot: tuple[SnapshotId, bytes] | None = None  # the one that a node is fetching

    # Fetch

    async def fetch(self, request: FetchRequest, version: int) -> FetchResponse:
        if request.cluster_id is not None and request.cluster_id != self._cluster_id:
            return FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
        asked = _only_partition(request, version)
        if asked is None:
            return FetchResponse(error_code=ErrorCode.INVALID_REQUEST)
        if asked.fetch_offset < 0 or asked.last_fetched_epoch < 0 or asked.current_leader_epoch < 0:
            return self._response(version, ErrorCode.INVALID_REQUEST)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + max(request.max_wait_ms, 0) / 1000
        epoch = self._leading().epoch
        while True:
            response = self._try(request, asked, version)
            if response is not None:
                return response
            left = deadline - loop.time()
            if left <= 0:
                return self._response(version, ErrorCode.NONE)
            await self._log.wait_for_change(int(left * 1000) + 1)
            if self._leading().epoch != epoch:
                return self._response(version, self._refusal(asked.current_leader_epoch))

    def _try(self, request: FetchRequest, asked: Any, version: int) -> FetchResponse | None:
        """The response, or None while there is nothing new."""
        refusal = self._refusal(asked.current_leader_epoch)
        if refusal != ErrorCode.NONE:
            return self._response(version, refusal)
        log = self._log
        offset = asked.fetch_offset
        agreement = compare(
            offset, asked.last_fetched_epoch, log.start_offset, log.snapshot_ids, log.end_of_epoch
        )
        if agreement.diverging is not None:
            epoch, end_offset = agreement.diverging
            data = PartitionData(
                diverging_epoch=PartitionData.EpochEndOffset(epoch=epoch, end_offset=end_offset)
            )
            return self._response(version, ErrorCode.NONE, data)
        if agreement.snapshot is not None:
            end_offset, epoch = agreement.snapshot
            data = PartitionData(snapshot_id=PartitionData.SnapshotId(end_offset=end_offset, epoch=epoch))
            return self._response(version, ErrorCode.NONE, data)
        replica_id = request.replica_state.replica_id if version >= 15 else request.replica_id
        log.replicated(replica_id, asked.replica_directory_id, offset)
        self._on_fetch(ReplicaKey(replica_id, asked.replica_directory_id))
        max_bytes = min(max(request.max_bytes, 1), READ_BYTES_MAX)
        records = log.read(offset, max_bytes) if offset < log.end_offset else b""
        if not records and log.high_watermark <= asked.high_watermark:
            return None
        return self._response(version, ErrorCode.NONE, PartitionData(records=records))

    def _refusal(self, epoch: int) -> ErrorCode:
        leading = self._leading()
        if epoch < leading.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if epoch > leading.epoch:
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        if self._log.leader is None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.NONE

    def _response(self, version: int, error: ErrorCode, data: PartitionData | None = None) -> FetchResponse:
        leading = self._leading()
        partition = data or PartitionData()
        partition.partition_index = METADATA_PARTITION
        partition.error_code = error
        partition.log_start_offset = self._log.start_offset
        partition.high_watermark = self._log.high_watermark
        partition.last_stable_offset = -1
        partition.aborted_transactions = None
        partition.current_leader = PartitionData.LeaderIdAndEpoch(
            leader_id=leading.leader_id, leader_epoch=leading.epoch
        )
        if partition.records is None:
            partition.records = b""
        endpoints = []
        if version >= NODE_ENDPOINTS and leading.host:
            endpoints = [
                FetchResponse.NodeEndpoint(node_id=leading.leader_id, host=leading.host, port=leading.port)
            ]
        topic = Topic(topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition])
        return FetchResponse(responses=[topic], node_endpoints=endpoints)

    # FetchSnapshot

    async def fetch_snapshot(self, request: FetchSnapshotRequest) -> FetchSnapshotResponse:
        if request.cluster_id is not None and request.cluster_id != self._cluster_id:
            return FetchSnapshotResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
        named = [(topic.name, part.partition) for topic in request.topics for part in topic.partitions]
        if named != [(METADATA_TOPIC, METADATA_PARTITION)]:
            return FetchSnapshotResponse(
                topics=[
                    SnapshotTopic(
                        name=topic.name,
                        partitions=[
                            SnapshotPart(
                                index=part.partition,
                                error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                                unaligned_records=b"",
                            )
                            for part in topic.partitions
                        ],
                    )
                    for topic in request.topics
                ]
            )
        asked = request.topics[0].partitions[0]
        part = SnapshotPart(index=METADATA_PARTITION, unaligned_records=b"")
        try:
            await self._fill(asked, part, request.max_bytes)
        except KafkaError as error:
            part.error_code = error.code
        leading = self._leading()
        part.current_leader = SnapshotPart.LeaderIdAndEpoch(
            leader_id=leading.leader_id, leader_epoch=leading.epoch
        )
        endpoints = []
        if leading.host:
            endpoints = [
                FetchSnapshotResponse.NodeEndpoint(
                    node_id=leading.leader_id, host=leading.host, port=leading.port
                )
            ]
        topic = SnapshotTopic(name=METADATA_TOPIC, partitions=[part])
        return FetchSnapshotResponse(topics=[topic], node_endpoints=endpoints)

    async def _fill(self, asked: Any, part: SnapshotPart, max_bytes: int) -> None:
        refusal = self._refusal(asked.current_leader_epoch)
        if refusal != ErrorCode.NONE:
            raise KafkaError(refusal)
        wanted = SnapshotId(asked.snapshot_id.end_offset, asked.snapshot_id.epoch)
        part.snapshot_id = SnapshotPart.SnapshotId(end_offset=wanted.end_offset, epoch=wanted.epoch)
        if self._snapshot is None or self._snapshot[0] != wanted:
            data = await self._log.read_snapshot(wanted)
            if data is None:
                raise KafkaError(ErrorCode.SNAPSHOT_NOT_FOUND)
            self._snapshot = wanted, data
        data = self._snapshot[1]
        if not 0 <= asked.position < len(data):
            raise KafkaError(ErrorCode.POSITION_OUT_OF_RANGE)
        part.size = len(data)
        part.position = asked.position
        part.unaligned_records = data[asked.position : asked.position + min(max_bytes, READ_BYTES_MAX)]
        if asked.position + len(part.unaligned_records) >= len(data):
            self._snapshot = None


def _only_partition(request: FetchRequest, version: int) -> Any:
    """The metadata partition, if the request names it and nothing else."""
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        return None
    topic = request.topics[0]
    named = topic.topic_id == METADATA_TOPIC_ID if version >= TOPIC_IDS else topic.topic == METADATA_TOPIC
    partition = topic.partitions[0]
    return partition if named and partition.partition == METADATA_PARTITION else None
