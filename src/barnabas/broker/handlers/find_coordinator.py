"""FindCoordinator: which broker coordinates a group, a transactional id or a share partition.

The first request for a coordinator creates its topic, and gets its response when the topic exists. The key of
a share partition is `group:topicId:partition`; brokers ask for it, since version 6.
"""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.needs import (
    GROUP,
    TRANSACTIONAL_ID,
    Needs,
    cluster_action,
    each,
    group,
    transactional_id,
)
from barnabas.broker.api.routes import handles
from barnabas.metadata.steps import Steps, at_once
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from barnabas.security.acls.vocabulary import Operation
from barnabas.shares.state.keys import parse as parse_share_key

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.coordinators.coordinator import Coordinator

GROUP_KEY, TRANSACTION_KEY, SHARE_KEY = 0, 1, 2
BATCHED_SINCE = 4
SHARE_SINCE = 6
NO_NODE = -1
KEYS_AT_ONCE = 64  # more are looked up in pieces

CoordinatorResult = FindCoordinatorResponse.Coordinator


def needs() -> Needs:
    """One key up to version 3, then several of one type; the error of each key is its own."""
    of_group, of_transaction = group(Operation.DESCRIBE, "key"), transactional_id(Operation.DESCRIBE, "key")
    keys, into = "coordinator_keys.", "coordinators"
    return (
        of_group.up_to(BATCHED_SINCE - 1).if_(lambda request: request.key_type == GROUP_KEY),
        of_transaction.up_to(BATCHED_SINCE - 1).if_(lambda request: request.key_type == TRANSACTION_KEY),
        each(GROUP, Operation.DESCRIBE, keys, into)
        .since(BATCHED_SINCE)
        .if_request(lambda request: request.key_type == GROUP_KEY),
        each(TRANSACTIONAL_ID, Operation.DESCRIBE, keys, into)
        .since(BATCHED_SINCE)
        .if_request(lambda request: request.key_type == TRANSACTION_KEY),
        cluster_action.since(SHARE_SINCE).if_(lambda request: request.key_type == SHARE_KEY),
    )


@handles(FindCoordinatorRequest, "0-6", needs=needs())
def find_coordinator(
    request: FindCoordinatorRequest, context: RequestContext
) -> FindCoordinatorResponse | Awaitable[FindCoordinatorResponse]:
    coordinator = coordinator_for(request.key_type, context.broker, context.version)
    if coordinator is not None and not (coordinator.is_started and coordinator.topic.exists):
        return create_then_respond(coordinator, request, context, context.version)
    steps = build_response(request, context, context.version)
    return (
        context.broker.pieces.run(steps) if len(request.coordinator_keys) > KEYS_AT_ONCE else at_once(steps)
    )


def coordinator_for(key_type: int, broker: Broker, version: int) -> Coordinator[Any] | None:
    if key_type == GROUP_KEY:
        return broker.groups
    if key_type == TRANSACTION_KEY:
        return broker.transactions
    return broker.share_coordinator if key_type == SHARE_KEY and version >= SHARE_SINCE else None


def is_long(request: FindCoordinatorRequest) -> bool:
    return len(request.coordinator_keys) > KEYS_AT_ONCE


async def create_then_respond(
    coordinator: Coordinator[Any], request: FindCoordinatorRequest, context: RequestContext, version: int
) -> FindCoordinatorResponse:
    await coordinator.started()
    if not coordinator.topic.exists:
        with suppress(KafkaError):  # `create` logs it; the response says that there is no coordinator
            await coordinator.topic.create()
    return await context.broker.pieces.run(build_response(request, context, version))


def build_response(
    request: FindCoordinatorRequest, context: RequestContext, version: int
) -> Steps[FindCoordinatorResponse]:
    keys = request.coordinator_keys if version >= BATCHED_SINCE else [request.key]
    found = []
    for key in keys:
        found.append(find(key, request.key_type, context, version))
        yield
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


def share_key(text: str) -> str:
    """The key of a share partition in the form that its place is computed from."""
    try:
        return str(parse_share_key(text))
    except ValueError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from None


def find(key: str, key_type: int, context: RequestContext, version: int) -> CoordinatorResult:
    try:
        coordinator = coordinator_for(key_type, context.broker, version)
        if coordinator is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown coordinator type: {key_type}")
        leader = coordinator.topic.leader_of(share_key(key) if key_type == SHARE_KEY else key)
        for node in context.broker.nodes(context.listener):
            if node.id == leader:
                return CoordinatorResult(key=key, node_id=node.id, host=node.host, port=node.port)
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "The coordinator is not available.")
    except KafkaError as error:
        return CoordinatorResult(
            key=key,
            node_id=NO_NODE,
            port=NO_NODE,
            error_code=error.code,
            error_message=error.message,
        )
