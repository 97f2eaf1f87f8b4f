"""The outbox: responses that are being sent to one client, at most a chunk of them in memory.

In: parts of framed responses (bytes, and slices of log files). Out: small responses leave at once in one
write. Large slices leave by `sendfile` from the page cache if socket and file are plain, else (TLS,
simulation, encryption at rest) chunk by chunk through the transport. A thread first reads bytes that are not
in the page cache, so that the event loop does not wait for the disk. Does not know: what is in the
responses.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections import deque
from collections.abc import Callable
from typing import Any

from barnabas.broker.wire.measuring import Traffic
from barnabas.protocol import KafkaError
from barnabas.runtime.descriptors import Share
from barnabas.storage.segments.log_slice import LogSlice

SMALL_BYTES = 64 * 1024  # slices up to this are read and sent together with what surrounds them
CHUNK_BYTES = 1024 * 1024
TURN_BYTES_MAX = 4 * CHUNK_BYTES  # sent by one channel before others have their turn
DECRYPTED_BYTES_MAX = 96 * 1024  # at once; above 128 KiB the memory is new each time, and three times slower
DECRYPTIONS_MAX = 4  # in a turn, each a quarter of a millisecond at most
PART_BYTES_MIN = 8 * 1024  # sending a shorter part costs a call, too: it counts as this long
SLICES_AT_ONCE_MAX = 256  # read into one write
JOINED_BYTES_MAX = 4096  # longer parts are not worth a copy
log = logging.getLogger("barnabas.channel")

_MORE: int = getattr(socket, "MSG_MORE", 0)


class Outbox:
    __slots__ = (
        "_done", "_is_closed", "_is_paused", "_is_watching", "_loop", "_parts", "_sent", "_share", "_socket",
        "_traffic", "_transport", "_warming",
    )  # fmt: skip

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        transport: asyncio.Transport,
        done: Callable[[], None],
        share: Share,
        traffic: Traffic | None = None,
    ) -> None:
        self._loop = loop
        self._traffic = traffic or Traffic()
        self._transport = transport
        self._done = done
        self._share = share  # of descriptors: the duplicate socket needs one
        self._parts: deque[Any] = deque()
        self._sent = 0  # bytes of the first part that were sent
        self._socket: socket.socket | None = (
            None  # a duplicate of the transport's, made for the first long response
        )
        self._is_paused = False  # the transport's buffer is full
        self._is_watching = False  # the loop calls `_writable` when the duplicate is writable
        self._warming: asyncio.Future[Any] | None = None  # a thread reads the next chunk into the page cache
        self._is_closed = False

    def put(self, parts: list[Any], *, has_slices: bool) -> bool:
        """Send these parts in order. Returns False if some must wait; `done` is called when they are sent."""
        if not self._parts and not self._is_paused:
            ready = small_enough(parts) if has_slices else parts[0] if len(parts) == 1 else b"".join(parts)
            if ready is not None:
                self._transport.write(ready)
                self._traffic.bytes_out += len(ready)
                return not self._is_paused
        self._parts += joined(parts) if has_slices else parts
        return self._pump()

    @property
    def queued_parts(self) -> int:
        return len(self._parts)

    @property
    def is_waiting(self) -> bool:
        """Whether parts wait until the client reads earlier ones."""
        return bool(self._parts) or self._is_paused

    @property
    def mark(self) -> tuple[int, int, int]:
        """The position of the output: it changes whenever bytes are sent."""
        return len(self._parts), self._sent, self._transport.get_write_buffer_size()

    def pause(self) -> None:
        self._is_paused = True

    def resume(self) -> None:
        self._is_paused = False
        if not self._parts or self._pump():
            self._done()

    def close(self) -> None:
        """Drop waiting parts and release their files: the connection is closed."""
        self._is_closed = True
        self._parts.clear()
        self._done = nothing  # breaks the reference cycle with the channel
        if self._socket is not None:
            self._unwatch()
            self._socket.close()
            self._socket = None
            self._share.release()

    # -- moving ----------------------------------------------------------------------------------

    def _pump(self) -> bool:
        """Send parts. Returns True when all are sent, False if the rest must wait."""
        if self._warming is not None or self._is_paused or self._is_closed:
            return False
        plain = self._plain_socket()
        budget = TURN_BYTES_MAX
        decryptions = DECRYPTIONS_MAX
        try:
            while self._parts:
                part = self._parts[0]
                is_slice = isinstance(part, LogSlice)
                if is_slice and not part.is_cached(self._sent, CHUNK_BYTES):
                    self._unwatch()
                    self._warm(part)
                    return False
                if is_slice and not part.is_plain:
                    if not decryptions:
                        self._unwatch()
                        self._loop.call_soon(self._continue)
                        return False
                    decryptions -= 1
                    self._decrypt_first(part)
                    continue
                if plain is not None and not self._transport.get_write_buffer_size():
                    if budget <= 0:
                        raise BlockingIOError  # others first; a writable socket comes back at once
                    sent = self._send_plain(plain, part, is_slice)
                    budget -= max(sent, PART_BYTES_MIN)
                else:
                    sent = self._send_through(part, is_slice)
                self._traffic.bytes_out += sent
                self._sent += sent
                if self._sent >= len(part):
                    self._parts.popleft()
                    self._sent = 0
                if self._is_paused:
                    self._unwatch()
                    return False
        except (BlockingIOError, InterruptedError):
            assert plain is not None
            if not self._is_watching:
                self._is_watching = True
                self._loop.add_writer(plain.fileno(), self._writable)
            return False
        except OSError:
            self._unwatch()
            self._parts.clear()
            self._transport.abort()
            return False
        self._unwatch()
        return True

    def _send_plain(self, plain: socket.socket, part: Any, is_slice: bool) -> int:
        if is_slice:
            count = min(len(part) - self._sent, CHUNK_BYTES)
            sent = os.sendfile(plain.fileno(), part.fileno(), part.position + self._sent, count)
            if not sent:
                raise OSError("the log file is shorter than the response says")
            return sent
        more = _MORE if len(self._parts) > 1 else 0
        return plain.send(memoryview(part)[self._sent :] if self._sent else part, more)

    def _decrypt_first(self, part: LogSlice) -> None:
        """Put the next bytes of an encrypted slice in front of the rest of it."""
        data = read_or_zeros(part, self._sent, DECRYPTED_BYTES_MAX)
        rest = part.after(self._sent + len(data))
        self._sent = 0
        if len(rest):
            self._parts[0] = rest
            self._parts.appendleft(data)
        else:
            self._parts[0] = data

    def _send_through(self, part: Any, is_slice: bool) -> int:
        if is_slice:
            data: Any = part.read_part(self._sent, CHUNK_BYTES)
        else:
            data = memoryview(part)[self._sent :] if self._sent else part
        self._transport.write(data)
        return len(data)

    def _writable(self) -> None:
        if self._pump():
            self._done()

    def _continue(self) -> None:
        if self._parts and self._pump():
            self._done()

    def _unwatch(self) -> None:
        if self._is_watching and self._socket is not None:
            self._is_watching = False
            self._loop.remove_writer(self._socket.fileno())

    def _warm(self, part: LogSlice) -> None:
        """Let a thread read the next chunk, so that sending it does not wait for the disk."""
        self._warming = self._loop.run_in_executor(None, read_or_zeros, part, self._sent, CHUNK_BYTES)
        self._warming.add_done_callback(self._warmed)

    def _warmed(self, future: asyncio.Future[Any]) -> None:
        self._warming = None
        if self._is_closed or future.cancelled():
            return
        if future.exception() is not None:
            self._parts.clear()
            self._transport.abort()
            return
        if self._parts:
            # Send the bytes that were read: another query of the page cache could fail again, for ever.
            self._transport.write(future.result())
            self._traffic.bytes_out += len(future.result())
            self._sent += len(future.result())
            if self._sent >= len(self._parts[0]):
                self._parts.popleft()
                self._sent = 0
        if self._pump():
            self._done()

    def _plain_socket(self) -> socket.socket | None:
        if self._socket is None and self._transport.get_extra_info("sslcontext") is None:
            original = self._transport.get_extra_info("socket")
            if original is not None and hasattr(os, "sendfile") and self._share.acquire():
                try:
                    self._socket = socket.socket(fileno=os.dup(original.fileno()))
                    self._socket.setblocking(False)
                except OSError:
                    self._share.release()  # no descriptor: the transport copies, more slowly
        return self._socket


def nothing() -> None:
    """The `done` of a closed connection."""


def small_enough(parts: list[Any]) -> bytes | None:
    """All parts as one bytes object; None if they are long, if a slice is long or likely not in the page
    cache, or if there are many of them, or much to decrypt."""
    encrypted = slices = total = 0
    for index, part in enumerate(parts):
        size = len(part)
        total += size
        if total > CHUNK_BYTES:
            return None
        if isinstance(part, LogSlice):
            slices += 1
            encrypted += 0 if part.is_plain else size
            if max(size, encrypted) > SMALL_BYTES or slices > SLICES_AT_ONCE_MAX:
                return None
            if not part.can_read_without_disk(0, size):
                return None
            try:
                parts[index] = part.read()
            except KafkaError:
                return None  # it is sent in parts, as far as it can be read
    return parts[0] if len(parts) == 1 else b"".join(parts)


def read_or_zeros(part: LogSlice, start: int, count: int) -> bytes:
    """Read bytes of a slice; zeros instead of all that is left if an encrypted file is damaged there. The
    length of the response is sent already. Clients refuse zeros as a corrupt batch of this one partition."""
    try:
        return part.read_part(start, count)
    except KafkaError as error:
        log.error("%s; sending zeros instead", error.message)
        return bytes(min(count, len(part) - start))


def joined(parts: list[Any]) -> list[Any]:
    """Join short neighbouring parts: the head of a response is sent in one call instead of seven."""
    out: list[Any] = []
    run: list[Any] = []
    for part in parts:
        if isinstance(part, LogSlice) or len(part) > JOINED_BYTES_MAX:
            if run:
                out.append(b"".join(run))
                run = []
            out.append(part)
        else:
            run.append(part)
    if run:
        out.append(b"".join(run))
    return out
