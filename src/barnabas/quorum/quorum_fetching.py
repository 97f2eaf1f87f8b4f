"""Fetches the metadata log from its leader: batches, snapshots, truncations, the high watermark.

In: the leader's address and epoch. Out: this node's log, made like the leader's and durable before the next
fetch; the error and the leader hint of the response.
Does not know: which node to fetch from, what follows from an error.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse
from barnabas.protocol.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from barnabas.quorum import lanes
from barnabas.quorum.metadata_log import MetadataLog
from barnabas.quorum.peers import Peers
from barnabas.quorum.quorum_serving import METADATA_TOPIC_ID
from barnabas.raft.leader_hint import LeaderHint, hint_from
from barnabas.raft.quorum_description import METADATA_PARTITION, METADATA_TOPIC
from barnabas.raft.snapshot_ids import SnapshotId
from barnabas.settings.broker import BrokerSettings
from barnabas.settings.quorum import Address

WAIT_MS = 500  # how long the leader may hold a fetch without news
SNAPSHOT_BYTES_MAX = 1 << 30
SNAPSHOT_LOST = (ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE)

logger = logging.getLogger(__name__)

FetchPartition = FetchRequest.FetchTopic.FetchPartition
PartitionData = FetchResponse.FetchableTopicResponse.PartitionData


class Fetched(NamedTuple):
    """The result of a fetch. Without an error, the log holds everything that the response carried."""

    error: ErrorCode = ErrorCode.NONE
    hint: LeaderHint = LeaderHint(epoch=-1)
    high_watermark: int = -1


AwaitInRole = Callable[[Awaitable[Any]], Awaitable[Any]]


NoteProgress = Callable[[int], None]


class Fetching:
    """`await_in_role` awaits a response, but not longer than this node follows the leader. `note_progress`
    is told the epoch of a leader of whom a snapshot arrives or is being installed: both take longer than a
    voter waits before it stands for election, and the next attempt would take as long."""

    def __init__(
        self,
        log: MetadataLog,
        cluster_id: str,
        peers: Peers,
        settings: BrokerSettings,
        await_in_role: AwaitInRole,
        note_progress: NoteProgress,
    ) -> None:
        self._await_in_role = await_in_role
        self._note_progress = note_progress
        self._log = log
        self._cluster_id = cluster_id
        self._peers = peers
        self._is_current: Callable[[], bool] = lambda: False
        self._max_bytes: int = settings["controller.quorum.fetch.max.bytes"]
        self._snapshot_max_bytes: int = settings["controller.quorum.fetch.snapshot.max.bytes"]
        self._timeout_ms: int = settings["controller.quorum.request.timeout.ms"]

    async def discover(self, address: Address, epoch: int, timeout_ms: int) -> Fetched:
        """Ask a node who leads. Replicates nothing."""
        request = self._request(epoch, wait_ms=0)
        response = await self._await_in_role(
            self._peers.send_request(address, request, timeout_ms, lane=lanes.METADATA)
        )
        if (
            response.error_code != ErrorCode.NONE
            or not response.responses
            or not response.responses[0].partitions
        ):
            return Fetched(ErrorCode(response.error_code), LeaderHint(epoch=-1))
        partition: PartitionData = response.responses[0].partitions[0]
        leader = partition.current_leader
        hint = hint_from(leader.leader_id, leader.leader_epoch, response.node_endpoints)
        return Fetched(ErrorCode(partition.error_code), hint)

    async def fetch(
        self, address: Address, epoch: int, is_current: Callable[[], bool], timeout_ms: int
    ) -> Fetched:
        """Make one fetch and apply its response, as long as this leader is still the one to follow.
        Raises `PeerUnreachable`, or KafkaError when the disk fails."""
        response = await self._await_in_role(
            self._peers.send_request(address, self._request(epoch), timeout_ms + WAIT_MS, lane=lanes.METADATA)
        )
        if not is_current():
            return Fetched()
        if response.error_code != ErrorCode.NONE:
            return Fetched(ErrorCode(response.error_code))
        if not response.responses or not response.responses[0].partitions:
            return Fetched(ErrorCode.UNKNOWN_SERVER_ERROR)
        partition: PartitionData = response.responses[0].partitions[0]
        leader = partition.current_leader
        hint = hint_from(leader.leader_id, leader.leader_epoch, response.node_endpoints)
        if partition.error_code != ErrorCode.NONE:
            return Fetched(ErrorCode(partition.error_code), hint)
        if hint.epoch > epoch:
            return Fetched(ErrorCode.FENCED_LEADER_EPOCH, hint)
        self._is_current = is_current
        return await self._apply(address, epoch, partition, hint)

    def _request(self, epoch: int, wait_ms: int = WAIT_MS) -> FetchRequest:
        log = self._log
        partition = FetchPartition(
            partition=METADATA_PARTITION,
            current_leader_epoch=epoch,
            fetch_offset=log.end_offset,
            last_fetched_epoch=log.last_epoch,
            log_start_offset=-1,
            partition_max_bytes=0,
            replica_directory_id=log.local.directory_id,
            high_watermark=log.high_watermark,
        )
        return FetchRequest(
            cluster_id=self._cluster_id,
            replica_state=FetchRequest.ReplicaState(replica_id=log.local.id),
            max_wait_ms=wait_ms,
            min_bytes=0,
            max_bytes=self._max_bytes,
            topics=[
                FetchRequest.FetchTopic(
                    topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition]
                )
            ],
        )

    async def _apply(
        self, address: Address, epoch: int, partition: PartitionData, hint: LeaderHint
    ) -> Fetched:
        log = self._log
        diverging, snapshot = partition.diverging_epoch, partition.snapshot_id
        if diverging.end_offset >= 0 or diverging.epoch >= 0:
            self._truncate(diverging.epoch, diverging.end_offset)
            return Fetched(hint=hint)
        if snapshot.end_offset >= 0 and snapshot.epoch >= 0:
            return await self._fetch_snapshot(address, epoch, SnapshotId(snapshot.end_offset, snapshot.epoch))
        records = partition.records
        if records is not None and len(records):
            data = bytes(records)
            decoded = await log.decode(data)
            if not self._is_current():
                return Fetched()
            log.replicate(data, decoded)
            await log.sync()
            if not self._is_current():
                return Fetched()
        await log.advance_in_pieces(partition.high_watermark)
        if not self._is_current():
            return Fetched()
        log.maybe_snapshot()
        return Fetched(hint=hint, high_watermark=partition.high_watermark)

    def _truncate(self, epoch: int, end_offset: int) -> None:
        """Truncate to the last offset where the leader's log and this one may agree."""
        own = self._log.end_of_epoch(epoch)
        offset = min(own.end_offset, end_offset) if own.epoch == epoch else own.end_offset
        self._log.truncate(min(offset, self._log.end_offset))

    async def _fetch_snapshot(self, address: Address, epoch: int, snapshot: SnapshotId) -> Fetched:
        received = bytearray()
        while True:
            request = self._snapshot_request(epoch, snapshot, len(received))
            response: FetchSnapshotResponse = await self._await_in_role(
                self._peers.send_request(address, request, self._timeout_ms, lane=lanes.METADATA)
            )
            if not self._is_current():
                return Fetched()
            if response.error_code != ErrorCode.NONE:
                return Fetched(ErrorCode(response.error_code))
            part = response.topics[0].partitions[0]
            leader = part.current_leader
            hint = hint_from(leader.leader_id, leader.leader_epoch, response.node_endpoints)
            if part.error_code in SNAPSHOT_LOST:
                return Fetched(hint=hint)  # the next fetch names another snapshot
            if part.error_code != ErrorCode.NONE:
                return Fetched(ErrorCode(part.error_code), hint)
            self._note_progress(epoch)
            received += part.unaligned_records or b""
            if part.size > SNAPSHOT_BYTES_MAX:
                raise KafkaError(
                    ErrorCode.UNKNOWN_SERVER_ERROR,
                    f"the leader's snapshot of {part.size} bytes exceeds {SNAPSHOT_BYTES_MAX}",
                )
            if len(received) >= part.size:
                await self._install(epoch, snapshot, bytes(received))
                return Fetched(hint=hint)
            if not part.unaligned_records:
                return Fetched(hint=hint)

    async def _install(self, epoch: int, snapshot: SnapshotId, data: bytes) -> None:
        work = asyncio.ensure_future(self._log.install(snapshot, data, self._is_current))
        try:
            while not (await asyncio.wait([work], timeout=WAIT_MS / 1000))[0]:
                self._note_progress(epoch)
            work.result()
        finally:
            work.cancel()

    def _snapshot_request(self, epoch: int, snapshot: SnapshotId, position: int) -> FetchSnapshotRequest:
        topic = FetchSnapshotRequest.TopicSnapshot
        partition = topic.PartitionSnapshot(
            partition=METADATA_PARTITION,
            current_leader_epoch=epoch,
            snapshot_id=topic.PartitionSnapshot.SnapshotId(
                end_offset=snapshot.end_offset, epoch=snapshot.epoch
            ),
            position=position,
            replica_directory_id=self._log.local.directory_id,
        )
        return FetchSnapshotRequest(
            cluster_id=self._cluster_id,
            replica_id=self._log.local.id,
            max_bytes=self._snapshot_max_bytes,
            topics=[topic(name=METADATA_TOPIC, partitions=[partition])],
        )
