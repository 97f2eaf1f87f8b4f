"""Changes to responses that are ready now or later.

In: what a handler returned, and a function that changes its response. Out: the same, changed. A response
that was encoded already is decoded again, in pieces. Does not know: what is changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from barnabas.broker.api.deferred import Deferred, Response
from barnabas.broker.api.large_requests import bounded
from barnabas.protocol import Message, apis
from barnabas.protocol.codec import codec

if TYPE_CHECKING:
    from barnabas.broker.api.context import RequestContext

Change = Callable[[Any], None]


def change_response(result: Any, key: int, context: RequestContext, change: Change) -> Any:
    """`change` is called with the response; not with None, for requests without a response."""
    if isinstance(result, Message):
        change(result)
        return result
    if result is None:
        unsent = context.channel.unsent  # the tick has it and will encode it
        if unsent is not None:
            change(unsent)
        return None
    if isinstance(result, Deferred):
        return changed_deferred(result, key, context, change)
    return changed_later(result, key, context, context.version, change)


def changed_deferred(waiting: Deferred, key: int, context: RequestContext, change: Change) -> Deferred:
    later = Deferred(waiting.cancel)
    version = context.version

    def finished(done: asyncio.Task[Message]) -> None:
        try:
            later.resolve(done.result())
        except (Exception, asyncio.CancelledError):
            context.channel.fail("changing a response")
            later.resolve(None)

    def arrived(response: Response | None) -> None:
        if isinstance(response, bytes):
            task = context.broker.loop.create_task(decoded(response, key, version, context, change))
            task.add_done_callback(finished)
            return
        if response is not None:
            change(response)
        later.resolve(response)

    waiting.then(arrived)
    return later


async def changed_later(
    result: Awaitable[Response | None], key: int, context: RequestContext, version: int, change: Change
) -> Response | None:
    response = await result
    if isinstance(response, bytes):
        return await decoded(response, key, version, context, change)
    if response is not None:
        change(response)
    return response


async def decoded(
    response: bytes, key: int, version: int, context: RequestContext, change: Change
) -> Message:
    response_class = apis.response_class(key)
    decoding = codec(response_class, version).decode_in_steps(response, 0)
    steps = bounded(decoding, response_class.__name__, version, elements_max=len(response))
    message: Message
    message, _ = await context.broker.pieces.run(steps)
    change(message)
    return message
