"""StreamsGroupHeartbeat: a member of a streams group joins, stays alive, or leaves (KIP-1071).

The broker creates internal topics that the topology lacks, if the member may create them. The response tells
that they are missing, until a later heartbeat finds them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from barnabas.broker.access.mapping import change_response
from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.needs import CLUSTER, TOPIC, Instead, read_group, topics
from barnabas.broker.api.routes import handles
from barnabas.broker.quorum.topology import INTERNAL_TOPICS
from barnabas.metadata.versions import STREAMS_VERSION
from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from barnabas.security.acls.vocabulary import CLUSTER_NAME, Operation

if TYPE_CHECKING:
    from barnabas.groups.streams.configuring import InternalTopic

PROTOCOL = "streams"  # in `group.coordinator.rebalance.protocols`
MISSING_INTERNAL_TOPICS = 3  # the status
TOPICS_MAX = 10_000  # of a topology
ERRORS_SHOWN_MAX = 3
RETRY_INTERVALS = 2  # heartbeats after which a topic that could not be created is tried again

NEEDS = (
    read_group,
    topics(Operation.DESCRIBE).asked_by_handler(),  # of every topic of the topology
    topics(Operation.CREATE).or_(Instead.CLUSTER_CREATE).left_out(),  # of internal topics that are missing
)


def is_enabled(context: RequestContext) -> bool:
    """Whether streams groups are switched on, by the feature and the protocols of this broker."""
    broker = context.broker
    protocols = broker.settings["group.coordinator.rebalance.protocols"]
    return PROTOCOL in protocols and bool(broker.image.features.level(STREAMS_VERSION))


@handles(StreamsGroupHeartbeatRequest, "0-0", needs=NEEDS)
def streams_group_heartbeat(request: StreamsGroupHeartbeatRequest, context: RequestContext) -> Any:
    if not is_enabled(context):
        return StreamsGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    if request.topology is not None:
        refusal = topic_refusal(request.topology, context)
        if refusal is not None:
            return refusal
    groups, group_id = context.broker.groups, request.group_id

    def create_topics(response: StreamsGroupHeartbeatResponse) -> None:
        host = None if response.error_code else groups.host_of(group_id)
        if host is not None and host.error is None:
            missing = host.shard.streams.missing_topics(group_id)
            if missing and has_status(response):
                create_missing(missing, response, context)

    result = groups.handle(group_id, request, context)
    return change_response(result, request.schema.key or 0, context, create_topics)


def topic_refusal(
    topology: StreamsGroupHeartbeatRequest.Topology, context: RequestContext
) -> StreamsGroupHeartbeatResponse | None:
    """The error for topics that no topology may have, or that the member may not see."""
    from barnabas.controller.topic_names import reason_invalid

    names = dict.fromkeys(
        name
        for subtopology in topology.subtopologies
        for name in (
            *subtopology.source_topics,
            *subtopology.repartition_sink_topics,
            *(topic.name for topic in subtopology.repartition_source_topics),
            *(topic.name for topic in subtopology.state_changelog_topics),
        )
    )
    invalid_topology = ErrorCode.STREAMS_INVALID_TOPOLOGY
    if len(names) > TOPICS_MAX:
        message = f"The topology has {len(names)} topics. A topology may have {TOPICS_MAX}."
        return StreamsGroupHeartbeatResponse(error_code=invalid_topology, error_message=message)
    prohibited = [name for name in names if name in INTERNAL_TOPICS]
    if prohibited:
        message = (
            f"Use of Kafka internal topics {','.join(prohibited)} in a Kafka Streams topology is prohibited."
        )
        return StreamsGroupHeartbeatResponse(error_code=invalid_topology, error_message=message)
    invalid = [name for name in names if reason_invalid(name) is not None]
    if invalid:
        message = f"Topic names {','.join(invalid)} are not valid topic names."
        return StreamsGroupHeartbeatResponse(error_code=invalid_topology, error_message=message)
    refused = [name for name in names if not context.may(Operation.DESCRIBE, TOPIC, name)]
    if refused:
        return StreamsGroupHeartbeatResponse(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return None


def has_status(response: StreamsGroupHeartbeatResponse) -> bool:
    return any(status.status_code == MISSING_INTERNAL_TOPICS for status in response.status or ())


def create_missing(
    missing: Mapping[str, InternalTopic], response: StreamsGroupHeartbeatResponse, context: RequestContext
) -> None:
    refused = refused_names(missing, context)
    if refused:
        tell(response, f"; Unauthorized to CREATE on topics {', '.join(refused)}.")
        return
    creation = context.broker.streams_topics
    creation.begin(missing.values(), context, RETRY_INTERVALS * response.heartbeat_interval_ms)
    errors = [f"{name} ({error})" for name, error in creation.errors(missing).items()]
    if errors:
        shown = ", ".join(errors[:ERRORS_SHOWN_MAX])
        more = len(errors) - ERRORS_SHOWN_MAX
        tell(response, f"; Creation failed: {shown}{f' and {more} more' if more > 0 else ''}.")


def refused_names(missing: Mapping[str, InternalTopic], context: RequestContext) -> list[str]:
    """The topics that the member may not create."""
    rights = context.rights
    if rights is None or rights.allow_quietly(Operation.CREATE, CLUSTER, CLUSTER_NAME):
        return []
    return [name for name in missing if not rights.allow(Operation.CREATE, TOPIC, name, context.api)]


def tell(response: StreamsGroupHeartbeatResponse, detail: str) -> None:
    for status in response.status or ():
        if status.status_code == MISSING_INTERNAL_TOPICS:
            status.status_detail += detail
