"""The asyncio face of the client: connections as protocols of an event loop, its clock, its pauses.

Any number of tasks may use a connection at the same time. Does not know: what is sent.
"""

from __future__ import annotations

import asyncio
import functools
import ssl
from collections.abc import Callable, Coroutine, Iterable
from random import Random
from typing import Any, TypeVar, cast

from barnabas.client.core.address import Address
from barnabas.client.core.connection import ConnectionCore, Exchange
from barnabas.client.core.errors import ConnectError, ConnectionLost, RequestTimeout
from barnabas.client.core.handshake import shake_hands
from barnabas.client.core.network import ConnectionSettings
from barnabas.client.login_threads import run_aside
from barnabas.client.os_errors import reason_of
from barnabas.protocol import Message
from barnabas.security.tls.failures import describe

R = TypeVar("R", bound=Message)
T = TypeVar("T")

BYTES_KEPT_MAX = 256 * 1024
DEFAULT = ConnectionSettings()
rng = Random()  # a simulation seeds it


class AsyncioNetwork:
    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def uniform(self, low: float, high: float) -> float:
        return rng.uniform(low, high)

    async def gather(self, coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
        return list(await asyncio.gather(*coroutines))

    async def connect(self, address: Address, settings: ConnectionSettings) -> Connection:
        return await connect(address, settings)


class Connection(ConnectionCore, asyncio.BufferedProtocol):
    """Use `connect`."""

    def __init__(self, address: Address, settings: ConnectionSettings) -> None:
        super().__init__(address, settings, BYTES_KEPT_MAX)
        self._transport: asyncio.Transport | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._loop = asyncio.get_running_loop()
        self._closed: asyncio.Future[None] = self._loop.create_future()
        self._renewing = asyncio.Lock()

    async def aside(self, work: Callable[..., T], *arguments: object) -> T:
        return await run_aside(work, *arguments)

    def now(self) -> float:
        return self._loop.time()

    def uniform(self, low: float, high: float) -> float:
        return rng.uniform(low, high)

    async def _renew_session(self) -> None:
        async with self._renewing:
            if self._renew_at is not None and self.now() >= self._renew_at:
                await super()._renew_session()

    async def _transmit(self, pieces: list[bytes], name: str) -> None:
        await self._writable.wait()
        if self.lost is not None or self._transport is None:
            raise self.lost or ConnectionLost(self.address, "it was never made")
        self._transport.writelines(pieces)
        size = sum(map(len, pieces))
        self.bytes_sent += size
        if self.on_sent is not None:
            self.on_sent(size)

    async def wait(self, exchange: Exchange[R], timeout_ms: float | None = None) -> R:
        if not exchange.is_done:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            exchange.on_done = functools.partial(wake, future)
            limit_ms = self.settings.request_timeout_ms if timeout_ms is None else timeout_ms
            try:
                async with asyncio.timeout(limit_ms / 1000):
                    await future
            except TimeoutError:
                raise RequestTimeout(self.address, exchange.name, limit_ms) from None
            finally:
                self.forget(exchange)
        return exchange.result()

    async def close(self) -> None:
        """Close and wait until it is closed; requests under way fail."""
        self.fail(ConnectionLost(self.address, "it was closed here"))
        if self._transport is not None:
            self._transport.close()
            await self._closed

    def fail(self, error: ConnectionLost) -> None:
        super().fail(error)
        self._writable.set()

    # Callbacks of asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but name

    def connection_lost(self, error: Exception | None) -> None:
        self.fail(ConnectionLost(self.address, reason_of(error) if error else "the broker closed it"))
        if not self._closed.done():
            self._closed.set_result(None)

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.frames.room()

    def buffer_updated(self, nbytes: int) -> None:
        self.frames.received(nbytes)
        self.bytes_received += nbytes
        while self.complete():
            pass
        if self.lost is not None and self._transport is not None:
            self._transport.abort()


def wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


async def connect(address: Address, settings: ConnectionSettings = DEFAULT) -> Connection:
    """Connect, and do everything that must come before the first request."""
    loop = asyncio.get_running_loop()
    connection = Connection(address, settings)
    try:
        async with asyncio.timeout(settings.connect_timeout_ms / 1000):
            await open_connection(loop, connection, address, settings.security.tls)
    except TimeoutError:
        raise ConnectError(address, f"no response within {settings.connect_timeout_ms:.0f} ms") from None
    except ssl.SSLError as error:
        raise ConnectError(address, describe(error, is_server=False)) from None
    except OSError as error:
        raise ConnectError(address, reason_of(error)) from None
    await shake_hands(connection)
    return connection


async def open_connection(
    loop: asyncio.AbstractEventLoop,
    protocol: asyncio.BufferedProtocol,
    address: Address,
    context: ssl.SSLContext | None,
) -> None:
    """Connect, and complete the TLS handshake if there is a context. SSLError says why it failed."""
    if context is None:
        await loop.create_connection(lambda: protocol, address.host, address.port)
        return
    from barnabas.client.asyncio_tls import ClientTransport  # a client without TLS needs none of it

    tls = ClientTransport(context, protocol, address.host)
    await loop.create_connection(lambda: tls, address.host, address.port)
    try:
        await tls.ready
    except BaseException:
        tls.abort()
        raise
