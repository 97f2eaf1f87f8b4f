"""HTTP/2 for services: one connection with many requests, by prior knowledge or by ALPN.

In: bytes of strangers, read by the library h2. Out: requests to the same ASGI application as HTTP/1.1 has.
Each stream has its own flow window, so a reader that takes nothing holds up its own response alone. Bodies
are acknowledged as the application reads them. Headers, streams at once and idle time have bounds.
Does not know: routes, callers, WebSockets (they stay on HTTP/1.1).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import unquote

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings
from starlette.types import ASGIApp, Message

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
STREAMS_MAX = 100
WINDOW_BYTES = 256 * 1024  # of a stream's body that the application has not read
CONNECTION_WINDOW_BYTES = 4 * 1024 * 1024
FRAME_HEAD_BYTES = 9
RESETS_MAX = 1000  # streams that a client may cancel on one connection
HOP_BY_HOP = {b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"}

log = logging.getLogger("barnabas.services")


class Bounds(NamedTuple):
    header_bytes_max: int
    stall_s_max: float
    idle_s_max: float


class Http2Connection(asyncio.Protocol):
    """Takes the place of an HTTP/1.1 connection once its client has sent the preface."""

    def __init__(
        self, application: ASGIApp, state: dict[str, Any], tasks: set[asyncio.Task[None]], bounds: Bounds
    ) -> None:
        self._application = application
        self._state = state
        self._tasks = tasks  # of the host, which cancels them when it stops
        header_bytes_max, stall_s_max, idle_s = bounds
        self._stall_s_max = stall_s_max
        self._idle_s = idle_s
        self._h2 = h2.connection.H2Connection(
            h2.config.H2Configuration(client_side=False, header_encoding=None)
        )
        self._h2.local_settings = h2.settings.Settings(
            client=False,
            initial_values={
                h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: STREAMS_MAX,
                h2.settings.SettingCodes.MAX_HEADER_LIST_SIZE: header_bytes_max,
                h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: WINDOW_BYTES,
                h2.settings.SettingCodes.ENABLE_CONNECT_PROTOCOL: 0,
            },
        )
        self._streams: dict[int, Stream] = {}
        self._resets = 0
        self._may_write = asyncio.Event()
        self._may_write.set()
        self._idle: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._on_lost: Callable[[], None] = lambda: None
        self.transport: asyncio.Transport = None  # type: ignore[assignment]  # set by `begin`

    def begin(self, transport: asyncio.Transport, data: bytes, on_lost: Callable[[], None]) -> None:
        """Take over a connection. `data` came already."""
        self.transport = transport
        self._on_lost = on_lost
        self._h2.initiate_connection()
        self._h2.increment_flow_control_window(CONNECTION_WINDOW_BYTES - 65_535)
        self._flush()
        self._note_idle()
        if data:
            self.data_received(data)

    def shutdown(self) -> None:
        """Finish the streams that are open; the connection takes no new ones."""
        if not self.transport.is_closing():
            self._h2.close_connection()
            self._flush()
            if not self._streams:
                self.transport.close()

    def timeout_keep_alive_handler(self) -> None:
        if not self._streams:
            self.shutdown()

    # -- the transport's calls ---------------------------------------------------------------------

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._idle, self._stalled):
            if timer is not None:
                timer.cancel()
        for stream in list(self._streams.values()):
            stream.disconnect()
        self._streams.clear()
        self._may_write.set()
        self._on_lost()

    def eof_received(self) -> None:
        return None

    def pause_writing(self) -> None:
        self._may_write.clear()
        loop = asyncio.get_running_loop()
        self._stalled = loop.call_later(self._stall_s_max, self.transport.abort)

    def resume_writing(self) -> None:
        self._may_write.set()
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def data_received(self, data: bytes) -> None:
        try:
            for event in self._h2.receive_data(data):
                self._handle(event)
        except h2.exceptions.ProtocolError:
            self._flush()
            self.transport.close()
            return
        self._flush()
        # h2 checks the length of a frame once the whole frame is there, which may be 16 MiB.
        if len(self._h2.incoming_buffer._data) > self._h2.max_inbound_frame_size + FRAME_HEAD_BYTES:
            self.transport.close()

    def _handle(self, event: h2.events.Event) -> None:
        match event:
            case h2.events.RequestReceived():
                self._open(event)
            case h2.events.DataReceived():
                stream = self._streams.get(event.stream_id)
                if stream is None:
                    self._h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                else:
                    stream.feed(event.data, event.flow_controlled_length)
            case h2.events.StreamEnded():
                if (stream := self._streams.get(event.stream_id)) is not None:
                    stream.end_body()
            case h2.events.StreamReset():
                self._resets += 1
                if (stream := self._streams.pop(event.stream_id, None)) is not None:
                    stream.disconnect()
                if self._resets > RESETS_MAX:
                    self._h2.close_connection(h2.errors.ErrorCodes.ENHANCE_YOUR_CALM)
                    self._flush()
                    self.transport.close()
            case h2.events.WindowUpdated():
                chosen = [event.stream_id] if event.stream_id else list(self._streams)
                for stream_id in chosen:
                    if stream_id in self._streams:
                        self._streams[stream_id].window.set()
            case h2.events.RemoteSettingsChanged():
                for stream in self._streams.values():
                    stream.window.set()
            case h2.events.ConnectionTerminated():
                if not self._streams:
                    self.transport.close()

    def _open(self, event: h2.events.RequestReceived) -> None:
        stream_id = event.stream_id
        assert stream_id is not None
        scope = scope_of(event.headers or [], self.transport, self._state)
        stream = Stream(self, stream_id, scope["method"] == "HEAD")
        self._streams[stream_id] = stream
        task = asyncio.get_running_loop().create_task(self._serve(scope, stream))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, scope: dict[str, Any], stream: Stream) -> None:
        try:
            await self._application(scope, stream.receive, stream.send)
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("a request on HTTP/2 failed")
        finally:
            self._finish(stream)

    def _finish(self, stream: Stream) -> None:
        if self._streams.pop(stream.stream_id, None) is None or self.transport.is_closing():
            return
        stream.disconnect()
        stream.acknowledge()
        if not stream.is_complete or not stream.is_body_ended:
            code = (
                h2.errors.ErrorCodes.NO_ERROR if stream.is_complete else h2.errors.ErrorCodes.INTERNAL_ERROR
            )
            self._quietly(lambda: self._h2.reset_stream(stream.stream_id, code))
        self._flush()
        self._note_idle()

    # -- for streams -------------------------------------------------------------------------------

    async def headers(self, stream_id: int, headers: list[tuple[bytes, bytes]], ends: bool) -> None:
        await self._may_write.wait()
        self._quietly(lambda: self._h2.send_headers(stream_id, headers, end_stream=ends))
        self._flush()

    async def data(self, stream: Stream, data: bytes, ends: bool) -> None:
        """Send all bytes, as fast as the client's windows and the transport allow."""
        view = memoryview(data)
        while not stream.is_gone:
            await self._may_write.wait()
            if stream.is_gone or self.transport.is_closing():
                return
            try:
                room = min(
                    self._h2.local_flow_control_window(stream.stream_id), self._h2.max_outbound_frame_size
                )
                if len(view) and room <= 0:
                    stream.window.clear()
                    await stream.window.wait()
                    continue
                piece = view[:room]
                view = view[len(piece) :]
                self._h2.send_data(stream.stream_id, bytes(piece), end_stream=ends and not len(view))
            except h2.exceptions.ProtocolError:
                stream.disconnect()
                return
            self._flush()
            if not len(view):
                return

    def acknowledge(self, stream_id: int, size: int) -> None:
        if size and not self.transport.is_closing():
            self._quietly(lambda: self._h2.acknowledge_received_data(size, stream_id))
            self._flush()

    def _quietly(self, action: Callable[[], None]) -> None:
        """Do something on a stream that its client may have closed in the meantime."""
        try:
            action()
        except (h2.exceptions.ProtocolError, KeyError):
            return

    def _flush(self) -> None:
        data = self._h2.data_to_send()
        if data and not self.transport.is_closing():
            self.transport.write(data)

    def _note_idle(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        if not self._streams and not self.transport.is_closing():
            self._idle = asyncio.get_running_loop().call_later(self._idle_s, self.timeout_keep_alive_handler)


class Stream:
    """One request and its response, as ASGI sees them."""

    def __init__(self, connection: Http2Connection, stream_id: int, is_head: bool) -> None:
        self.stream_id = stream_id
        self.window = asyncio.Event()
        self.is_gone = False
        self.is_complete = False
        self.is_body_ended = False
        self._connection = connection
        self._is_head = is_head
        self._body = bytearray()
        self._unacknowledged = 0
        self._changed = asyncio.Event()
        self._has_given_end = False

    def feed(self, data: bytes, size: int) -> None:
        self._body += data
        self._unacknowledged += size
        self._changed.set()

    def end_body(self) -> None:
        self.is_body_ended = True
        self._changed.set()

    def disconnect(self) -> None:
        self.is_gone = True
        self.window.set()
        self._changed.set()

    def acknowledge(self) -> None:
        size, self._unacknowledged = self._unacknowledged, 0
        self._connection.acknowledge(self.stream_id, size)

    async def receive(self) -> Message:
        while not (self._body or self.is_gone or (self.is_body_ended and not self._has_given_end)):
            self._changed.clear()
            await self._changed.wait()
        if self.is_gone:
            return {"type": "http.disconnect"}
        body, self._body = bytes(self._body), bytearray()
        self._has_given_end = self.is_body_ended
        self.acknowledge()
        return {"type": "http.request", "body": body, "more_body": not self.is_body_ended}

    async def send(self, message: Message) -> None:
        if self.is_gone:
            return
        if message["type"] == "http.response.start":
            headers = [(b":status", str(message["status"]).encode())]
            headers += [
                (name.lower(), value)
                for name, value in message.get("headers", [])
                if name.lower() not in HOP_BY_HOP
            ]
            await self._connection.headers(self.stream_id, headers, self._is_head)
            return
        ends = not message.get("more_body", False)
        body = b"" if self._is_head else message.get("body", b"")
        if not self._is_head and (body or ends):
            await self._connection.data(self, body, ends)
        if ends:
            self.is_complete = True


def scope_of(headers: list[Any], transport: asyncio.Transport, state: dict[str, Any]) -> dict[str, Any]:
    found: dict[bytes, bytes] = {}
    others: list[tuple[bytes, bytes]] = []
    for name, value in headers:
        if name.startswith(b":"):
            found[bytes(name)] = bytes(value)
        else:
            others.append((bytes(name), bytes(value)))
    if b":authority" in found and not any(name == b"host" for name, _ in others):
        others.insert(0, (b"host", found[b":authority"]))
    raw_path, _, query = found.get(b":path", b"/").partition(b"?")
    client, server = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "2",
        "scheme": found.get(b":scheme", b"http").decode("ascii", "replace"),
        "method": found.get(b":method", b"GET").decode("ascii", "replace").upper(),
        "path": unquote(raw_path.decode("latin-1")),
        "raw_path": raw_path,
        "query_string": query,
        "root_path": "",
        "headers": others,
        "client": (client[0], client[1]) if client else None,
        "server": (server[0], server[1]) if server else None,
        "state": state.copy(),
        "extensions": {},
    }
