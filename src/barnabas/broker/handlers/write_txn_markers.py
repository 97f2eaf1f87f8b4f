"""WriteTxnMarkers: a transaction coordinator writes markers to partitions that this broker leads.

Brokers send it to each other. Administrators send it to abort a hanging transaction. The response waits until
the markers are committed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.deferred import Deferred, Response
from barnabas.broker.api.large_requests import resolved
from barnabas.broker.api.needs import Instead, alter_cluster
from barnabas.broker.api.routes import handles
from barnabas.broker.coordinators.group_host import GROUPS_NOT_READY
from barnabas.broker.coordinators.offsets_topic import OFFSETS_TOPIC
from barnabas.broker.partitions.partition import Partition
from barnabas.decisions.commit_waits import CommitCall
from barnabas.metadata.steps import Steps, at_once
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from barnabas.transactions.outcome import TransactionEnd

Marker = WriteTxnMarkersRequest.WritableTxnMarker
Result = WriteTxnMarkersResponse.WritableTxnMarkerResult
Topic = Result.WritableTxnMarkerTopicResult
PartitionResult = Topic.WritableTxnMarkerPartitionResult


@handles(WriteTxnMarkersRequest, "1-2", needs=alter_cluster.or_(Instead.CLUSTER_ACTION))
def write_txn_markers(
    request: WriteTxnMarkersRequest, context: RequestContext
) -> WriteTxnMarkersResponse | Deferred | Awaitable[Response | None]:
    writes = MarkerWrites(context)
    if context.owns_frame:
        return write_in_pieces(writes, request, context)
    at_once(writes.write_all(request))
    return writes.response()


async def write_in_pieces(
    writes: MarkerWrites, request: WriteTxnMarkersRequest, context: RequestContext
) -> Response | None:
    """Write the markers of a large request."""
    try:
        await context.broker.pieces.run(writes.write_all(request))
    except asyncio.CancelledError:
        writes.forget()
        raise
    response = writes.response()
    return await resolved(response) if isinstance(response, Deferred) else response


class MarkerWrites:
    """One request: its markers, and the response when the last of them is committed.

    Markers of one producer share a result, as in Kafka; so do partitions of one topic.
    """

    __slots__ = (
        "_calls",
        "_context",
        "_deferred",
        "_missing",
        "_partition_results",
        "_response",
        "_results",
        "_topics",
    )

    def __init__(self, context: RequestContext) -> None:
        self._context = context
        self._response = WriteTxnMarkersResponse()
        self._results: dict[int, Result] = {}
        self._topics: dict[tuple[int, str], Topic] = {}
        self._partition_results: dict[tuple[int, str, int], PartitionResult] = {}
        self._missing = 0
        self._calls: list[tuple[Partition, CommitCall]] = []
        self._deferred: Deferred | None = None

    def write_all(self, request: WriteTxnMarkersRequest) -> Steps[None]:
        for marker in request.markers:
            for topic in marker.topics:
                for index in topic.partition_indexes:
                    self.write(marker, topic.name, index)
                    yield

    def write(self, marker: Marker, topic: str, index: int) -> None:
        result = self._result_for(marker.producer_id, topic, index)
        broker = self._context.broker
        found = broker.partitions.get(topic, index)
        if found is None:
            result.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return
        try:
            end = TransactionEnd(
                marker.producer_id,
                marker.producer_epoch,
                marker.coordinator_epoch,
                marker.transaction_result,
                marker.transaction_version,
            )
            offset = append_of(self._context, found)(end, broker.clock.now_ms())
        except KafkaError as error:
            result.error_code = error.code
            return
        result.error_code = ErrorCode.NONE
        self._missing += 1
        self._calls.append((found, found.when_committed(offset, partial(self._arrived, result))))

    def response(self) -> WriteTxnMarkersResponse | Deferred:
        if not self._missing:
            return self._response
        self._deferred = Deferred(self.forget)
        return self._deferred

    def forget(self) -> None:
        """Stop waiting: the connection of the coordinator was lost."""
        for partition, call in self._calls:
            if not call.is_ready:
                call.is_ready = True
                self._context.broker.purgatory.left(partition)

    def _arrived(self, result: PartitionResult, error: KafkaError | None) -> None:
        if error is not None:
            result.error_code = error.code
        self._missing -= 1
        if not self._missing and self._deferred is not None:
            self._deferred.resolve(self._response)

    def _result_for(self, producer_id: int, topic: str, index: int) -> PartitionResult:
        """The result for a producer and partition; the last marker for both decides it."""
        known = self._partition_results.get((producer_id, topic, index))
        if known is not None:
            return known
        of_producer = self._results.get(producer_id)
        if of_producer is None:
            of_producer = self._results[producer_id] = Result(producer_id=producer_id)
            self._response.markers.append(of_producer)
        of_topic = self._topics.get((producer_id, topic))
        if of_topic is None:
            of_topic = self._topics[producer_id, topic] = Topic(name=topic)
            of_producer.topics.append(of_topic)
        result = self._partition_results[producer_id, topic, index] = PartitionResult(partition_index=index)
        of_topic.partitions.append(result)
        return result


def append_of(context: RequestContext, partition: Partition) -> Callable[[TransactionEnd, int], int]:
    """The function that appends a marker: for `__consumer_offsets` the host of the groups, else the
    partition."""
    if partition.topic != OFFSETS_TOPIC:
        return partition.append_marker
    host = context.broker.groups.hosts.get(partition.index)
    if host is None or host.error is not None:
        raise GROUPS_NOT_READY.copy()
    return host.append_marker
