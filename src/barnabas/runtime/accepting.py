"""Acceptor: accepts connections on a listening socket, a few in each turn of the loop. It can be paused.

In: a bound socket. Out: an `Arrival` for each connection, which the caller serves or closes. A paused
acceptor leaves new connections in the kernel's queue, as Kafka's acceptor does while it waits for a slot.
When the process has no descriptor left, the acceptor uses a spare one to accept the connection and close it
at once: the peer sees the close, and the loop does not spin on a socket that stays readable.
Does not know: who may connect.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
from collections.abc import Callable
from typing import Any, Protocol

from barnabas.runtime.shortage import ERRNOS

ACCEPTS_A_TURN = 16
PAUSE_S = 0.1  # after a shortage in which the spare descriptor did not help
NO_DESCRIPTOR = (errno.EMFILE, errno.ENFILE)

logger = logging.getLogger("barnabas.server")


class Arrival(Protocol):
    """An accepted connection that has no protocol yet."""

    host: str

    def serve(self, factory: Callable[[], Any], failed: Callable[[], None]) -> None:
        """Attach a protocol. `failed` is called if that fails; then the connection is closed."""

    def close(self) -> None: ...


class Acceptor(Protocol):
    port: int

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def close(self) -> None: ...


class SocketArrival:
    __slots__ = ("_loop", "_socket", "_tasks", "host")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        accepted: socket.socket,
        host: str,
        tasks: set[asyncio.Task[Any]],
    ) -> None:
        self._loop = loop
        self._socket = accepted
        self._tasks = tasks
        # A dual-stack socket shows an IPv4 client as ::ffff:1.2.3.4; limits by address must not depend on
        # that.
        self.host = host.removeprefix("::ffff:")

    def serve(self, factory: Callable[[], Any], failed: Callable[[], None]) -> None:
        def done(task: asyncio.Task[Any]) -> None:
            self._tasks.discard(task)
            if task.cancelled() or task.exception() is not None:
                self._socket.close()
                failed()

        task = self._loop.create_task(self._loop.connect_accepted_socket(factory, self._socket))
        self._tasks.add(task)
        task.add_done_callback(done)

    def close(self) -> None:
        self._socket.close()


class SocketAcceptor:
    """Calls `on_connection` for each accepted connection, and `on_turned_away` when it had to close one
    because the process has no descriptor left."""

    def __init__(
        self,
        bound: socket.socket,
        backlog: int,
        on_connection: Callable[[Arrival], None],
        on_turned_away: Callable[[], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._socket = bound
        self._on_connection = on_connection
        self._on_turned_away = on_turned_away
        self._tasks: set[asyncio.Task[Any]] = set()
        self._spare: int | None = open_spare()
        self._is_watching = False
        self._is_closed = False
        self._is_paused = False
        bound.setblocking(False)
        bound.listen(backlog)
        self.port: int = bound.getsockname()[1]
        self._watch()

    def pause(self) -> None:
        self._is_paused = True
        self._unwatch()

    def resume(self) -> None:
        self._is_paused = False
        self._watch()

    def close(self) -> None:
        self._is_closed = True
        self._unwatch()
        self._socket.close()
        if self._spare is not None:
            os.close(self._spare)
            self._spare = None

    def _watch(self) -> None:
        if not self._is_watching and not self._is_paused and not self._is_closed:
            self._is_watching = True
            self._loop.add_reader(self._socket.fileno(), self._readable)

    def _unwatch(self) -> None:
        if self._is_watching:
            self._is_watching = False
            self._loop.remove_reader(self._socket.fileno())

    def _readable(self) -> None:
        for _ in range(ACCEPTS_A_TURN):
            if not self._is_watching:
                return
            try:
                accepted, address = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._cannot_accept(error)
                return
            accepted.setblocking(False)
            try:
                accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except OSError:
                accepted.close()  # its peer has already reset it
                continue
            self._on_connection(SocketArrival(self._loop, accepted, address[0], self._tasks))

    def _cannot_accept(self, error: OSError) -> None:
        if error.errno in NO_DESCRIPTOR and self._spare is not None:
            os.close(self._spare)
            self._spare = None
            try:
                accepted, _ = self._socket.accept()
                accepted.close()
            except OSError:
                pass
            else:
                self._on_turned_away()
        if self._spare is None:
            self._spare = open_spare()
        if self._spare is None or error.errno not in NO_DESCRIPTOR:
            if error.errno not in ERRNOS:
                logger.warning("Could not accept a connection: %s", error)
            self._unwatch()
            self._loop.call_later(PAUSE_S, self._watch)


def open_spare() -> int | None:
    try:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
