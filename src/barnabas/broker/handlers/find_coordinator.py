"""FindCoordinator: which broker coordinates a group. Makes `__consumer_offsets` when it is first asked for,
and answers when the topic is there.

Coordinators of transactions and of share groups are not built: asking for them is refused at once, so that
clients stop instead of asking for ever.
"""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import suppress

from barnabas.broker.context import RequestContext
from barnabas.broker.coordinator_topic import partition_for
from barnabas.broker.needs import describe_coordinator
from barnabas.broker.offsets_topic import OFFSETS_TOPIC
from barnabas.broker.routes import handles
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

GROUP, TRANSACTION, SHARE = 0, 1, 2
BATCHED_SINCE = 4
SHARE_SINCE = 6
NO_NODE = -1

Coordinator = FindCoordinatorResponse.Coordinator


@handles(FindCoordinatorRequest, "0-6", needs=describe_coordinator("coordinator_keys"))
def find_coordinator(
    request: FindCoordinatorRequest, context: RequestContext
) -> FindCoordinatorResponse | Awaitable[FindCoordinatorResponse]:
    groups = context.broker.groups
    if request.key_type == GROUP and not (groups.is_started and groups.topic.exists):
        return create_then_answer(request, context, context.version)
    return answer(request, context, context.version)


async def create_then_answer(
    request: FindCoordinatorRequest, context: RequestContext, version: int
) -> FindCoordinatorResponse:
    groups = context.broker.groups
    await groups.started()
    if not groups.topic.exists:
        with suppress(KafkaError):  # logged where it happened: the answer is that there is no coordinator
            await groups.topic.create()
    return answer(request, context, version)


def answer(request: FindCoordinatorRequest, context: RequestContext, version: int) -> FindCoordinatorResponse:
    keys = request.coordinator_keys if version >= BATCHED_SINCE else [request.key]
    found = [coordinator(key, request.key_type, context, version) for key in keys]
    if version >= BATCHED_SINCE:
        return FindCoordinatorResponse(coordinators=found)
    [only] = found
    return FindCoordinatorResponse(
        error_code=only.error_code,
        error_message=only.error_message or ErrorCode(only.error_code).name,
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )


def coordinator(key: str, key_type: int, context: RequestContext, version: int) -> Coordinator:
    try:
        if key_type == TRANSACTION:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                "Transactions have no coordinator: they are not built yet.",
            )
        if key_type == SHARE and version >= SHARE_SINCE:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, "Share groups have no coordinator: they are not built yet."
            )
        if key_type != GROUP:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown coordinator type: {key_type}")
        return coordinator_of_group(key, context)
    except KafkaError as error:
        return Coordinator(
            key=key,
            node_id=NO_NODE,
            port=NO_NODE,
            error_code=error.code,
            error_message=error.message,
        )


def coordinator_of_group(group_id: str, context: RequestContext) -> Coordinator:
    broker = context.broker
    topic = broker.image.topics.by_name.get(OFFSETS_TOPIC)
    if topic is None:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{OFFSETS_TOPIC} could not be created.")
    partition = topic.partitions.get(partition_for(group_id, len(topic.partitions)))
    leader = partition.leader if partition is not None else NO_NODE
    for node in broker.nodes(context.listener):
        if node.id == leader:
            return Coordinator(key=group_id, node_id=node.id, host=node.host, port=node.port)
    raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "The coordinator is not available.")
