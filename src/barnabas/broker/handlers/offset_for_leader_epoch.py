"""OffsetForLeaderEpoch: where a leader epoch ended, so that clients and followers find where logs
diverge (KIP-320).
"""

from __future__ import annotations

from collections.abc import Awaitable

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.needs import describe_topics
from barnabas.broker.api.routes import handles
from barnabas.protocol import KafkaError
from barnabas.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from barnabas.runtime.pieces import Steps

Topic = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult
Answer = Topic.EpochEndOffset


@handles(OffsetForLeaderEpochRequest, "2-4", needs=describe_topics("topics.topic"))
def offset_for_leader_epoch(
    request: OffsetForLeaderEpochRequest, context: RequestContext
) -> Awaitable[OffsetForLeaderEpochResponse]:
    return context.broker.pieces.run(answer(request, context))


def answer(
    request: OffsetForLeaderEpochRequest, context: RequestContext
) -> Steps[OffsetForLeaderEpochResponse]:
    """Epochs of a log that nobody asked for yet are read from a file."""
    topics = []
    for topic in request.topics:
        answers = []
        for asked in topic.partitions:
            try:
                partition = context.broker.partitions.leader(topic.topic, asked.partition)
                partition.check_epoch_strictly(asked.current_leader_epoch)
                epoch, end_offset = partition.epoch_end(asked.leader_epoch)
                answers.append(Answer(partition=asked.partition, leader_epoch=epoch, end_offset=end_offset))
            except KafkaError as error:
                answers.append(Answer(partition=asked.partition, error_code=error.code))
            yield
        topics.append(Topic(topic=topic.topic, partitions=answers))
    return OffsetForLeaderEpochResponse(topics=topics)
