"""Error responses of the group coordinator: one error for everything in a request.

In: a request that was not handled (`refusal`), or a response whose records could not be written
(`turn_into_error`). Out: the response with errors where its API has them.
Does not know: causes. Errors of single members, partitions or groups come from the shard.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.apis import response_class
from barnabas.protocol.messages.alter_share_group_offsets import AlterShareGroupOffsetsResponse
from barnabas.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from barnabas.protocol.messages.delete_share_group_offsets import DeleteShareGroupOffsetsResponse
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from barnabas.protocol.messages.offset_delete import OffsetDeleteResponse
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from barnabas.protocol.messages.share_group_describe import (
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from barnabas.protocol.messages.streams_group_describe import (
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from barnabas.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from barnabas.protocol.messages.sync_group import SyncGroupResponse
from barnabas.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

INVALID_OFFSET = -1
BATCHED_FETCH_SINCE = 8
GROUP_ERRORS_SINCE = 2  # an OffsetFetch response before that has errors of partitions only
# Consumers before 3.9 do not expect COORDINATOR_NOT_AVAILABLE from OffsetFetch and would not retry.
FETCH_CODES = {ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.NOT_COORDINATOR}


def refusal(request: Message, error: KafkaError, version: int) -> Message:
    """The error response to a request that is not handled at all."""
    build = REFUSALS.get(type(request))
    if build is not None:
        return build(request, error, version)
    return with_error(request, error)


def with_error(request: Message, error: KafkaError) -> Message:
    """Most APIs have one error code for the whole response, and some a message."""
    key = request.schema.key
    assert key is not None
    response: Any = response_class(key)()
    response.error_code = error.code
    if hasattr(response, "error_message"):
        response.error_message = error.message or None
    assert isinstance(response, Message)
    return response


def join_group(request: JoinGroupRequest, error: KafkaError, version: int) -> JoinGroupResponse:
    return JoinGroupResponse(
        error_code=error.code, member_id=request.member_id, protocol_name=no_name(version)
    )


def no_name(version: int) -> str | None:
    """The name when no protocol was chosen: null, in versions that allow it."""
    return None if version >= 7 else ""


def heartbeat(request: HeartbeatRequest, error: KafkaError, version: int) -> HeartbeatResponse:
    # While a group is loading its members count as alive, so that they do not rejoin.
    loading = error.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return HeartbeatResponse(error_code=ErrorCode.NONE if loading else error.code)


def offset_commit(request: OffsetCommitRequest, error: KafkaError, version: int) -> OffsetCommitResponse:
    topic_type = OffsetCommitResponse.OffsetCommitResponseTopic
    return OffsetCommitResponse(
        topics=[
            topic_type(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    topic_type.OffsetCommitResponsePartition(
                        partition_index=partition.partition_index, error_code=error.code
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def txn_offset_commit(
    request: TxnOffsetCommitRequest, error: KafkaError, version: int
) -> TxnOffsetCommitResponse:
    topic_type = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
    return TxnOffsetCommitResponse(
        topics=[
            topic_type(
                name=topic.name,
                partitions=[
                    topic_type.TxnOffsetCommitResponsePartition(
                        partition_index=partition.partition_index, error_code=error.code
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def offset_fetch(request: OffsetFetchRequest, error: KafkaError, version: int) -> OffsetFetchResponse:
    code = FETCH_CODES.get(error.code, error.code)
    if version >= BATCHED_FETCH_SINCE:
        return OffsetFetchResponse(
            groups=[
                OffsetFetchResponse.OffsetFetchResponseGroup(group_id=group.group_id, error_code=code)
                for group in request.groups
            ]
        )
    if version >= GROUP_ERRORS_SINCE:
        return OffsetFetchResponse(error_code=code)
    topic_type = OffsetFetchResponse.OffsetFetchResponseTopic
    return OffsetFetchResponse(
        topics=[
            topic_type(
                name=topic.name,
                partitions=[
                    topic_type.OffsetFetchResponsePartition(
                        partition_index=index, committed_offset=INVALID_OFFSET, error_code=code
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.topics or ()
        ]
    )


def describe_groups(
    request: DescribeGroupsRequest, error: KafkaError, version: int
) -> DescribeGroupsResponse:
    group_type = DescribeGroupsResponse.DescribedGroup
    message = error.message or None if version >= 6 else None
    return DescribeGroupsResponse(
        groups=[
            group_type(group_id=group, error_code=error.code, error_message=message)
            for group in request.groups
        ]
    )


def delete_groups(request: DeleteGroupsRequest, error: KafkaError, version: int) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(
        results=[
            DeleteGroupsResponse.DeletableGroupResult(group_id=group, error_code=error.code)
            for group in request.groups_names
        ]
    )


def consumer_group_describe(
    request: ConsumerGroupDescribeRequest, error: KafkaError, version: int
) -> ConsumerGroupDescribeResponse:
    return ConsumerGroupDescribeResponse(
        groups=[
            ConsumerGroupDescribeResponse.DescribedGroup(
                group_id=group, error_code=error.code, error_message=error.message or None
            )
            for group in request.group_ids
        ]
    )


def share_group_describe(
    request: ShareGroupDescribeRequest, error: KafkaError, version: int
) -> ShareGroupDescribeResponse:
    return ShareGroupDescribeResponse(
        groups=[
            ShareGroupDescribeResponse.DescribedGroup(
                group_id=group, error_code=error.code, error_message=error.message or None
            )
            for group in request.group_ids
        ]
    )


def streams_group_heartbeat(
    request: StreamsGroupHeartbeatRequest, error: KafkaError, version: int
) -> StreamsGroupHeartbeatResponse:
    return StreamsGroupHeartbeatResponse(error_code=error.code)  # Kafka has no message here


def streams_group_describe(
    request: StreamsGroupDescribeRequest, error: KafkaError, version: int
) -> StreamsGroupDescribeResponse:
    return StreamsGroupDescribeResponse(
        groups=[
            StreamsGroupDescribeResponse.DescribedGroup(group_id=group, error_code=error.code)
            for group in request.group_ids
        ]
    )


REFUSALS: dict[type[Message], Callable[[Any, KafkaError, int], Message]] = {
    JoinGroupRequest: join_group,
    HeartbeatRequest: heartbeat,
    OffsetCommitRequest: offset_commit,
    TxnOffsetCommitRequest: txn_offset_commit,
    OffsetFetchRequest: offset_fetch,
    DescribeGroupsRequest: describe_groups,
    DeleteGroupsRequest: delete_groups,
    ConsumerGroupDescribeRequest: consumer_group_describe,
    ShareGroupDescribeRequest: share_group_describe,
    StreamsGroupHeartbeatRequest: streams_group_heartbeat,
    StreamsGroupDescribeRequest: streams_group_describe,
}


DESCRIPTIONS = (
    DescribeGroupsResponse,
    ConsumerGroupDescribeResponse,
    ShareGroupDescribeResponse,
    StreamsGroupDescribeResponse,
)


def turn_into_error(response: Any, error: KafkaError) -> None:
    """Turn a response that was ready into an error response: its records are lost."""
    code = error.code
    if isinstance(response, OffsetCommitResponse | TxnOffsetCommitResponse):
        for topic in response.topics:
            for partition in topic.partitions:
                partition.error_code = partition.error_code or code
    elif isinstance(response, OffsetFetchResponse):
        response.error_code = response.error_code or FETCH_CODES.get(code, code)
        for fetched in response.topics:
            for offset in fetched.partitions:
                offset.committed_offset, offset.error_code = INVALID_OFFSET, response.error_code
        for group in response.groups:
            group.topics, group.error_code = [], FETCH_CODES.get(code, code)
    elif isinstance(response, DESCRIPTIONS):
        for described in response.groups:
            described.error_code, described.members = code, []
    elif isinstance(response, DeleteGroupsResponse):
        for result in response.results:
            result.error_code = result.error_code or code
    else:
        response.error_code = response.error_code or code
        if isinstance(response, JoinGroupResponse):
            response.members, response.leader, response.generation_id = [], "", -1
        elif isinstance(response, SyncGroupResponse):
            response.assignment = b""
        elif isinstance(response, OffsetDeleteResponse):
            response.topics = []
        elif isinstance(response, AlterShareGroupOffsetsResponse | DeleteShareGroupOffsetsResponse):
            response.error_message, response.responses = code.message, []
