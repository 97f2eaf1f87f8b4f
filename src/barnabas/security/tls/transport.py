"""The TLS transport: sits between a plain transport of the loop and a protocol, and encrypts what passes.

The plain transport reads into memory that all connections share. Received records are decrypted straight into
the buffer of the protocol above (`get_buffer`, `buffer_updated`). What the protocol writes is encrypted at
once, so that nothing waits in here: the plain transport's limits pause the protocol, and a protocol that
pauses reading stops the plain transport. Handshakes compute in threads (`run`), one step at a time for each
connection; before its ClientHello is complete, a connection has no OpenSSL object. Works on both sides.
Does not know: certificates, principals, listeners.
"""

from __future__ import annotations

import asyncio
import ssl
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, cast
from weakref import WeakKeyDictionary

RECEIVE_BYTES = 256 * 1024
WRITE_BYTES = 128 * 1024  # encrypted in one call; OpenSSL keeps a buffer of the largest one
ANSWERS_BYTES_MAX = 2 * 1024 * 1024  # that wait for a peer; more than a chunk of responses
RECORD_HEAD_BYTES = 5
RECORD_BYTES_MAX = RECORD_HEAD_BYTES + 16 * 1024
HANDSHAKE = 22  # the type of a record
NOT_TLS = "it sent something else than TLS"
LINGER_S = 0.5  # so that the peer reads our alert before its own data resets the connection
Run = Callable[[Callable[[], Any]], "asyncio.Future[Any]"]


_memory: WeakKeyDictionary[asyncio.AbstractEventLoop, memoryview] = WeakKeyDictionary()


def receive_memory(loop: asyncio.AbstractEventLoop) -> memoryview:
    """Memory that all connections of a loop read into: each read is decrypted before the next one."""
    found = _memory.get(loop)
    if found is None:
        found = _memory[loop] = memoryview(bytearray(RECEIVE_BYTES))
    return found


class TlsTransport(asyncio.Transport, asyncio.BufferedProtocol, ABC):
    """A side of a connection adds what it does with the peer: the methods that are abstract here."""

    __slots__ = (
        "_context", "_error", "_has_failed", "_hello", "_host_name", "_incoming", "_is_closing",
        "_is_delivering", "_is_lost", "_is_plain_paused", "_is_reading_paused", "_is_shaking", "_loop",
        "_object", "_outgoing", "_plain", "_protocol", "_receive", "_run",
    )  # fmt: skip

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        context: ssl.SSLContext,
        run: Run,
        receive: memoryview,
        host_name: str | None = None,
    ) -> None:
        """A `host_name` makes it the client's side."""
        super().__init__()
        self._loop = loop
        self._run = run
        self._receive = receive
        self._host_name = host_name
        self._context = context
        self._plain: asyncio.Transport
        self._protocol: asyncio.BufferedProtocol | None = None
        self._object: ssl.SSLObject | None = None
        self._incoming: ssl.MemoryBIO
        self._outgoing: ssl.MemoryBIO
        self._hello: bytearray | None = bytearray()  # until the first record is complete
        self._is_shaking = False  # a thread computes
        self._is_reading_paused = False  # by the protocol
        self._is_plain_paused = False
        self._is_delivering = False
        self._is_closing = False
        self._has_failed = False
        self._is_lost = False
        self._error: ssl.SSLError | None = None  # that ended the connection

    # -- what a side adds ------------------------------------------------------------------------

    @abstractmethod
    def examine(self, shaken: ssl.SSLObject) -> Any:
        """Check the peer after its handshake, in a thread. The result goes to `shaken`. Exceptions refuse
        the peer."""

    @abstractmethod
    def shaken(self, examined: Any) -> asyncio.BufferedProtocol | None:
        """The protocol of this connection, whose handshake is complete; None closes it."""

    @abstractmethod
    def refused(self, error: BaseException | str | None) -> None:
        """The handshake failed, and the connection will be closed; None: the peer closed it."""

    @abstractmethod
    def gone(self) -> None:
        """The connection was lost, and never had a protocol."""

    # -- what the plain transport calls ----------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._plain = cast(asyncio.Transport, transport)
        if self._host_name is not None:
            self._hello = None
            self._begin()
            self._shake()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._receive

    def buffer_updated(self, nbytes: int) -> None:
        if self._protocol is not None:
            self._incoming.write(self._receive[:nbytes])
            self._deliver()
        elif self._has_failed:
            pass  # lingers until the peer has read the alert
        elif self._hello is not None:
            self._hear(self._receive[:nbytes])
        else:
            self._incoming.write(self._receive[:nbytes])
            self._shake()

    def eof_received(self) -> bool:
        if self._protocol is not None:
            self._protocol.eof_received()
        elif not self._has_failed:
            self._fail(None)
        return False  # the plain transport closes

    def pause_writing(self) -> None:
        if self._protocol is not None:
            self._protocol.pause_writing()

    def resume_writing(self) -> None:
        if self._protocol is not None:
            self._protocol.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_lost = self._is_closing = True
        protocol, self._protocol = self._protocol, None
        if protocol is not None:
            protocol.connection_lost(exc or self._error)
        else:
            if not self._has_failed:
                self._has_failed = True
                self.refused(exc)
            self.gone()
        if not self._is_shaking:
            self._object = None

    # -- the handshake ---------------------------------------------------------------------------

    def _hear(self, data: memoryview) -> None:
        """Collect the first record. Only a peer that sends a whole one costs more than its socket."""
        hello = self._hello
        assert hello is not None
        hello += data
        if hello[0] != HANDSHAKE or (len(hello) > 1 and hello[1] != 3):
            self._fail(NOT_TLS)
            return
        if len(hello) < RECORD_HEAD_BYTES:
            return
        size = RECORD_HEAD_BYTES + int.from_bytes(hello[3:5], "big")
        if size > RECORD_BYTES_MAX:
            self._fail("its first record is larger than TLS allows")
        elif len(hello) >= size:
            self._pause_plain()
            self.hello_complete()

    def hello_complete(self) -> None:
        """Begin the handshake. A side may call this later, when it has room for another one."""
        hello, self._hello = self._hello, None
        assert hello is not None
        self._begin()
        self._incoming.write(hello)
        self._shake()

    @property
    def is_shaking(self) -> bool:
        """Whether a thread computes a step of the handshake, or will soon."""
        return self._is_shaking

    @property
    def is_lost(self) -> bool:
        return self._is_lost

    def _begin(self) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._object = self._context.wrap_bio(
            self._incoming, self._outgoing, self._host_name is None, self._host_name
        )

    def _shake(self) -> None:
        """Let a thread do the next step. Nothing is read meanwhile: OpenSSL's objects serve one thread."""
        self._is_shaking = True
        self._pause_plain()
        self._run(self._step).add_done_callback(self._stepped)

    def _step(self) -> tuple[bool, Any]:
        shaken = self._object
        assert shaken is not None
        try:
            shaken.do_handshake()
        except ssl.SSLWantReadError:
            return False, None
        return True, self.examine(shaken)

    def _stepped(self, future: asyncio.Future[tuple[bool, Any]]) -> None:
        self._is_shaking = False
        if self._is_lost or future.cancelled():
            self._object = None
            return
        self._flush()
        error = future.exception()
        if error is not None:
            self._fail(error)
            return
        is_done, examined = future.result()
        if is_done and not self._is_closing:
            self._open(examined)
        if not self._is_reading_paused:
            self._resume_plain()

    def _open(self, examined: Any) -> None:
        protocol = self.shaken(examined)
        if protocol is None:
            self.abort()
            return
        self._protocol = protocol
        protocol.connection_made(self)
        self._deliver()

    def _fail(self, error: BaseException | str | None) -> None:
        """Close, and let the peer read the alert that OpenSSL has written for it."""
        if self._has_failed:
            return
        self._has_failed = self._is_closing = True
        self.refused(error)
        if isinstance(error, BaseException) and self._plain.can_write_eof():
            self._plain.write_eof()
            self._resume_plain()
            self._loop.call_later(LINGER_S, self.abort)
        else:
            self._plain.abort()

    @property
    def is_silent(self) -> bool:
        """Whether the peer has sent nothing yet."""
        return self._hello is not None and not self._hello

    @property
    def first_bytes(self) -> bytes:
        """Of a peer that speaks something else than TLS."""
        return bytes(self._hello or b"")

    # -- decrypting ------------------------------------------------------------------------------

    def _deliver(self) -> None:
        """Hand everything that was received to the protocol, as much a call as it has room for."""
        if self._is_delivering:
            return
        shaken, incoming, protocol = self._object, self._incoming, self._protocol
        assert shaken is not None and protocol is not None
        self._is_delivering = True
        read = shaken.read
        is_over = False
        try:
            while not self._is_reading_paused and not self._is_closing and not is_over:
                buffer = cast(memoryview, protocol.get_buffer(-1))
                room, filled = len(buffer), 0
                try:
                    while filled < room:
                        count = read(room - filled, buffer[filled:] if filled else buffer)
                        if not count:  # the peer's goodbye
                            is_over = True
                            self._loop.call_soon(self._closed_by_peer)
                            break
                        filled += cast(int, count)
                        if not incoming.pending and not shaken.pending():
                            is_over = True  # asking again would cost an exception
                            break
                except ssl.SSLWantReadError:
                    is_over = True
                if filled:
                    protocol.buffer_updated(filled)
        except ssl.SSLError as error:
            self._error = error  # an alert, or a record that was tampered with: there is no way to go on
            self._plain.abort()
        finally:
            self._is_delivering = False
        if self._outgoing.pending:  # answers of OpenSSL itself, to a change of keys
            self._flush()
            if self._plain.get_write_buffer_size() > ANSWERS_BYTES_MAX + WRITE_BYTES:
                self.abort()  # the peer asks for new keys again and again, and reads nothing

    def _closed_by_peer(self) -> None:
        if self._protocol is not None and not self._is_closing:
            self._protocol.eof_received()
            self.close()

    def pause_reading(self) -> None:
        self._is_reading_paused = True
        self._pause_plain()

    def resume_reading(self) -> None:
        if self._is_reading_paused:
            self._is_reading_paused = False
            # Not now: the caller may be in the middle of another connection's request.
            self._loop.call_soon(self._read_on)

    def _read_on(self) -> None:
        if self._is_reading_paused or self._is_closing or self._protocol is None:
            return
        self._deliver()
        if not self._is_reading_paused:
            self._resume_plain()

    def is_reading(self) -> bool:
        return not self._is_reading_paused and not self._is_closing

    def _pause_plain(self) -> None:
        if not self._is_plain_paused and not self._is_lost:
            self._is_plain_paused = True
            self._plain.pause_reading()

    def _resume_plain(self) -> None:
        if self._is_plain_paused and not self._is_lost:
            self._is_plain_paused = False
            self._plain.resume_reading()

    # -- encrypting ------------------------------------------------------------------------------

    def write(self, data: Any) -> None:
        shaken = self._object
        if self._is_closing or shaken is None:
            return
        if len(data) <= WRITE_BYTES:
            shaken.write(data)
            self._plain.write(self._outgoing.read())
            return
        view = memoryview(data)
        for start in range(0, len(view), WRITE_BYTES):
            shaken.write(view[start : start + WRITE_BYTES])
            self._plain.write(self._outgoing.read())

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        self.write(b"".join(list_of_data))

    def _flush(self) -> None:
        data = self._outgoing.read()
        if data and not self._is_lost:
            self._plain.write(data)

    def get_write_buffer_size(self) -> int:
        return self._plain.get_write_buffer_size()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._plain.set_write_buffer_limits(high, low)

    def can_write_eof(self) -> bool:
        return False

    # -- closing ---------------------------------------------------------------------------------

    def close(self) -> None:
        """Send what was written and a goodbye, then close."""
        if self._is_closing:
            return
        self._is_closing = True
        if self._object is not None and not self._is_shaking:
            try:
                self._object.unwrap()
            except (ssl.SSLError, ValueError):
                pass  # the goodbye is written; the peer's is not waited for
            self._flush()
        self._plain.close()

    def abort(self) -> None:
        self._is_closing = True
        if not self._is_lost:
            self._plain.abort()

    def is_closing(self) -> bool:
        return self._is_closing

    # -- asyncio's rest --------------------------------------------------------------------------

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        if name == "sslcontext":
            return self._context
        if name == "ssl_object":
            return self._object
        return self._plain.get_extra_info(name, default)

    def get_protocol(self) -> asyncio.BaseProtocol:
        return cast(asyncio.BaseProtocol, self._protocol)
