"""Throttling: handlers wrapped where a quota asks for it; the answer says how long, the connection is not
read meanwhile (KIP-219).

In: the quotas, a handler. Out: a handler that counts what the request cost. Listeners use the wrapped ones
only while quotas on producing or on request time exist; without them requests go the short way.
Does not know: limits; fetches, which count what they are about to send.
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
            answer = handler(request, context)
            wait_ms = max(wait_ms, quotas.worked(user, client_id, perf_counter_ns() - started))
            if wait_ms:
                return throttled(answer, context, wait_ms)
            return answer

        return guarded


def throttled(answer: Any, context: RequestContext, wait_ms: int) -> HandlerResult | Deferred:
    """The answer with the time in it, whenever it comes; the connection waits from then on."""
    channel = context.channel
    if isinstance(answer, Message):
        tell(answer, wait_ms)
        channel.mute(wait_ms)
        return answer
    if answer is None:
        unsent = channel.pop_unsent()
        if unsent is not None:
            tell(unsent, wait_ms)
        channel.mute(wait_ms)
        return None
    if isinstance(answer, Deferred):
        waiting = answer
        later = Deferred(waiting.cancel)

        def resolved(response: Response | None) -> None:
            if response is not None:
                tell(response, wait_ms)
            channel.mute(wait_ms)
            later.resolve(response)

        waiting.then(resolved)
        return later
    return told_later(answer, context, wait_ms)


async def told_later(
    answer: Awaitable[Message | None], context: RequestContext, wait_ms: int
) -> Message | None:
    response = await answer
    told = response or context.channel.pop_unsent()
    if told is not None:
        tell(told, wait_ms)
    context.channel.mute(wait_ms)
    return response


def tell(response: Any, wait_ms: int) -> None:
    if hasattr(response, "throttle_time_ms"):
        response.throttle_time_ms = max(response.throttle_time_ms, wait_ms)
