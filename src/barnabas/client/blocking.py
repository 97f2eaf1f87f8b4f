"""The blocking face of the client: sockets that wait, for tools, tests, drivers and Spark's workers.

`run` runs any coroutine of the core to its end, an Admin's too, if its cluster is a `BlockingCluster`. Every
wait has a limit. Not for several threads. Does not know: what is sent.
"""

from __future__ import annotations

import random
import socket
import ssl
import time
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, TypeVar, Unpack

from barnabas.client.core.address import Address
from barnabas.client.core.cluster import ClusterCore, ClusterOptions
from barnabas.client.core.connection import ConnectionCore, Exchange
from barnabas.client.core.errors import ConnectError, ConnectionLost, RequestTimeout
from barnabas.client.core.handshake import shake_hands
from barnabas.client.core.network import ConnectionSettings
from barnabas.client.os_errors import reason_of
from barnabas.protocol import Message
from barnabas.security.tls.failures import describe

R = TypeVar("R", bound=Message)
T = TypeVar("T")

RECEIVE_BUFFER_BYTES = 4 * 1024 * 1024
BYTES_KEPT_MAX = 64 * 1024 * 1024
PIECES_MAX = 512  # so many pieces one call to the system takes


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that waits for blocking connections only, so it never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    coroutine.close()
    raise RuntimeError("this coroutine waits for an event loop: it cannot run on the blocking client")


class BlockingNetwork:
    def now(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def uniform(self, low: float, high: float) -> float:
        return random.uniform(low, high)

    async def gather(self, coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
        return [await each for each in coroutines]

    async def connect(self, address: Address, settings: ConnectionSettings) -> BlockingConnection:
        try:
            made = socket.create_connection(address, settings.connect_timeout_ms / 1000)
        except TimeoutError:
            raise ConnectError(address, f"no response within {settings.connect_timeout_ms:.0f} ms") from None
        except OSError as error:
            raise ConnectError(address, reason_of(error)) from None
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        if settings.security.tls is not None:
            made = secured(made, address, settings.security.tls)
        connection = BlockingConnection(address, settings, made)
        await shake_hands(connection)
        return connection


def secured(made: socket.socket, address: Address, context: ssl.SSLContext) -> ssl.SSLSocket:
    """The socket after its TLS handshake, or ConnectError that says how to mend it."""
    try:
        return context.wrap_socket(made, server_hostname=address.host)
    except TimeoutError:
        made.close()
        raise ConnectError(address, "the TLS handshake was not answered in time") from None
    except OSError as error:
        made.close()
        raise ConnectError(address, describe(error, is_server=False)) from None


class BlockingConnection(ConnectionCore):
    """Records in a response are views of the receive memory: valid until the next `wait`."""

    def __init__(self, address: Address, settings: ConnectionSettings, made: socket.socket) -> None:
        super().__init__(address, settings, BYTES_KEPT_MAX)
        self._socket = made

    def now(self) -> float:
        return time.monotonic()

    def uniform(self, low: float, high: float) -> float:
        return random.uniform(low, high)

    async def _transmit(self, pieces: list[bytes], name: str) -> None:
        """Records go out from where they lie."""
        limit_ms = self.settings.request_timeout_ms
        left = [memoryview(each) for each in ([b"".join(pieces)] if len(pieces) > PIECES_MAX else pieces)]
        self.bytes_sent += sum(map(len, left))
        try:
            self._socket.settimeout(limit_ms / 1000)
            if isinstance(self._socket, ssl.SSLSocket):  # it has no `sendmsg`
                self._socket.sendall(b"".join(left))
                return
            while left:
                sent = self._socket.sendmsg(left)
                while left and sent >= len(left[0]):
                    sent -= len(left.pop(0))
                if left:
                    left[0] = left[0][sent:]
        except TimeoutError:
            raise self._timed_out(name, limit_ms) from None
        except OSError as error:
            raise self._lose(reason_of(error)) from None

    async def wait(self, exchange: Exchange[R], timeout_ms: float | None = None) -> R:
        limit_ms = self.settings.request_timeout_ms if timeout_ms is None else timeout_ms
        try:
            self._socket.settimeout(limit_ms / 1000)
            while not exchange.is_done:
                if not self.complete(exchange) and self.lost is None:
                    count = self._socket.recv_into(self.frames.room())
                    if not count:
                        raise self._lose("the broker closed it")
                    self.frames.received(count)
                    self.bytes_received += count
        except TimeoutError:
            raise self._timed_out(exchange.name, limit_ms) from None
        except OSError as error:
            raise self._lose(reason_of(error)) from None
        if self.lost is not None:
            self._socket.close()
        return exchange.result()

    def _timed_out(self, name: str, limit_ms: float) -> RequestTimeout:
        """Brokers respond in order: whatever is asked next would wait behind the response that is late."""
        self._lose(f"no response to {name} within {limit_ms:.0f} ms")
        return RequestTimeout(self.address, name, limit_ms)

    def _lose(self, reason: str) -> ConnectionLost:
        self._socket.close()
        self.fail(ConnectionLost(self.address, reason))
        assert self.lost is not None
        return self.lost

    async def close(self) -> None:
        self._lose("it was closed here")


class BlockingCluster(ClusterCore):
    """`run(cluster.refresh())` and so on; `with BlockingCluster(addresses) as cluster:` closes it."""

    def __init__(self, bootstrap: Sequence[Address], **options: Unpack[ClusterOptions]) -> None:
        super().__init__(bootstrap, BlockingNetwork(), **options)

    def __enter__(self) -> BlockingCluster:
        return self

    def __exit__(self, *_: object) -> None:
        run(self.close())
