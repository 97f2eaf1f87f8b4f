"""WriteTxnMarkers: a transaction coordinator has ends of transactions written to partitions led here.

Brokers ask it of each other, and an administrator who aborts a transaction that nobody else ends. A marker
counts, and is answered, when it is committed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.deferred import Deferred
from barnabas.broker.api.needs import alter_cluster
from barnabas.broker.api.routes import handles
from barnabas.broker.coordinators.offsets_topic import OFFSETS_TOPIC
from barnabas.broker.partitions.commit_waits import CommitCall
from barnabas.broker.partitions.partition import Partition
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from barnabas.transactions.outcome import TransactionEnd

Marker = WriteTxnMarkersRequest.WritableTxnMarker
Result = WriteTxnMarkersResponse.WritableTxnMarkerResult
Topic = Result.WritableTxnMarkerTopicResult
Answer = Topic.WritableTxnMarkerPartitionResult
NOT_READY = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the group coordinator is not ready")


@handles(WriteTxnMarkersRequest, "1-2", needs=alter_cluster())
def write_txn_markers(
    request: WriteTxnMarkersRequest, context: RequestContext
) -> WriteTxnMarkersResponse | Deferred:
    writing = Writing(context)
    for marker in request.markers:
        for topic in marker.topics:
            for index in topic.partition_indexes:
                writing.write(marker, topic.name, index)
    return writing.answer()


class Writing:
    """One request: markers on their way, and the answer when the last of them has arrived.

    Markers of one producer share a result, as in Kafka; so do partitions of one topic.
    """

    __slots__ = (
        "_answers",
        "_calls",
        "_context",
        "_deferred",
        "_missing",
        "_response",
        "_results",
        "_topics",
    )

    def __init__(self, context: RequestContext) -> None:
        self._context = context
        self._response = WriteTxnMarkersResponse()
        self._results: dict[int, Result] = {}
        self._topics: dict[tuple[int, str], Topic] = {}
        self._answers: dict[tuple[int, str, int], Answer] = {}
        self._missing = 0
        self._calls: list[tuple[Partition, CommitCall]] = []
        self._deferred: Deferred | None = None

    def write(self, marker: Marker, topic: str, index: int) -> None:
        answer = self._answer_for(marker.producer_id, topic, index)
        broker = self._context.broker
        found = broker.partitions.get(topic, index)
        if found is None:
            answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
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
            answer.error_code = error.code
            return
        answer.error_code = ErrorCode.NONE
        self._missing += 1
        self._calls.append((found, found.when_committed(offset, partial(self._arrived, answer))))

    def answer(self) -> WriteTxnMarkersResponse | Deferred:
        if not self._missing:
            return self._response
        self._deferred = Deferred(self._forget)
        return self._deferred

    def _forget(self) -> None:
        """The coordinator that asked is gone: nobody waits for its markers here."""
        for partition, call in self._calls:
            if not call.is_ready:
                call.is_ready = True
                self._context.broker.purgatory.left(partition)

    def _arrived(self, answer: Answer, error: KafkaError | None) -> None:
        if error is not None:
            answer.error_code = error.code
        self._missing -= 1
        if not self._missing and self._deferred is not None:
            self._deferred.resolve(self._response)

    def _answer_for(self, producer_id: int, topic: str, index: int) -> Answer:
        """The last marker for the same producer and partition has the last word."""
        known = self._answers.get((producer_id, topic, index))
        if known is not None:
            return known
        result = self._results.get(producer_id)
        if result is None:
            result = self._results[producer_id] = Result(producer_id=producer_id)
            self._response.markers.append(result)
        of_topic = self._topics.get((producer_id, topic))
        if of_topic is None:
            of_topic = self._topics[producer_id, topic] = Topic(name=topic)
            result.topics.append(of_topic)
        answer = self._answers[producer_id, topic, index] = Answer(partition_index=index)
        of_topic.partitions.append(answer)
        return answer


def append_of(context: RequestContext, partition: Partition) -> Callable[[TransactionEnd, int], int]:
    """Who appends a marker: where groups keep their offsets they must hear of it."""
    if partition.topic != OFFSETS_TOPIC:
        return partition.append_marker
    host = context.broker.groups.hosts.get(partition.index)
    if host is None or host.error is not None:
        raise NOT_READY.with_traceback(None)  # else each time adds to what the last left
    return host.append_marker
