"""A consumer's fetch: committed batches of partitions that this broker leads, or follows (KIP-392).

In: a request, within its session or alone. Out: slices of log files; the current leader if it is another
broker; a closer replica; an empty response if the client's quota is exceeded.
Does not know: how replicas follow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.fetch.fetching import ColdRead, Fetching, Reading, Topics
from barnabas.broker.fetch.partition_data import (
    EMPTY,
    NOT_KNOWN,
    READ_COMMITTED,
    PartitionData,
    nothing_now,
    read_partition,
)
from barnabas.protocol import KafkaError
from barnabas.protocol.messages.fetch import FetchResponse
from barnabas.runtime.shortage import Shortage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from barnabas.broker.api.context import RequestContext
    from barnabas.broker.partitions.partition import Partition, Waiter
    from barnabas.broker.quotas.client_quotas import FetchLimit
    from barnabas.broker.wire.channel import Channel
    from barnabas.protocol.messages.fetch import FetchRequest
    from barnabas.replication.fetch_sessions import FetchContext, SessionPartition

CLOSEST_SINCE = 11
HEADER_BYTES, PARTITION_BYTES = 30, 60


class ConsumerFetch(Fetching):
    __slots__ = (
        "_channel", "_limit", "_listener", "_names_leaders", "_reads_followers", "_waiting_at",
    )  # fmt: skip

    def __init__(self, request: FetchRequest, session: FetchContext, context: RequestContext) -> None:
        super().__init__(request, session, context)
        self._listener = context.listener
        self._names_leaders = False
        self._waiting_at: list[Partition] = []
        self._reads_followers = context.version >= CLOSEST_SINCE
        self._limit: FetchLimit | None = None

    def limit(self, limit: FetchLimit | None, channel: Channel) -> None:
        """Apply the client's quota: responses are smaller, and empty while the client is throttled."""
        self._limit, self._channel = limit, channel
        if limit is not None:
            self.bytes_max = min(self.bytes_max, limit.bytes_max)

    def find_cold(self, to_read: Iterable[SessionPartition], room: int, found: list[ColdRead]) -> int:
        is_committed = self.request.isolation_level == READ_COMMITTED
        for asked in to_read:
            partition: Partition | None = asked.attachment
            if partition is None:
                try:
                    partition = self.find(asked)
                except KafkaError:
                    continue
            offset, log = asked.request.fetch_offset, partition.log
            upper = partition.high_watermark
            if log.log_start_offset <= offset < upper and room > 0:
                size = min(asked.request.partition_max_bytes, room)
                room -= size
                can_read_without_disk = log.can_read_without_disk(offset, size)
                has_loaded_aborted = not is_committed or log.has_loaded_aborted(offset)
                if not can_read_without_disk or not has_loaded_aborted:
                    found.append(
                        ColdRead(log, offset, size, upper, not has_loaded_aborted, not can_read_without_disk)
                    )
        return room

    def find(self, asked: SessionPartition) -> Partition:
        """The partition. The session remembers it: a consumer fetches the same ones again and again."""
        found: Partition | None = asked.attachment
        if found is None or not found.is_leader:
            asked.attachment = None
            partitions = self.broker.partitions
            if self._reads_followers:
                found = partitions.replica(asked.topic, asked.topic_id, asked.index)
            elif asked.topic:
                found = partitions.leader(asked.topic, asked.index)
            else:
                found = partitions.leader_by_id(asked.topic_id, asked.index)
            asked.attachment = found
        return found

    def read(self, to_read: Iterable[SessionPartition], reading: Reading) -> None:
        request = self.request
        results, total = reading.results, reading.bytes_total
        is_urgent, can_wait = reading.is_urgent, reading.can_wait
        for asked in to_read:
            try:
                partition = self.find(asked)
                closest = self.closest(partition) if self._reads_followers and request.rack_id else None
                if closest is not None:
                    data = elsewhere(partition, closest)
                    is_urgent = True
                else:
                    data = read_partition(
                        partition,
                        asked.request,
                        min(asked.request.partition_max_bytes, self.bytes_max - total),
                        request.isolation_level,
                        at_least_one=not total,
                    )
                total += len(data.records or b"")
                is_urgent = is_urgent or data.diverging_epoch.epoch >= 0
                can_wait = True
            except Shortage:  # of descriptors: too many files are open at this moment
                data = nothing_now(partition)
                can_wait = True
            except KafkaError as error:
                data = self.refuse(asked, error)
                self._names_leaders = self._names_leaders or data.current_leader.leader_id >= 0
                is_urgent = is_urgent or error.code not in NOT_KNOWN
            results.append((asked, data))
        reading.bytes_total, reading.is_urgent, reading.can_wait = total, is_urgent, can_wait

    def closest(self, partition: Partition) -> int | None:
        """The closer replica that the consumer should read from instead; None if there is none."""
        if not partition.is_leader or partition.state.has_no_followers or self.broker.select_replica is None:
            return None
        found = self.broker.select_replica(partition, self.request.rack_id, self._listener)
        return found if found != self.broker.node_id else None

    def count(self, partition: Partition, size: int) -> None:
        partition.metrics.bytes_out += size
        partition.metrics.fetch_requests += 1

    def refusal(self, reading: Reading) -> FetchResponse | None:
        if self.session.superseded:
            return self.superseded()
        if self._limit is not None:
            wait_ms = self._limit.wait_ms(response_size(reading))
            if wait_ms:
                self._channel.mute(wait_ms)
                return FetchResponse(throttle_time_ms=wait_ms, session_id=self.session.session_id)
        return None

    def response_of(self, topics: Topics) -> FetchResponse:
        response = FetchResponse(session_id=self.session.session_id, responses=list(topics.values()))
        if self._names_leaders:
            self.add_endpoints(response)
        return response

    def add_endpoints(self, response: FetchResponse) -> None:
        """Add the addresses of the current leaders that the response names (KIP-951)."""
        leaders = {
            data.current_leader.leader_id
            for topic in response.responses
            for data in topic.partitions
            if data.error_code and data.current_leader.leader_id >= 0
        }
        if leaders:
            response.node_endpoints = [
                FetchResponse.NodeEndpoint(node_id=node.id, host=node.host, port=node.port, rack=node.rack)
                for node in self.broker.nodes(self._listener)
                if node.id in leaders
            ]

    def watch(self) -> None:
        self._waiting_at = [asked.attachment for asked in self.session.partitions if asked.attachment]
        for partition in self._waiting_at:
            partition.wait(self.more)

    def watch_some(self, read: Iterable[SessionPartition], more: Waiter) -> None:
        for asked in read:
            partition: Partition | None = asked.attachment
            if partition is not None:
                partition.wait(more)
                self._waiting_at.append(partition)

    def pop_watched(self) -> list[Partition]:
        watched, self._waiting_at = self._waiting_at, []
        return watched

    def unwatch(self) -> None:
        for partition in self._waiting_at:
            partition.leave(self.more)


def elsewhere(partition: Partition, replica_id: int) -> PartitionData:
    """No records, but the closer replica to read from."""
    return PartitionData(
        partition_index=partition.index,
        high_watermark=partition.high_watermark,
        last_stable_offset=partition.last_stable_offset,
        log_start_offset=partition.log.log_start_offset,
        aborted_transactions=None,
        preferred_read_replica=replica_id,
        records=EMPTY,
    )


def response_size(reading: Reading) -> int:
    """An estimate of the size of a response: what surrounds the records is small beside them."""
    return HEADER_BYTES + reading.bytes_total + len(reading.results) * PARTITION_BYTES
