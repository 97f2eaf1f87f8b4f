"""ShareFetch requests: checked, put into their session, and given to a `ShareFetch` (KIP-932).

In: a request. Out: its response, now or later. Versions 2 and later can renew locks (KIP-1222) and insist on
`max_records` (KIP-1206). Does not know: how records are acquired, or acknowledged.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from barnabas.broker.api.deferred import Deferred
from barnabas.broker.shares.acknowledgements import Acknowledging
from barnabas.broker.shares.share_fetch import ShareFetch
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from barnabas.security.acls.vocabulary import Operation, ResourceType
from barnabas.shares.sessions.share_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    MemberKey,
    ShareSession,
    TopicIdPartition,
)

if TYPE_CHECKING:
    from barnabas.broker.api.context import RequestContext

MEMBER_ID_LENGTH_MAX = 36


def serve(request: ShareFetchRequest, context: RequestContext) -> ShareFetchResponse | Deferred:
    shares = context.broker.shares
    try:
        if shares.is_switched_off:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
        key = check_member(request.group_id, request.member_id)
        if request.is_renew_ack and (
            request.max_bytes or request.min_bytes or request.max_records or request.max_wait_ms
        ):
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        session = session_of(request, key, context)
    except KafkaError as error:
        response = ShareFetchResponse(error_code=error.code)
        if error.code == ErrorCode.SHARE_SESSION_LIMIT_REACHED:
            return later(response, request.max_wait_ms, context)
        return response
    is_final = request.share_session_epoch == FINAL_EPOCH
    acknowledging = Acknowledging(context, key.member)
    if has_acknowledgements(request):
        acknowledging.begin(key.group, request.topics, is_renewal=request.is_renew_ack)
    is_fetching = not is_final and not request.is_renew_ack
    fetch = ShareFetch(
        request, context, session if is_fetching else None, acknowledging, session if is_final else None
    )
    if is_fetching:
        quotas = context.broker.quotas
        if quotas.fetch is not None:
            fetch.limit(quotas.fetching(context.user, context.client_id))
        find_partitions(fetch, session, request.share_session_epoch, context)
    return fetch.serve()


def check_member(group: str | None, member: str | None) -> MemberKey:
    if group is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid group id in the request.")
    if not member or len(member) > MEMBER_ID_LENGTH_MAX:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid member id in the request.")
    return MemberKey(group, member)


def has_acknowledgements(request: ShareFetchRequest) -> bool:
    return any(asked.acknowledgement_batches for topic in request.topics for asked in topic.partitions)


def session_of(request: ShareFetchRequest, key: MemberKey, context: RequestContext) -> ShareSession:
    """The session of the request, begun or changed as it asks."""
    shares, epoch = context.broker.shares, request.share_session_epoch
    sessions = shares.sessions
    if epoch == INITIAL_EPOCH:
        if has_acknowledgements(request):
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        return sessions.open(key, named(request), context.channel)
    session = sessions.use(key, epoch)
    if epoch != FINAL_EPOCH:
        forgotten = (
            TopicIdPartition(topic.topic_id, index)
            for topic in request.forgotten_topics_data
            for index in topic.partitions
        )
        session.update(named(request), forgotten)
    return session


def named(request: ShareFetchRequest) -> Iterator[TopicIdPartition]:
    for topic in request.topics:
        for asked in topic.partitions:
            yield TopicIdPartition(topic.topic_id, asked.partition_index)


def find_partitions(fetch: ShareFetch, session: ShareSession, epoch: int, context: RequestContext) -> None:
    """Give the session's partitions to the fetch, in an order that changes with each request."""
    shares = context.broker.shares
    group = session.key.group
    topics = context.broker.image.topics.by_id
    partitions = list(session.partitions)
    allowed: dict[bytes, bool] = {}
    valid = []
    for topic_id_partition in partitions:
        topic = topics.get(topic_id_partition.topic_id)
        if topic is None:
            fetch.refuse(topic_id_partition, KafkaError(ErrorCode.UNKNOWN_TOPIC_ID))
            continue
        if topic_id_partition.topic_id not in allowed:
            allowed[topic_id_partition.topic_id] = context.may(Operation.READ, ResourceType.TOPIC, topic.name)
        if not allowed[topic_id_partition.topic_id]:
            fetch.refuse(topic_id_partition, KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        elif topic_id_partition.partition not in topic.partitions:
            fetch.refuse(topic_id_partition, KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        else:
            valid.append(topic_id_partition)
    if not fetch.is_wanting:
        return
    turn = epoch % len(valid) if valid else 0
    for topic_id_partition in valid[turn:] + valid[:turn]:
        try:
            fetch.add(topic_id_partition, shares.open(group, topic_id_partition))
        except KafkaError as error:
            fetch.refuse(topic_id_partition, error)
    for topic_id in {topic_id_partition.topic_id: None for topic_id_partition in valid}:
        context.broker.metrics.topic(topics[topic_id].name).share_fetch_requests += 1


def later(response: ShareFetchResponse, wait_ms: int, context: RequestContext) -> Deferred:
    """Respond after the wait of the request, so that a member without a session does not ask at once
    again."""
    loop = context.broker.loop
    deferred = Deferred()
    timer = loop.call_later(max(wait_ms, 0) / 1000, deferred.resolve, response)
    cancelled = Deferred(timer.cancel)
    cancelled.follow(deferred)
    return cancelled
