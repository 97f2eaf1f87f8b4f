"""Fetch: batches from the logs of partitions that this broker leads, within a fetch session.

The response refers to slices of log files; this module reads none. A fetch that finds fewer than `min_bytes`
waits at its partitions until a tick appends more, or until `max_wait_ms` is over. Versions 13 and later name
topics by id. Fetches of many partitions are served in pieces.
"""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import replace
from functools import partial

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.deferred import Deferred, Response
from barnabas.broker.api.needs import TOPIC, Need, Where, cluster_action
from barnabas.broker.api.routes import handles
from barnabas.broker.fetch.checked_fetch import CheckedFetch
from barnabas.broker.fetch.consumer_fetch import ConsumerFetch
from barnabas.broker.fetch.encoded_fetch import encoder
from barnabas.broker.fetch.follower_fetch import FollowerFetch
from barnabas.broker.fetch.large_fetch import (
    FOLLOWED_AT_ONCE_MAX,
    PARTITIONS_AT_ONCE_MAX,
    REQUEST_BYTES_AT_ONCE_MAX,
    open_in_pieces,
    serve_in_pieces,
)
from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse
from barnabas.replication.fetch_sessions import FetchContext
from barnabas.security.acls.vocabulary import CLUSTER_NAME, Operation, ResourceType

REPLICA_STATE_SINCE = 15
FIRST_FOLLOWER = 0


NEEDS = (
    Need(Operation.READ, TOPIC, "topics.topic", Where.ITEM).asked_by_handler(),  # of a consumer
    replace(  # of a follower
        cluster_action, refusal=ErrorCode.TOPIC_AUTHORIZATION_FAILED, listeners="broker"
    ).asked_by_handler(),
)


@handles(FetchRequest, "4-18", needs=NEEDS, encoder=encoder)
def fetch(
    request: FetchRequest, context: RequestContext
) -> FetchResponse | Deferred | Awaitable[Response | None]:
    broker = context.broker
    follower = (
        request.replica_state.replica_id if context.version >= REPLICA_STATE_SINCE else request.replica_id
    )
    is_follower = follower >= FIRST_FOLLOWER
    if context.channel.request_size > REQUEST_BYTES_AT_ONCE_MAX:
        serve = partial(serve_session, request, context, follower, is_short=False)
        return open_in_pieces(request, context, serve, privileged=is_follower)
    session = broker.fetch_sessions.open(
        request, context.version, broker.clock.now_ms(), privileged=is_follower
    )
    return serve_session(request, context, follower, session)


def serve_session(
    request: FetchRequest,
    context: RequestContext,
    follower: int,
    session: FetchContext,
    *,
    is_short: bool = True,
) -> FetchResponse | Deferred | Awaitable[Response | None]:
    """Serve a fetch whose session is open. `is_short`: a follower's next one may take the shortcut."""
    if session.error_code:
        return FetchResponse(error_code=session.error_code)
    rights = context.rights
    if rights is not None:
        may_follow = follower >= FIRST_FOLLOWER and context.may(
            Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME
        )
        if not may_follow:
            checked = CheckedFetch(request, session, context, rights, reads=follower < FIRST_FOLLOWER)
            return serve_consumer(limited(checked, context), context)
    if follower >= FIRST_FOLLOWER and session.follower_session is not None:
        following = FollowerFetch(request, session, context, follower)
        is_large = session.size > FOLLOWED_AT_ONCE_MAX
        following.begin(notes=not is_large)
        if is_short:
            context.channel.learn_fetch(request, session, follower)
        else:
            context.channel.learn_follower()
        return serve_in_pieces(following, context.version) if is_large else following.serve()
    return serve_consumer(limited(ConsumerFetch(request, session, context), context), context)


def serve_consumer(
    fetching: ConsumerFetch, context: RequestContext
) -> FetchResponse | Deferred | Awaitable[Response | None]:
    if len(fetching.session.partitions) > PARTITIONS_AT_ONCE_MAX:
        return serve_in_pieces(fetching, context.version)
    return fetching.serve()


def limited(reading: ConsumerFetch, context: RequestContext) -> ConsumerFetch:
    """The fetch with the client's quota, if there is one."""
    quotas = context.broker.quotas
    if quotas.fetch is not None:
        reading.limit(quotas.fetching(context.user, context.client_id), context.channel)
    return reading
