"""OffsetForLeaderEpoch: the end offset of a leader epoch, with which clients and followers find where logs
diverge (KIP-320).
"""

from __future__ import annotations

from collections.abc import Awaitable

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.needs import TOPIC, Instead, each
from barnabas.broker.api.routes import handles
from barnabas.protocol import KafkaError
from barnabas.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from barnabas.runtime.pieces import Steps
from barnabas.security.acls.vocabulary import Operation

Topic = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult
EpochEnd = Topic.EpochEndOffset


NEEDS = each(TOPIC, Operation.DESCRIBE, "topics.topic", "topics").or_(Instead.CLUSTER_ACTION)


@handles(OffsetForLeaderEpochRequest, "2-4", needs=NEEDS)
def offset_for_leader_epoch(
    request: OffsetForLeaderEpochRequest, context: RequestContext
) -> Awaitable[OffsetForLeaderEpochResponse]:
    return context.broker.pieces.run(build_response(request, context))


def build_response(
    request: OffsetForLeaderEpochRequest, context: RequestContext
) -> Steps[OffsetForLeaderEpochResponse]:
    """Build the response in steps: the first look at the epochs of a log reads a file."""
    topics = []
    for topic in request.topics:
        results = []
        for asked in topic.partitions:
            try:
                partition = context.broker.partitions.leader(topic.topic, asked.partition)
                partition.check_epoch_strictly(asked.current_leader_epoch)
                epoch, end_offset = partition.epoch_end(asked.leader_epoch)
                results.append(EpochEnd(partition=asked.partition, leader_epoch=epoch, end_offset=end_offset))
            except KafkaError as error:
                results.append(EpochEnd(partition=asked.partition, error_code=error.code))
            yield
        topics.append(Topic(topic=topic.topic, partitions=results))
    return OffsetForLeaderEpochResponse(topics=topics)
