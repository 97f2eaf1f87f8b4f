"""A consumer's fetch: committed batches of partitions that this broker leads, or follows (KIP-392).

In: a request, within its session or alone. Out: slices of log files; the current leader if it is another
broker; a closer replica; an empty response if the client's quota is exceeded.
Does not know: how replicas follow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.fetch.fetching import ColdRead, Fetching, Results
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
    from barnabas.broker.api.context import RequestContext
    from barnabas.broker.partitions.partition import Partition
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
            self._max_bytes = min(self._max_bytes, limit.bytes_max)

    def cold(self) -> list[ColdRead]:
        found: list[ColdRead] = []
        is_committed = self._request.isolation_level == READ_COMMITTED
        room = self._max_bytes
        for asked in self._session.to_read():
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
        return found

    def find(self, asked: SessionPartition) -> Partition:
        """The partition. The session remembers it: a consumer fetches the same ones again and again."""
        found: Partition | None = asked.attachment
        if found is None or not found.is_leader:
            asked.attachment = None
            partitions = self._broker.partitions
            if self._reads_followers:
                found = partitions.replica(asked.topic, asked.topic_id, asked.index)
            elif asked.topic:
                found = partitions.leader(asked.topic, asked.index)
            else:
                found = partitions.leader_by_id(asked.topic_id, asked.index)
            asked.attachment = found
        return found

    def response_if_ready(self, *, final: bool = False) -> FetchResponse | None:
        request = self._request
        results: Results = []
        total = 0
        is_urgent = final or request.max_wait_ms <= 0
        can_wait = False
        for asked in self._session.to_read():
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
                        min(asked.request.partition_max_bytes, self._max_bytes - total),
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
        if can_wait and not is_urgent and total < request.min_bytes:
            return None
        return self.respond(results)

    def closest(self, partition: Partition) -> int | None:
        """The closer replica that the consumer should read from instead; None if there is none."""
        if not partition.is_leader or partition.state.has_no_followers or self._broker.select_replica is None:
            return None
        found = self._broker.select_replica(partition, self._request.rack_id, self._listener)
        return found if found != self._broker.node_id else None

    def count(self, partition: Partition, size: int) -> None:
        partition.metrics.bytes_out += size
        partition.metrics.fetch_requests += 1

    def respond(self, results: Results) -> FetchResponse:
        if self._limit is not None and not self._session.superseded:
            wait_ms = self._limit.wait_ms(response_size(results))
            if wait_ms:
                self._channel.mute(wait_ms)
                return FetchResponse(throttle_time_ms=wait_ms, session_id=self._session.session_id)
        response = super().respond(results)
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
                for node in self._broker.nodes(self._listener)
                if node.id in leaders
            ]

    def watch(self) -> None:
        self._waiting_at = [asked.attachment for asked in self._session.partitions if asked.attachment]
        for partition in self._waiting_at:
            partition.wait(self.more)

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


def response_size(results: Results) -> int:
    """About what an answer takes: what surrounds the records is small beside them."""
    return HEADER_BYTES + sum(len(data.records or b"") + PARTITION_BYTES for _, data in results)
