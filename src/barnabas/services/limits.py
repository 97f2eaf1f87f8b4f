"""Bounds of requests: how many at once, how many bytes, how much time.

In: `Limits`. Out: ApiError for a request beyond them: 413 for its size, 408 for a body that arrives too
slowly, 503 for an endpoint that takes too long or for too many requests at once. A request counts as running
when its body is there, so slow uploads keep nobody out; the bytes of all bodies have a bound.
Does not know: routes, callers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope, Send

from barnabas.services.errors import ApiError
from barnabas.services.exchange import Exchange

CLOSE = {"connection": "close"}
PAUSE_S_MAX = 5.0  # of a stream whose caller is above its rate, before it reads on


@dataclass(frozen=True, slots=True)
class Limits:
    body_bytes_max: int = 10 * 1024 * 1024
    bodies_bytes_max: int = 512 * 1024 * 1024  # of all requests together
    request_s_max: float = 60.0
    requests_max: int = 1000  # at once
    streams_max: int = 1000  # at once: streaming routes and WebSockets
    stall_s_max: float = 60.0  # for one message of a stream that its reader does not take
    drain_bytes_max: int = 1024 * 1024  # read behind a refusal, so that the client sees the response
    drain_s_max: float = 1.0


class Admission:
    """Counts requests and streams that run, and bytes of bodies; beyond the limit a request is refused."""

    __slots__ = ("_limits", "bytes_held", "requests", "streams")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.bytes_held = 0
        self.requests = 0
        self.streams = 0

    def enter(self, *, is_stream: bool) -> None:
        if is_stream:
            if self.streams >= self._limits.streams_max:
                raise busy(f"{self.streams} streams are open")
            self.streams += 1
            return
        if self.requests >= self._limits.requests_max:
            raise busy(f"{self.requests} requests are running")
        self.requests += 1

    def leave(self, *, is_stream: bool) -> None:
        if is_stream:
            self.streams -= 1
        else:
            self.requests -= 1

    def hold(self, size: int) -> None:
        self.bytes_held += size
        if self.bytes_held > self._limits.bodies_bytes_max:
            raise busy(f"bodies of {self.bytes_held} bytes are arriving")

    def release(self, size: int) -> None:
        self.bytes_held -= size


def busy(state: str) -> ApiError:
    return ApiError(503, 503, f"the service is busy: {state}; try again", {"retry-after": "1", **CLOSE})


def has_body(scope: Scope) -> bool:
    for name, value in scope["headers"]:
        if name == b"transfer-encoding" or (name == b"content-length" and value != b"0"):
            return True
    return False


async def whole_body(
    scope: Scope, receive: Receive, exchange: Exchange, bytes_max: int, admission: Admission
) -> Receive:
    """Wait for the body. The result is `receive` for the endpoint, which gets it in one message. A body with
    more bytes is refused, whether its length was announced or not. The caller releases the bytes."""
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit() and int(value[:20]) > bytes_max:
            raise too_large(bytes_max)
    chunks: list[bytes] = []
    while not exchange.body_arrived:
        message = await receive()
        if message["type"] != "http.request":
            raise ClientDisconnect
        before = exchange.bytes_received
        note(message, exchange)
        if exchange.bytes_received > bytes_max:
            exchange.bytes_received = before  # this chunk is not held
            raise too_large(bytes_max)
        admission.hold(exchange.bytes_received - before)
        chunks.append(message.get("body", b""))
    whole: list[Message] = [{"type": "http.request", "body": b"".join(chunks), "more_body": False}]

    async def received() -> Message:
        return whole.pop() if whole else await receive()

    return received


def paced_body(receive: Receive, exchange: Exchange) -> Receive:
    """`receive` of a stream: as fast as the caller's rate allows."""

    async def paced() -> Message:
        message = await receive()
        wait_s = note(message, exchange)
        if wait_s > 0:
            await asyncio.sleep(min(wait_s, PAUSE_S_MAX))
        return message

    return paced


def note(message: Message, exchange: Exchange) -> float:
    """Count the bytes of a message. Returns how many seconds the caller's rate asks to wait."""
    if message["type"] != "http.request":
        return 0.0
    size = len(message.get("body", b""))
    exchange.bytes_received += size
    exchange.body_arrived = not message.get("more_body", False)
    return exchange.spend(size) if size and exchange.spend is not None else 0.0


def bounded_send(send: Send, stall_s_max: float) -> Send:
    """`send` of a stream: a reader that takes nothing for so long loses its connection."""

    async def bounded(message: Message) -> None:
        try:
            async with asyncio.timeout(stall_s_max):
                await send(message)
        except TimeoutError:
            raise ReaderStalled from None

    return bounded


class ReaderStalled(Exception):
    """The reader of a stream takes nothing any more."""


async def within(seconds: float, exchange: Exchange, run: Callable[[], Awaitable[None]]) -> None:
    """Run an endpoint. ApiError when its time is over: the client's fault while its body is arriving."""
    try:
        async with asyncio.timeout(seconds) as limit:
            exchange.extend = lambda more: limit.reschedule((limit.when() or 0.0) + more)
            await run()
    except TimeoutError:
        if not limit.expired():
            raise
        if not exchange.body_arrived:
            raise ApiError(
                408, 408, f"HTTP 408 Request Timeout: the body did not arrive within {seconds:g} s", CLOSE
            ) from None
        raise ApiError(503, 503, f"the request took longer than {seconds:g} s", CLOSE) from None


async def is_drained(receive: Receive, limits: Limits) -> bool:
    """Read what is left of a refused body. False if it is longer than the bound, or arrives too slowly."""
    left = limits.drain_bytes_max
    try:
        async with asyncio.timeout(limits.drain_s_max):
            while left > 0:
                message = await receive()
                if message["type"] != "http.request" or not message.get("more_body", False):
                    return True
                left -= len(message.get("body", b""))
    except TimeoutError:
        pass
    return False


def too_large(bytes_max: int) -> ApiError:
    return ApiError(413, 413, f"HTTP 413 Content Too Large: a body has at most {bytes_max} bytes here", CLOSE)
