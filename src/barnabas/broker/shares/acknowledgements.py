"""Acknowledgements of a request, those of ShareAcknowledge and those that come with a ShareFetch.

In: topics and partitions of a request with ranges of offsets and types. Out: an error or None for each
partition, when all of them are stored. Does not know: responses, sessions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.security.acls.vocabulary import Operation, ResourceType
from barnabas.shares.partition.acknowledging import RENEW, Acknowledgement
from barnabas.shares.sessions.share_sessions import TopicIdPartition

if TYPE_CHECKING:
    from barnabas.broker.api.context import RequestContext

Results = dict[TopicIdPartition, KafkaError | None]
RENEW_SINCE = 2
TYPE_MAX, TYPE_MAX_BEFORE = 4, 3


class BareError(KafkaError):
    """An error that responses show without a message, as Kafka does for what it finds before it looks at
    records."""


class Acknowledging:
    """The acknowledgements of one request under way."""

    __slots__ = ("_context", "_done", "_left", "_member", "results")

    def __init__(self, context: RequestContext, member: str) -> None:
        self._context = context
        self._member = member
        self._left = 0
        self._done: Callable[[], None] | None = None
        self.results: Results = {}

    @property
    def is_done(self) -> bool:
        return not self._left

    def when_done(self, call: Callable[[], None]) -> None:
        """Call when all results are there, which is not now."""
        self._done = call

    def begin(self, group: str, topics: Iterable[Any], *, is_renewal: bool) -> None:
        """Acknowledge everything that a request names."""
        shares = self._context.broker.shares
        empty: list[TopicIdPartition] = []
        interested: list[tuple[TopicIdPartition, list[Acknowledgement]]] = []
        names: dict[str, None] = {}
        for topic in topics:
            for asked in topic.partitions:
                topic_id_partition = TopicIdPartition(topic.topic_id, asked.partition_index)
                try:
                    name = self._check(topic_id_partition, asked.acknowledgement_batches, is_renewal)
                except KafkaError as error:
                    self.results[topic_id_partition] = error
                    continue
                if asked.acknowledgement_batches:
                    names[name] = None
                    batches = [
                        Acknowledgement(each.first_offset, each.last_offset, each.acknowledge_types)
                        for each in asked.acknowledgement_batches
                    ]
                    interested.append((topic_id_partition, batches))
                else:
                    empty.append(topic_id_partition)
        if not interested:
            return
        for name in names:
            self._context.broker.metrics.topic(name).share_acknowledgement_requests += 1
        for topic_id_partition in empty:
            self.results[topic_id_partition] = None
        self._left += 1  # until all have begun
        for topic_id_partition, batches in interested:
            share = shares.get(group, topic_id_partition)
            if share is None:
                self.results[topic_id_partition] = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                continue
            self._left += 1
            share.acknowledge(self._member, batches, self._ending(topic_id_partition, batches))
        self._left -= 1

    def _ending(
        self, topic_id_partition: TopicIdPartition, batches: list[Acknowledgement]
    ) -> Callable[[KafkaError | None], None]:
        def ended(error: KafkaError | None) -> None:
            metrics = self._context.broker.shares.metrics
            self.results[topic_id_partition] = error
            if error is None:
                count(metrics.acknowledged, batches)
            else:
                topic = self._context.broker.image.topics.by_id.get(topic_id_partition.topic_id)
                if topic is not None:
                    counts = self._context.broker.metrics.topic(topic.name)
                    counts.failed_share_acknowledgement_requests += 1
            self._left -= 1
            if not self._left and self._done is not None:
                self._done()

        return ended

    def _check(self, topic_id_partition: TopicIdPartition, batches: Iterable[Any], is_renewal: bool) -> str:
        """Raise the error of a partition whose acknowledgements make no sense. Returns the topic's name."""
        context = self._context
        topic = context.broker.image.topics.by_id.get(topic_id_partition.topic_id)
        if topic is None:
            raise BareError(ErrorCode.UNKNOWN_TOPIC_ID)
        type_max = TYPE_MAX if context.version >= RENEW_SINCE else TYPE_MAX_BEFORE
        previous_last = -1
        for batch in batches:
            types = batch.acknowledge_types
            if (
                batch.first_offset > batch.last_offset
                or batch.first_offset < previous_last
                or not types
                or (len(types) > 1 and batch.last_offset - batch.first_offset != len(types) - 1)
                or min(types) < 0
                or max(types) > type_max
                or (RENEW in types and not is_renewal)
            ):
                raise BareError(ErrorCode.INVALID_REQUEST)
            previous_last = batch.last_offset
        if not context.may(Operation.READ, ResourceType.TOPIC, topic.name):
            raise BareError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if topic_id_partition.partition not in topic.partitions:
            raise BareError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return topic.name


def count(totals: list[int], batches: Iterable[Acknowledgement]) -> None:
    """Count acknowledged records by their types."""
    for batch in batches:
        if len(batch.types) == 1:
            totals[batch.types[0]] += batch.last - batch.first + 1
        else:
            for kind in batch.types:
                totals[kind] += 1


def message_of(error: KafkaError) -> str | None:
    return None if isinstance(error, BareError) else error.message
