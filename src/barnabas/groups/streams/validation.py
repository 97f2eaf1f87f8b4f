"""Validates a StreamsGroupHeartbeat before its group is looked up.

In: a request. Out: nothing, or KafkaError with Apache Kafka's messages. What Apache Kafka 4.3 does not
support yet is refused first: static members, offsets of tasks, warm-up tasks, regular expressions.
Does not know: groups, members.
"""

from __future__ import annotations

from barnabas.groups.streams.member import JOINING_EPOCH, NO_TIMEOUT_MS, STATIC_LEAVING_EPOCH
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest as Request


def check(request: Request) -> None:
    check_supported(request)
    for value, name in (
        (request.member_id, "MemberId"),
        (request.group_id, "GroupId"),
        (request.rack_id, "RackId"),
    ):
        if value is not None and not value.strip():
            refuse(f"{name} can't be empty.")
    if request.member_epoch == JOINING_EPOCH:
        check_joining(request)
    elif request.member_epoch == STATIC_LEAVING_EPOCH:
        refuse("InstanceId can't be null.")
    elif request.member_epoch < STATIC_LEAVING_EPOCH:
        refuse(f"MemberEpoch is {request.member_epoch}, but must be greater than or equal to -2.")
    reported = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    if None in reported and any(tasks is not None for tasks in reported):
        refuse("If one task-type is non-null, all must be non-null.")
    if request.member_epoch != JOINING_EPOCH and request.topology is not None:
        refuse("Topology can only be provided when (re-)joining.")


def check_supported(request: Request) -> None:
    if request.instance_id is not None:
        refuse("Static membership is not yet supported.")
    if request.task_offsets is not None:
        refuse("TaskOffsets are not supported yet.")
    if request.task_end_offsets is not None:
        refuse("TaskEndOffsets are not supported yet.")
    if request.warmup_tasks:
        refuse("WarmupTasks are not supported yet.")
    if request.topology is not None:
        for subtopology in request.topology.subtopologies:
            if subtopology.source_topic_regex:
                refuse("Regular expressions for source topics are not supported yet.")


def check_joining(request: Request) -> None:
    if request.rebalance_timeout_ms == NO_TIMEOUT_MS:
        refuse("RebalanceTimeoutMs must be provided in first request.")
    for tasks, name in (
        (request.active_tasks, "ActiveTasks"),
        (request.standby_tasks, "StandbyTasks"),
        (request.warmup_tasks, "WarmupTasks"),
    ):
        if tasks is None or tasks:
            refuse(f"{name} must be empty when (re-)joining.")
    if request.topology is None:
        refuse("Topology must be non-null when (re-)joining.")
        return
    for subtopology in request.topology.subtopologies:
        for topic in subtopology.state_changelog_topics:
            if topic.partitions:
                raise KafkaError(
                    ErrorCode.STREAMS_INVALID_TOPOLOGY,
                    f"Changelog topic {topic.name} must have an undefined partition count, but it is set to "
                    f"{topic.partitions}.",
                )


def refuse(message: str) -> None:
    raise KafkaError(ErrorCode.INVALID_REQUEST, message)
