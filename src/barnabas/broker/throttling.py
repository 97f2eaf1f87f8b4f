"""Throttling: handlers wrapped where a quota asks for it; the answer says how long, the connection is not
read meanwhile (KIP-219).

In: the quotas, a handler. Out: a handler that counts what the request cost. Listeners use the wrapped ones
only while quotas on producing or on request time exist; without them requests go the short way.
Does not know: limits; fetches, which count what they are about to send.
"""

from __future__ import annotations

import struct
from collections.abc import Awaitable
from functools import cache
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from barnabas.broker.deferred import Deferred, Response
from barnabas.protocol import ApiKey, Message, apis

if TYPE_CHECKING:
    from barnabas.broker.client_quotas import ClientQuotas
    from barnabas.broker.context import RequestContext
    from barnabas.broker.routes import Answer, Endpoint, Handler

NO_ACKS = 0
TIME = struct.Struct(">i")


class Guard:
    """Wraps the handlers of a listener."""

    def __init__(self, quotas: ClientQuotas) -> None:
        self._quotas = quotas

    def wrap(self, endpoint: Endpoint, handler: Handler) -> Any:
        quotas = self._quotas
        key = endpoint.key
        is_produce = key == ApiKey.PRODUCE

        def guarded(request: Any, context: RequestContext) -> Answer | Deferred:
            channel, user, client_id = context.channel, context.user, context.client_id
            wait_ms = quotas.produced(user, client_id, channel.request_size) if is_produce else 0
            started = perf_counter_ns()
            answer = handler(request, context)
            wait_ms = max(wait_ms, quotas.worked(user, client_id, perf_counter_ns() - started))
            if wait_ms:
                return throttled(answer, context, wait_ms, key)
            return answer

        return guarded


def throttled(answer: Any, context: RequestContext, wait_ms: int, key: ApiKey) -> Answer | Deferred:
    """The answer with the time in it, whenever it comes; the connection waits from then on."""
    channel, version = context.channel, context.version
    if isinstance(answer, Message):
        tell(answer, wait_ms)
        channel.mute(wait_ms)
        return answer
    if answer is None:
        unsent = channel.unsent()
        if unsent is not None:
            tell(unsent, wait_ms)
        channel.mute(wait_ms)
        return None
    if isinstance(answer, Deferred):
        waiting = answer
        later = Deferred(waiting.cancel)

        def resolved(response: Response | None) -> None:
            channel.mute(wait_ms)
            later.resolve(told(response, wait_ms, key, version) if response is not None else None)

        waiting.then(resolved)
        return later
    return told_later(answer, context, wait_ms, key)


async def told_later(
    answer: Awaitable[Any], context: RequestContext, wait_ms: int, key: ApiKey
) -> Any:  # a response, perhaps encoded already
    version = context.version
    response = await answer
    if response is not None:
        response = told(response, wait_ms, key, version)
    elif (unsent := context.channel.unsent()) is not None:
        tell(unsent, wait_ms)
    context.channel.mute(wait_ms)
    return response


def told(response: Response, wait_ms: int, key: ApiKey, version: int) -> Response:
    """The response with the time in it, also where it is encoded already."""
    if not isinstance(response, bytes):
        tell(response, wait_ms)
    elif begins_with_time(key, version):
        (before_ms,) = TIME.unpack_from(response)
        return TIME.pack(max(before_ms, wait_ms)) + response[TIME.size :]
    return response


@cache
def begins_with_time(key: ApiKey, version: int) -> bool:
    """Whether the throttle time is the first field of a response: so it is where there is one, but for the
    responses to Produce, which are not encoded in pieces."""
    fields = apis.response_class(key).schema.fields
    first = next((field for field in fields if version in field.versions), None)
    return first is not None and first.name == "throttle_time_ms"


def tell(response: Any, wait_ms: int) -> None:
    if hasattr(response, "throttle_time_ms"):
        response.throttle_time_ms = max(response.throttle_time_ms, wait_ms)
