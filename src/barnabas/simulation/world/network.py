"""The simulated network: hosts, links between them, listening sockets.

In: connects and binds of processes; cuts, slow links, resets and power losses from fault injection. Out:
pairs of transports. A link has a direction, so a cut may be one-way. Bytes on a cut link wait for its end, as
with TCP's retransmission. Connections do not delay each other.
Does not know: what is sent.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from random import Random
from typing import Any

from barnabas.simulation.world.loop import SimulatedLoop
from barnabas.simulation.world.process import PROCESS, Process
from barnabas.simulation.world.trace import Trace
from barnabas.simulation.world.transport import SimulatedTransport

DELAY_MS_MEAN = 0.5
DELAY_MS_MIN = 0.05
CONNECT_RETRY_S = 0.05
FIRST_FREE_PORT = 40_000


@dataclass(slots=True, eq=False)
class Link:
    """One direction between two hosts."""

    delay_ms_mean: float = DELAY_MS_MEAN
    bytes_per_s: float | None = None
    is_cut: bool = False
    waiting: dict[SimulatedTransport, None] = field(
        default_factory=dict
    )  # transports with bytes that wait for the end of the cut

    def set_speed(self, delay_ms_mean: float | None, bytes_per_s: float | None) -> None:
        """Set delay and bandwidth; None restores the default."""
        self.delay_ms_mean = DELAY_MS_MEAN if delay_ms_mean is None else delay_ms_mean
        self.bytes_per_s = bytes_per_s

    def delay_s(self, size: int, rng: Random) -> float:
        delay_ms = DELAY_MS_MIN + rng.expovariate(1 / self.delay_ms_mean)
        return delay_ms / 1000 + (size / self.bytes_per_s if self.bytes_per_s else 0.0)


class SimulatedSocket:
    """A bound address."""

    def __init__(self, network: Network, process: Process, host: str, port: int) -> None:
        self._network = network
        self.process = process
        self.address = host, port

    def getsockname(self) -> tuple[str, int]:
        return self.address

    def close(self) -> None:
        self._network.release(self)


class SimulatedArrival:
    """An accepted connection that has no protocol yet (see `runtime.accepting.Arrival`)."""

    def __init__(self, end: SimulatedTransport) -> None:
        self._end = end
        self.host: str = end.get_extra_info("peername")[0]
        end.pause_reading()

    def serve(self, factory: Callable[[], Any], failed: Callable[[], None]) -> None:
        if self._end.is_gone or not self._end.process.is_alive:
            failed()
            return
        self._end.resume_reading()
        self._end.start(factory())

    def close(self) -> None:
        self._end.close()


class SimulatedServer:
    """The result of `create_server`, reduced to what is used, and an `Acceptor` of `runtime.accepting`."""

    def __init__(
        self,
        network: Network,
        bound: SimulatedSocket,
        on_connection: Callable[[SimulatedArrival], None],
        context: Context,
    ) -> None:
        self._network = network
        self._on_connection = on_connection
        self._queue: list[SimulatedTransport] = []
        self._is_paused = False
        self.sockets = (bound,)
        self.port = bound.address[1]
        self.context = context

    def accept(self, end: SimulatedTransport) -> None:
        if self._is_paused:
            end.pause_reading()
            self._queue.append(end)
        elif end.process.is_alive and not end.is_gone:
            self._on_connection(SimulatedArrival(end))

    def pause(self) -> None:
        self._is_paused = True

    def resume(self) -> None:
        self._is_paused = False
        queue, self._queue = self._queue, []
        for end in queue:
            self._network.loop.call_soon(self.accept, end, context=end.context)

    def close(self) -> None:
        self._network.release(self.sockets[0])

    async def wait_closed(self) -> None:
        """Closing takes no time here."""


class Network:
    def __init__(self, loop: SimulatedLoop, rng: Random, trace: Trace) -> None:
        self.loop = loop
        self.rng = rng
        self.trace = trace
        self._links: dict[tuple[str, str], Link] = {}
        self._bound: dict[tuple[str, int], SimulatedSocket] = {}
        self._servers: dict[tuple[str, int], SimulatedServer] = {}
        self._ends: dict[SimulatedTransport, None] = {}
        self._down: set[str] = set()
        self._next_port = FIRST_FREE_PORT

    # -- faults ------------------------------------------------------------------------------------

    def link(self, source: str, target: str) -> Link:
        return self._links.setdefault((source, target), Link())

    def cut(self, source: str, target: str) -> None:
        self.link(source, target).is_cut = True

    def heal(self, source: str, target: str) -> None:
        link = self.link(source, target)
        link.is_cut = False
        self._resume_link(link)

    def _resume_link(self, link: Link) -> None:
        waiting, link.waiting = link.waiting, {}
        for end in waiting:
            end.pump()

    def reset_connections(self, host: str) -> int:
        """Reset every connection of a host at both ends. Returns their number."""
        mine = [end for end in self._ends if end.process.host == host]
        for end in mine:
            end.drop()
            end.peer.drop()
            end.reset()
            end.peer.reset()
        return len(mine)

    def is_resetting(self, host: str) -> bool:
        """Whether a host has yet to notice that one of its connections was reset."""
        return any(end.is_reset for end in self._ends if end.process.host == host)

    def killed(self, process: Process) -> None:
        """Close all sockets of a killed process, as the operating system does."""
        for end in [end for end in self._ends if end.process is process]:
            end.die(politely=self.rng.random() < 0.5)
        self._release_all(process)

    def lost_power(self, process: Process) -> None:
        """Stop all traffic of the host until `boot`."""
        self._down.add(process.host)
        for end in [end for end in self._ends if end.process is process]:
            end.vanish()
        self._release_all(process)

    def boot(self, host: str) -> None:
        self._down.discard(host)
        for (_, target), link in self._links.items():
            if target == host:
                self._resume_link(link)

    def is_up(self, host: str) -> bool:
        return host not in self._down

    def _release_all(self, process: Process) -> None:
        for bound in [bound for bound in self._bound.values() if bound.process is process]:
            self.release(bound)

    # -- ports -------------------------------------------------------------------------------------

    def bind(self, host: str, port: int) -> SimulatedSocket:
        process = running_process()
        if not port:
            self._next_port += 1
            port = self._next_port
        address = host or process.host, port
        if address in self._bound:
            raise OSError(errno.EADDRINUSE, "another process listens there")
        bound = self._bound[address] = SimulatedSocket(self, process, *address)
        return bound

    def listen(
        self, on_connection: Callable[[SimulatedArrival], None], bound: SimulatedSocket
    ) -> SimulatedServer:
        server = SimulatedServer(self, bound, on_connection, copy_context())
        self._servers[bound.address] = server
        return server

    def release(self, bound: SimulatedSocket) -> None:
        if self._bound.get(bound.address) is bound:
            del self._bound[bound.address]
            self._servers.pop(bound.address, None)

    def forget(self, end: SimulatedTransport) -> None:
        self._ends.pop(end, None)

    async def connect(
        self, factory: Callable[[], Any], host: str, port: int
    ) -> tuple[SimulatedTransport, Any]:
        process = running_process()
        there, back = self.link(process.host, host), self.link(host, process.host)
        await asyncio.sleep(there.delay_s(0, self.rng) + back.delay_s(0, self.rng))
        while there.is_cut or back.is_cut or not self.is_up(host):
            await asyncio.sleep(CONNECT_RETRY_S)
        server = self._servers.get((host, port))
        if server is None:
            raise ConnectionRefusedError(errno.ECONNREFUSED, f"nobody listens at {host}:{port}")
        self._next_port += 1
        listening = server.sockets[0].process
        mine = SimulatedTransport(self, process, copy_context(), there, (host, port))
        peername = (process.host, self._next_port)
        theirs = SimulatedTransport(self, listening, server.context.copy(), back, peername)
        mine.peer, theirs.peer = theirs, mine
        self._ends[mine] = self._ends[theirs] = None
        self.trace.note("connect", process.host, host, port)
        # This runs before any sent bytes arrive, since every link has a delay.
        self.loop.call_soon(server.accept, theirs, context=theirs.context)
        protocol = factory()
        mine.start(protocol)
        return mine, protocol


def running_process() -> Process:
    process = PROCESS.get()
    if process is None:
        raise RuntimeError("only processes have a host to connect from or to listen on")
    return process


class SimulatedSockets:
    """The socket port of `runtime.sockets` on this network."""

    def __init__(self, network: Network) -> None:
        self._network = network

    def bind(self, host: str, port: int) -> Any:
        return self._network.bind(host, port)

    def listen(
        self,
        bound: Any,
        backlog: int,
        on_connection: Callable[[Any], None],
        on_turned_away: Callable[[], None],
    ) -> SimulatedServer:
        return self._network.listen(on_connection, bound)

    def host_name(self) -> str:
        return running_process().host
