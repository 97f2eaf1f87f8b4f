"""DeleteRecords: move a partition's log start forward on its leader; what lies before it is gone.

The files follow when retention looks next. One replica holds the data, so the low watermark of all replicas
is where this log starts now; with followers, the answer waits for them."""

from __future__ import annotations

from barnabas.broker.context import RequestContext
from barnabas.broker.needs import delete_topics
from barnabas.broker.partition import Partition
from barnabas.broker.routes import handles
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse

HIGH_WATERMARK = -1
NO_LOW_WATERMARK = -1

Topic = DeleteRecordsResponse.DeleteRecordsTopicResult
Result = Topic.DeleteRecordsPartitionResult


@handles(DeleteRecordsRequest, "0-2", needs=delete_topics("topics.name"))
def delete_records(request: DeleteRecordsRequest, context: RequestContext) -> DeleteRecordsResponse:
    broker = context.broker
    topics: dict[str, dict[int, Result]] = {}
    for topic in request.topics:
        results = topics.setdefault(topic.name, {})
        for asked in topic.partitions:
            index = asked.partition_index
            try:
                partition = broker.partitions.leader(topic.name, index)
                low_watermark = delete_before(partition, asked.offset)
                results[index] = Result(partition_index=index, low_watermark=low_watermark)
            except KafkaError as error:
                results[index] = Result(
                    partition_index=index, low_watermark=NO_LOW_WATERMARK, error_code=error.code
                )
    return DeleteRecordsResponse(
        topics=[
            Topic(name=name, partitions=list(results.values())) for name, results in topics.items() if results
        ]
    )


def delete_before(partition: Partition, offset: int) -> int:
    """Records below `offset` are no more; where the log starts now."""
    if partition.is_internal:
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"records of the internal topic {partition.topic} are kept"
        )
    log = partition.log
    if not log.settings.delete:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION, f"{partition} is compacted: cleanup.policy does not say delete"
        )
    high_watermark = partition.high_watermark
    start = high_watermark if offset == HIGH_WATERMARK else offset
    if not 0 <= start <= high_watermark:
        raise KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"{partition} has records up to offset {high_watermark}, not {start}",
        )
    log.advance_log_start(start)
    return log.log_start_offset
