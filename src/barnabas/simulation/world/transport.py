"""One end of a simulated TCP connection: bytes arrive in order, split anywhere, until it is closed or lost.

In: writes of a protocol. Out: calls of the other end's protocol, each in the context of its process. Bytes in
flight wait for their link (delay, rate, cuts) and for the reader. A writer with too many of them is paused.
Does not know: which links exist, why they are cut.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextvars import Context
from typing import TYPE_CHECKING, Any
from zlib import crc32

from barnabas.simulation.world.process import Process

if TYPE_CHECKING:
    from barnabas.simulation.world.network import Link, Network

KERNEL_BYTES = 128 * 1024  # buffers of the operating systems at both ends
HIGH_WATER_BYTES = 64 * 1024
SPLIT_CHANCE = 0.15


class SimulatedTransport(asyncio.Transport):
    def __init__(
        self, network: Network, process: Process, context: Context, link: Link, peername: Any
    ) -> None:
        super().__init__({"peername": peername})
        self.network = network
        self.process = process
        self.link = link  # towards the peer
        self.context = context
        self.peer: SimulatedTransport
        self.protocol: Any = None
        self.is_reset = False  # perhaps this end has not noticed it yet
        self.is_gone = False  # its protocol gets no more calls
        self.has_vanished = False  # its host lost power: bytes are not even refused
        self._is_closing = False
        self._is_reading = True
        self._is_pausing_writer = False
        self._high_bytes = HIGH_WATER_BYTES
        self._in_flight: deque[tuple[float, bytes]] = (
            deque()
        )  # when it arrives; no bytes: the end of the stream
        self._in_flight_bytes = 0
        self._last_arrival = 0.0
        self._pump: asyncio.TimerHandle | None = None

    def start(self, protocol: Any) -> None:
        self.protocol = protocol
        protocol.connection_made(self)

    # -- the writer's side ---------------------------------------------------------------------------

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._is_closing or self.is_gone or not self.process.is_alive or not data:
            return
        whole = bytes(data)
        rng = self.network.rng
        if len(whole) > 1 and rng.random() < SPLIT_CHANCE:
            where = rng.randrange(1, len(whole))
            self._send(whole[:where])
            self._send(whole[where:])
        else:
            self._send(whole)
        if not self._is_pausing_writer and self.get_write_buffer_size() > self._high_bytes:
            self._is_pausing_writer = True
            self.protocol.pause_writing()

    def _send(self, data: bytes) -> None:
        arrival = self.network.loop.time() + self.link.delay_s(len(data), self.network.rng)
        self._last_arrival = max(self._last_arrival, arrival)
        self._in_flight.append((self._last_arrival, data))
        self._in_flight_bytes += len(data)
        if len(self._in_flight) == 1:
            self.pump()

    def get_write_buffer_size(self) -> int:
        return max(0, self._in_flight_bytes - KERNEL_BYTES)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high_bytes = HIGH_WATER_BYTES if high is None else high

    def is_closing(self) -> bool:
        return self._is_closing or self.is_gone

    def close(self) -> None:
        """Close the connection after all written bytes have arrived."""
        if self._is_closing or not self.process.is_alive:
            return
        self._is_closing = True
        self._send(b"")
        self._tell_lost(None)

    def abort(self) -> None:
        """Drop all bytes in flight and reset the connection at the other end."""
        if self.is_gone or not self.process.is_alive:
            return
        self._is_closing = True
        self._tell_lost(None)
        self.drop()
        self.peer.reset()

    # -- the wire ------------------------------------------------------------------------------------

    def pump(self) -> None:
        """Schedule delivery of the first bytes in flight, unless the link is cut or the reader is paused."""
        if self._pump is None and self._in_flight:
            reader = self if self.peer.has_vanished or self.peer.is_gone else self.peer
            self._pump = self.network.loop.call_at(
                self._in_flight[0][0], self._deliver, context=reader.context
            )

    def _deliver(self) -> None:
        self._pump = None
        peer = self.peer
        if not self._in_flight:
            return
        if peer.has_vanished:
            if self.network.is_up(
                peer.process.host
            ):  # the host has rebooted and does not know the connection
                self.reset()
            else:
                self.link.waiting[self] = None
            return
        if self.link.is_cut:
            self.link.waiting[self] = None
            return
        if peer.is_gone:  # the reader has closed
            self.reset()
            return
        if not peer._is_reading:
            return  # `resume_reading` continues
        _, data = self._in_flight.popleft()
        self._in_flight_bytes -= len(data)
        if self._is_pausing_writer and self.get_write_buffer_size() <= self._high_bytes // 4:
            self._is_pausing_writer = False
            self.network.loop.call_soon(self._resume_writer, context=self.context)
        self.pump()
        if data:
            self.network.trace.note("bytes", self.process.host, peer.process.host, len(data), crc32(data))
            receive(peer, data)
        else:
            peer.end_of_stream()

    def _resume_writer(self) -> None:
        if not self.is_gone:
            self.protocol.resume_writing()

    def drop(self) -> None:
        self._in_flight.clear()
        self._in_flight_bytes = 0

    # -- the reader's side ---------------------------------------------------------------------------

    def end_of_stream(self) -> None:
        if not self.is_gone and not self.protocol.eof_received():
            self.close()

    def pause_reading(self) -> None:
        self._is_reading = False

    def resume_reading(self) -> None:
        self._is_reading = True
        self.peer.pump()

    def is_reading(self) -> bool:
        return self._is_reading

    # -- the end -------------------------------------------------------------------------------------

    def reset(self) -> None:
        """Reset the connection; this end notices it after the delay of the link."""
        if not self.is_gone and not self.has_vanished:
            self.is_reset = True
            delay_s = self.peer.link.delay_s(0, self.network.rng)
            self.network.loop.call_later(delay_s, self._was_reset, context=self.context)

    def _was_reset(self) -> None:
        self.drop()
        self._is_closing = True
        self._lost(ConnectionResetError(104, "Connection reset by peer"))

    def _tell_lost(self, error: Exception | None) -> None:
        self.network.loop.call_soon(self._lost, error, context=self.context)

    def _lost(self, error: Exception | None) -> None:
        if not self.is_gone:
            self.is_gone = True
            self.network.forget(self)
            if self.protocol is not None:  # otherwise it was lost before it was accepted
                self.protocol.connection_lost(error)

    def die(self, *, politely: bool) -> None:
        """The process was killed: the operating system closes or resets the connection."""
        self.is_gone = True
        self.network.forget(self)
        if politely and not self._is_closing:
            self._send(b"")
        elif not politely:
            self.drop()
            self.peer.reset()

    def vanish(self) -> None:
        """The host lost power: the other end notices nothing, at least until the host is back."""
        self.has_vanished = True
        self.network.forget(self)
        self.drop()
        writer = self.peer
        if writer._pump is not None:
            writer._pump.cancel()
            writer._pump = None
            writer.pump()


def receive(end: SimulatedTransport, data: bytes) -> None:
    protocol = end.protocol
    if not isinstance(protocol, asyncio.BufferedProtocol):
        protocol.data_received(data)
        return
    while data and not end.is_gone:
        buffer: Any = protocol.get_buffer(-1)
        count = min(len(buffer), len(data))
        buffer[:count] = data[:count]
        data = data[count:]
        protocol.buffer_updated(count)
