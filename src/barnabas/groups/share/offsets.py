"""AlterShareGroupOffsets and DeleteShareGroupOffsets: which partitions change, and the response.

In: requests about an existing group without members, metadata. Out: the group's partitions, the request to
share coordinators, the response as far as it is known before they respond.
Does not know: records, waiting requests, authorization.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from barnabas.groups.share.state_partitions import StatePartitions, TopicState
from barnabas.metadata.topics import TopicsImage
from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
from barnabas.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)
from barnabas.protocol.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
)
from barnabas.protocol.messages.initialize_share_group_state import InitializeShareGroupStateResponse

AlteredTopic = AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic
AlteredPartition = AlteredTopic.AlterShareGroupOffsetsResponsePartition
DeletedTopic = DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic
StateData = DeleteShareGroupStateRequest.DeleteStateData

NOT_FOUND = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
NO_TOPIC = "This server does not host this topic-partition."  # Kafka's words: its tool prints them
NO_OFFSETS = "There is no offset information to delete."


@dataclass(slots=True)
class Alteration:
    """New start offsets of existing partitions, and the response without errors of share coordinators."""

    topics: dict[bytes, TopicState] = field(default_factory=dict)
    offsets: dict[bytes, dict[int, int]] = field(default_factory=dict)
    response: AlterShareGroupOffsetsResponse = field(default_factory=AlterShareGroupOffsetsResponse)


def alter(request: AlterShareGroupOffsetsRequest, topics: TopicsImage) -> Alteration:
    found = Alteration()
    for asked in request.topics:
        topic = topics.by_name.get(asked.topic_name)
        result = AlteredTopic(topic_name=asked.topic_name)
        found.response.responses.append(result)
        if topic is not None:
            result.topic_id = topic.id
        for partition in asked.partitions:
            index = partition.partition_index
            if topic is None or index not in topic.partitions:
                result.partitions.append(refused(index, NOT_FOUND))
                continue
            result.partitions.append(AlteredPartition(partition_index=index))
            found.offsets.setdefault(topic.id, {})[index] = partition.start_offset
    for topic_id, offsets in found.offsets.items():
        found.topics[topic_id] = TopicState(topics.by_id[topic_id].name, frozenset(offsets))
    return found


def refused(index: int, code: ErrorCode) -> AlteredPartition:
    return AlteredPartition(partition_index=index, error_code=code, error_message=code.message)


def with_errors(
    response: AlterShareGroupOffsetsResponse, states: InitializeShareGroupStateResponse
) -> AlterShareGroupOffsetsResponse:
    """The response with the errors of share coordinators."""
    errors = {
        (result.topic_id, each.partition): each
        for result in states.results
        for each in result.partitions
        if each.error_code
    }
    for topic in response.responses:
        for partition in topic.partitions:
            error = errors.get((topic.topic_id, partition.partition_index))
            if error is not None and not partition.error_code:
                partition.error_code = error.error_code
                partition.error_message = error.error_message
    return response


@dataclass(slots=True)
class OffsetDeletion:
    """Topics whose state is deleted, and the results of all others."""

    topics: dict[bytes, frozenset[int]] = field(default_factory=dict)
    refused: list[DeletedTopic] = field(default_factory=list)


def delete(
    request: DeleteShareGroupOffsetsRequest, states: StatePartitions, topics: TopicsImage
) -> OffsetDeletion:
    found = OffsetDeletion()
    for asked in request.topics:
        topic = topics.by_name.get(asked.topic_name)
        if topic is None:
            found.refused.append(not_deleted(asked.topic_name, NO_TOPIC))
        elif topic.id in states.initialized and topic.id not in found.topics:
            found.topics[topic.id] = states.initialized[topic.id].partitions
        elif topic.id in states.deleting or topic.id in found.topics:
            found.topics[topic.id] = frozenset(topic.partitions)  # an earlier deletion failed
        else:
            found.refused.append(not_deleted(asked.topic_name, NO_OFFSETS))
    return found


def not_deleted(name: str, message: str) -> DeletedTopic:
    return DeletedTopic(topic_name=name, error_code=NOT_FOUND, error_message=message)


def deleted(
    response: DeleteShareGroupStateResponse, topics: TopicsImage
) -> tuple[list[bytes], list[DeletedTopic]]:
    """The topics whose state is deleted, and the results of all topics in the response."""
    done: list[bytes] = []
    results: list[DeletedTopic] = []
    for each in response.results:
        code = first_error(each)
        topic = topics.by_id.get(each.topic_id)
        result = DeletedTopic(topic_id=each.topic_id, topic_name=topic.name if topic is not None else "")
        if code:
            result.error_code, result.error_message = code, ErrorCode(code).message
        else:
            done.append(each.topic_id)
        results.append(result)
    results.sort(key=lambda result: bool(result.error_code))  # deleted topics come first
    return done, results


def first_error(result: DeleteShareGroupStateResponse.DeleteStateResult) -> int:
    return next((each.error_code for each in result.partitions if each.error_code), 0)


def deletion_request(group_id: str, partitions: dict[bytes, frozenset[int]]) -> DeleteShareGroupStateRequest:
    return DeleteShareGroupStateRequest(
        group_id=group_id,
        topics=[
            StateData(
                topic_id=topic_id,
                partitions=[
                    StateData.PartitionData(partition=number) for number in sorted(partitions[topic_id])
                ],
            )
            for topic_id in sorted(partitions)
        ],
    )
