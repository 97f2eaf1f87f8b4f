"""Fetch: batches from the logs of partitions that this broker leads, within a fetch session.

The response refers to slices of log files; this module reads none. A fetch that finds fewer than `min_bytes`
waits at its partitions until a tick appends more, or until `max_wait_ms` is over. Versions 13 and later name
topics by id.
"""

from __future__ import annotations

from collections.abc import Awaitable

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.deferred import Deferred, Response
from barnabas.broker.api.needs import read_topics
from barnabas.broker.api.routes import handles
from barnabas.broker.fetch.consumer_fetch import ConsumerFetch
from barnabas.broker.fetch.follower_fetch import FollowerFetch
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse

REPLICA_STATE_SINCE = 15
FIRST_FOLLOWER = 0


@handles(FetchRequest, "4-18", needs=read_topics("topics.topic"))
def fetch(
    request: FetchRequest, context: RequestContext
) -> FetchResponse | Deferred | Awaitable[Response | None]:
    broker = context.broker
    follower = (
        request.replica_state.replica_id if context.version >= REPLICA_STATE_SINCE else request.replica_id
    )
    session = broker.fetch_sessions.open(
        request, context.version, broker.clock.now_ms(), privileged=follower >= FIRST_FOLLOWER
    )
    if session.error_code:
        return FetchResponse(error_code=session.error_code)
    if follower >= FIRST_FOLLOWER and session.follower_session is not None:
        following = FollowerFetch(request, session, context, follower)
        following.begin()
        context.channel.learn_fetch(request, session, follower)
        return following.serve()
    reading = ConsumerFetch(request, session, context)
    if broker.quotas.fetch is not None:
        reading.limit(broker.quotas.fetching(context.user, context.client_id), context.channel)
    return reading.serve()
