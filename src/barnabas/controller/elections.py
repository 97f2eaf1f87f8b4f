"""ElectLeaders and ListPartitionReassignments: elections on request, and reassignments in progress.

In: the request and the image. Out: PartitionChangeRecords that elect the preferred leader, or any replica
where there is no leader; the partitions that are being reassigned.
Does not know: when the controller elects on its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from barnabas.controller.context import Context
from barnabas.controller.decision import Decision, InSteps
from barnabas.controller.leadership import rules_for
from barnabas.controller.partition_change import Election, Wanted, build
from barnabas.metadata.steps import Steps
from barnabas.metadata.topics import TopicImage, TopicsImage
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.log_records.metadata import PartitionChangeRecord
from barnabas.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from barnabas.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

PREFERRED, UNCLEAN = 0, 1
PARTITIONS_A_STEP = 256
TopicResult = ElectLeadersResponse.ReplicaElectionResult
Result = TopicResult.PartitionResult
Moving = ListPartitionReassignmentsResponse.OngoingTopicReassignment


@InSteps
def elect_leaders(context: Context, request: ElectLeadersRequest) -> Steps[Decision[ElectLeadersResponse]]:
    """Decide a request. Without topics it covers every partition, and the response lists only those that
    changed."""
    if request.election_type not in (PREFERRED, UNCLEAN):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}")
    is_for_all = request.topic_partitions is None
    requested: Iterable[tuple[str, Iterable[int]]]
    if request.topic_partitions is None:
        requested = [(topic.name, topic.partitions) for topic in context.image.topics.by_name.values()]
    else:
        requested = [(topic.topic, topic.partitions) for topic in request.topic_partitions]
    records: list[Message] = []
    results = []
    for name, numbers in requested:
        topic_results = []
        for number in numbers:
            yield
            result = Result(partition_id=number, error_message=None)
            try:
                records.append(_elect(context, name, number, request.election_type))
            except KafkaError as error:
                result.error_code, result.error_message = error.code, error.message
            if not (is_for_all and result.error_code == ErrorCode.ELECTION_NOT_NEEDED):
                topic_results.append(result)
        results.append(TopicResult(topic=name, partition_result=topic_results))
    return Decision(ElectLeadersResponse(replica_election_results=results), records)


def refused_elections(request: Any, error: KafkaError) -> ElectLeadersResponse:
    """One error for every partition of the request."""
    results = [
        TopicResult(
            topic=topic.topic,
            partition_result=[
                Result(partition_id=number, error_code=error.code, error_message=error.message)
                for number in topic.partitions
            ],
        )
        for topic in request.topic_partitions or ()
    ]
    return ElectLeadersResponse(error_code=error.code if results else 0, replica_election_results=results)


def _elect(context: Context, name: str, number: int, kind: int) -> PartitionChangeRecord:
    topic = context.image.topics.by_name.get(name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    partition = topic.partitions.get(number)
    if partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{number}")
    has_leader = partition.leader == partition.replicas[0] if kind == PREFERRED else partition.leader >= 0
    if has_leader:
        raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")
    election = Election.PREFERRED if kind == PREFERRED else Election.UNCLEAN
    rules = rules_for(context, topic, context.is_active, uses_topic_setting=False)
    record = build(partition, topic.id, number, Wanted(election=election), rules)
    if record is None:
        if kind == PREFERRED:
            raise KafkaError(
                ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available."
            )
        raise KafkaError(
            ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "Eligible topic partition leaders are not available."
        )
    return record


def list_reassignments(
    topics: TopicsImage, request: ListPartitionReassignmentsRequest
) -> Steps[ListPartitionReassignmentsResponse]:
    wanted: Iterable[tuple[TopicImage | None, Iterable[int]]]
    if request.topics is None:
        wanted = [(topic, topic.partitions) for topic in topics.by_name.values()]
    else:
        wanted = (
            (topics.by_name.get(requested.name), requested.partition_indexes) for requested in request.topics
        )
    found = []
    for topic, numbers in wanted:
        yield
        if topic is None:
            continue
        moving = []
        for count, number in enumerate(numbers, 1):
            partition = topic.partitions.get(number)
            if partition is not None and (partition.adding_replicas or partition.removing_replicas):
                moving.append(
                    Moving.OngoingPartitionReassignment(
                        partition_index=number,
                        replicas=list(partition.replicas),
                        adding_replicas=list(partition.adding_replicas),
                        removing_replicas=list(partition.removing_replicas),
                    )
                )
            if not count % PARTITIONS_A_STEP:
                yield
        if moving:
            found.append(Moving(name=topic.name, partitions=moving))
    return ListPartitionReassignmentsResponse(error_message=None, topics=found)
