"""Large requests and responses, decoded and encoded in pieces while other requests are served.

In: a large frame, or a response that its handler knows to be large. Out: the handler's result; the bytes of
the response. A request with more elements than `ELEMENTS_MAX` is malformed: their objects would take many
times the memory of the request. Does not know: what the messages mean, connections.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

from barnabas.broker.api.deferred import Deferred, Response
from barnabas.protocol import Message, ProtocolError
from barnabas.protocol.codec import codec

if TYPE_CHECKING:
    from barnabas.broker.api.context import RequestContext
    from barnabas.broker.api.routes import Route
    from barnabas.metadata.steps import Steps

PARTS_AT_ONCE = 1_000
LARGE_FRAME_BYTES = 32 * 1024  # takes about a millisecond to decode
ELEMENTS_MAX = 250_000  # of all arrays of a request, and its tagged fields
ELEMENTS_AT_ONCE = 500  # of a request that holds records: most are large because of their records
Decoding = Generator[int | None, None, tuple[Any, int]]


async def handle_large(
    route: Route, frame: memoryview, position: int, context: RequestContext
) -> Response | None:
    """Decode a request in pieces, call its handler, and encode the response in pieces. ProtocolError: the
    request is malformed."""
    steps = codec(route.request_class, route.version).decode_in_steps(frame, position)
    request, _ = await context.broker.pieces.run(bounded(steps, route.request_class.__name__, route.version))
    context.owns_frame = True
    result: Any = route.handler(request, context)
    found: Response | None
    if isinstance(result, Deferred):
        found = await resolved(result)
    elif result is None or isinstance(result, Message | bytes):
        found = result
    else:
        found = await result
    return None if found is None else await context.broker.pieces.run(route.encode_large(found))


def bounded(
    decoding: Decoding, name: str, version: int, elements_max: int = ELEMENTS_MAX
) -> Steps[tuple[Any, int]]:
    """Decode in steps. ProtocolError: the message has more elements than `elements_max`."""
    left = elements_max
    while True:
        try:
            left -= next(decoding) or 1
        except StopIteration as done:
            found: tuple[Any, int] = done.value
            return found
        if left < 0:
            raise ProtocolError(name, f"it has more than {elements_max} elements (version {version})")
        yield


def decode_few(route: Route, frame: memoryview, position: int) -> Any:
    """Decode a request of few elements, however long they are. None: it has many."""
    decoding: Decoding = codec(route.request_class, route.version).decode_in_steps(frame, position)
    left = ELEMENTS_AT_ONCE
    while left > 0:
        try:
            left -= next(decoding) or 1
        except StopIteration as done:
            return done.value[0]
    return None


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
