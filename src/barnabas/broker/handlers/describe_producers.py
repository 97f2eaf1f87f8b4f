"""DescribeProducers: idempotent producers of a partition, with the last sequence number of each."""

from __future__ import annotations

from collections.abc import Awaitable

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.needs import TOPIC, each
from barnabas.broker.api.routes import handles
from barnabas.controller.topic_names import reason_invalid
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse
from barnabas.runtime.pieces import Steps
from barnabas.security.acls.vocabulary import Operation

Topic = DescribeProducersResponse.TopicResponse
Partition = Topic.PartitionResponse

NEEDS = each(TOPIC, Operation.READ, "topics.name", "topics").if_(
    lambda topic: reason_invalid(topic.name) is None
)


@handles(DescribeProducersRequest, "0-0", needs=NEEDS)
def describe_producers(
    request: DescribeProducersRequest, context: RequestContext
) -> Awaitable[DescribeProducersResponse]:
    return context.broker.pieces.run(describe(request, context))


def describe(request: DescribeProducersRequest, context: RequestContext) -> Steps[DescribeProducersResponse]:
    topics = []
    for topic in request.topics:
        results = []
        for index in topic.partition_indexes:
            try:
                if (reason := reason_invalid(topic.name)) is not None:
                    raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
                partition = context.broker.partitions.leader(topic.name, index)
            except KafkaError as error:
                results.append(
                    Partition(partition_index=index, error_code=error.code, error_message=error.message)
                )
                continue
            active = []
            for producer in list(partition.log.producers):
                state = Partition.ProducerState(
                    producer_id=producer.producer_id,
                    producer_epoch=producer.producer_epoch,
                    last_sequence=producer.last_sequence,
                    last_timestamp=producer.last_timestamp,
                    coordinator_epoch=producer.coordinator_epoch,
                    current_txn_start_offset=producer.txn_first_offset,
                )
                active.append(state)
                yield
            results.append(Partition(partition_index=index, active_producers=active))
        topics.append(Topic(name=topic.name, partitions=results))
    return DescribeProducersResponse(topics=topics)
