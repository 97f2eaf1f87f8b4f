"""Throttling of clients over their quota: the response says how long, and the channel is muted (KIP-219).

In: the quotas, a handler. Out: a handler that also counts what the request costs. Listeners use wrapped
handlers only while produce or request quotas exist. Fetches count their own bytes before they are sent.
Does not know: limits.
"""

from __future__ import annotations

from collections.abc import Awaitable
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from barnabas.broker.api.deferred import Deferred, Response
from barnabas.protocol import ApiKey, Message

if TYPE_CHECKING:
    from barnabas.broker.api.context import RequestContext
    from barnabas.broker.api.routes import Endpoint, Handler, HandlerResult
    from barnabas.broker.quotas.client_quotas import ClientQuotas

NO_ACKS = 0


class Guard:
    """Wraps the handlers of a listener."""

    def __init__(self, quotas: ClientQuotas) -> None:
        self._quotas = quotas

    def wrap(self, endpoint: Endpoint, handler: Handler) -> Any:
        quotas = self._quotas
        is_produce = endpoint.key == ApiKey.PRODUCE

        def guarded(request: Any, context: RequestContext) -> HandlerResult | Deferred:
            channel, user, client_id = context.channel, context.user, context.client_id
            wait_ms = quotas.produced(user, client_id, channel.request_size) if is_produce else 0
            started = perf_counter_ns()
            result = handler(request, context)
            wait_ms = max(wait_ms, quotas.worked(user, client_id, perf_counter_ns() - started))
            if wait_ms:
                return throttled(result, context, wait_ms)
            return result

        return guarded


def throttled(result: Any, context: RequestContext, wait_ms: int) -> HandlerResult | Deferred:
    """Put the throttle time into the response, now or when it is made, and mute the channel then."""
    channel = context.channel
    if isinstance(result, Message):
        set_throttle_time(result, wait_ms)
        channel.mute(wait_ms)
        return result
    if result is None:
        unsent = channel.pop_unsent()
        if unsent is not None:
            set_throttle_time(unsent, wait_ms)
        channel.mute(wait_ms)
        return None
    if isinstance(result, Deferred):
        waiting = result
        later = Deferred(waiting.cancel)

        def resolved(response: Response | None) -> None:
            if response is not None:
                set_throttle_time(response, wait_ms)
            channel.mute(wait_ms)
            later.resolve(response)

        waiting.then(resolved)
        return later
    return throttled_later(result, context, wait_ms)


async def throttled_later(
    result: Awaitable[Message | None], context: RequestContext, wait_ms: int
) -> Message | None:
    response = await result
    unsent = response or context.channel.pop_unsent()
    if unsent is not None:
        set_throttle_time(unsent, wait_ms)
    context.channel.mute(wait_ms)
    return response


def set_throttle_time(response: Any, wait_ms: int) -> None:
    if hasattr(response, "throttle_time_ms"):
        response.throttle_time_ms = max(response.throttle_time_ms, wait_ms)
