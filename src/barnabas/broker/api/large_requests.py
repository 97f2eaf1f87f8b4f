"""Large requests and responses, decoded and encoded in pieces while other requests are served.

In: a large frame of any API but Produce, or a response that its handler knows to be large. Out: the handler's
result; the bytes of the response. Does not know: what the messages mean, connections.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from barnabas.broker.api.deferred import Deferred, Response
from barnabas.protocol import Message
from barnabas.protocol.codec import codec

if TYPE_CHECKING:
    from barnabas.broker.api.context import RequestContext
    from barnabas.broker.api.routes import Route
    from barnabas.metadata.steps import Steps

PARTS_AT_ONCE = 1_000
LARGE_FRAME_BYTES = 32 * 1024  # takes about a millisecond to decode


async def handle_large(route: Route, frame: bytes, position: int, context: RequestContext) -> Response | None:
    """Decode a request in pieces, then call its handler. ProtocolError: the request is malformed."""
    steps = codec(route.request_class, route.version).decode_in_steps(frame, position)
    request, _ = await context.broker.pieces.run(steps)
    result: Any = route.handler(request, context)
    if isinstance(result, Deferred):
        return await resolved(result)
    if result is None or isinstance(result, Message | bytes):
        return result
    found: Response | None = await result
    return found


async def resolved(deferred: Deferred) -> Response | None:
    future: asyncio.Future[Response | None] = asyncio.get_running_loop().create_future()

    def arrived(response: Response | None) -> None:
        if not future.done():
            future.set_result(response)

    deferred.then(arrived)
    try:
        return await future
    except asyncio.CancelledError:
        deferred.cancel()
        raise


def encode_in_steps(response: Message, version: int) -> Steps[bytes]:
    """Encode a response in steps; a handler may return the bytes instead of the message."""
    parts: list[bytes] = []
    whole = bytearray()  # grows step by step: joining and freeing all parts at the end takes milliseconds
    for _ in codec(type(response), version).encode_in_steps(response, parts.append):
        if len(parts) >= PARTS_AT_ONCE:
            whole += b"".join(parts)
            parts.clear()
        yield
    whole += b"".join(parts)
    return bytes(whole)


Prune = Callable[[Any], "Steps[None]"]
"""Takes something out of a response, in steps."""


def encoded_in_pieces(
    result: Message | Deferred, context: RequestContext, prune: Prune | None = None
) -> Deferred:
    """Encode a large response in pieces, now or when it is ready; prune it before."""
    version = context.version
    whole = Deferred(result.cancel if isinstance(result, Deferred) else None)

    def encode(response: Message) -> Steps[None]:
        if prune is not None:
            yield from prune(response)
        whole.resolve((yield from encode_in_steps(response, version)))

    def arrived(response: Response | None) -> None:
        if isinstance(response, Message):
            context.broker.pieces.begin(encode(response))
        else:
            whole.resolve(response)

    if isinstance(result, Deferred):
        result.then(arrived)
    else:
        arrived(result)
    return whole
