"""The channel: one client's connection. It reads frames, calls handlers and sends responses in request order.

A channel handles requests as they arrive, several a wake-up. A handler that cannot respond at once makes the
channel busy. Requests that arrive meanwhile wait; when they fill the inbox, the channel stops reading. This
keeps responses in order and slows the client down. A malformed request, an unknown API or an unknown version
closes the connection, as in Kafka. Does not know: what requests mean, where records are stored.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from collections import deque
from collections.abc import Coroutine
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, cast

from barnabas.broker.api.context import NO_CONTEXT, RequestContext
from barnabas.broker.api.deferred import Deferred, Response
from barnabas.broker.api.large_requests import LARGE_FRAME_BYTES, decode_few, handle_large
from barnabas.broker.api.request_header import read_header, skip_header
from barnabas.broker.produce.direct_produce import produce_directly
from barnabas.broker.produce.pending_responses import NO_RESPONSES, MessageResponse, ProduceResponses
from barnabas.broker.produce.purgatory import CommittedResponse
from barnabas.broker.wire.connection_flow import ConnectionFlow
from barnabas.broker.wire.follower_shortcut import FollowerShortcut
from barnabas.broker.wire.measuring import Traffic, note_wait, sample_size
from barnabas.broker.wire.outbox import Outbox
from barnabas.connection.inbox import SIZE_BYTES, Inbox
from barnabas.protocol import ApiKey, Message, ProtocolError

if TYPE_CHECKING:
    from barnabas.broker.api.routes import Route
    from barnabas.broker.metrics import ApiMetrics
    from barnabas.broker.produce.flush_waits import SyncedResponse
    from barnabas.broker.produce.pending_responses import Refuse
    from barnabas.broker.produce.purgatory import Wait
    from barnabas.broker.wire.login import Login
    from barnabas.broker.wire.server import Listener
    from barnabas.protocol.messages.fetch import FetchRequest
    from barnabas.protocol.messages.produce import ProduceResponse
    from barnabas.replication.fetch_sessions import FetchContext

log = logging.getLogger("barnabas.channel")
_size = struct.Struct(">i").unpack_from
_head = struct.Struct(">hhih").unpack_from
_FETCH = int(ApiKey.FETCH)
_WITH_SLICES = _FETCH, int(ApiKey.SHARE_FETCH)  # responses that refer to log files
HEADER_BYTES_MIN = 10
REQUESTS_A_TURN = 100  # some milliseconds; requests of `produce_directly` are short and do not count
JOINED_BYTES_MAX = 128 * 1024  # longer responses are sent in parts
QUEUE_MAX = 512  # responses that wait in order; the channel handles no further request then


class Channel(ConnectionFlow):
    __slots__ = (
        "_blocks", "_body_at", "_client_raw", "_frame", "_has_pending", "_has_slices", "_is_queue_full",
        "_queued_ns", "_route", "_sending_ns", "_time", "_turn", "_waiting_for", "context", "host", "inbox",
        "is_busy", "last_active", "listener", "login", "now_ms", "out", "outbox", "partitions", "produced",
        "response_queue", "responses_pending", "routes", "sent_times", "shortcut", "tick", "traffic",
        "transport", "unsent",
    )  # fmt: skip

    def __init__(self, listener: Listener, host: str) -> None:
        self.listener = listener
        self.tick = listener.tick
        self.routes = listener.router.routes
        self.partitions = listener.broker.partitions
        self.now_ms = listener.broker.clock.now_ms
        self._time = listener.loop.time
        self.inbox = Inbox(listener.tick.arena, listener.frame_bytes_max)
        self.context = RequestContext(listener.broker, self, listener.name)
        self.host = self.context.host = host
        self.traffic = Traffic()
        self._queued_ns = self._sending_ns = 0  # since when requests, or a long response, wait
        self.sent_times: ApiMetrics | None = None  # of the API whose response is sent next
        self.login: Login | None = None  # on listeners with SASL, until the session has no limit
        self.out: list[Any] = []  # encoded responses of this wake-up
        self.produced = ProduceResponses(self)
        self.responses_pending = 0  # the tick has them and will encode them: later responses go behind them
        # Responses that wait for followers or a sync, and encoded responses that must leave after them.
        self.response_queue: deque[CommittedResponse | SyncedResponse | list[Any]] = deque()
        self._is_queue_full = False
        self.is_busy = False
        self._blocks = 0  # reasons to handle no further request
        self._has_pending = False  # the last request is over when its CommittedResponse leaves
        self._has_slices = False  # log slices are in `out`
        self.last_active = 0.0
        self._route: Route
        self._frame: memoryview
        self._body_at = 0  # in the frame
        self.shortcut: FollowerShortcut | None = None
        self._client_raw: memoryview | None = None
        self._waiting_for: Deferred | asyncio.Task[None] | None = None
        self._muted: asyncio.TimerHandle | None = None
        self.unsent: Message | None = None  # the response that the last handler gave to the tick
        self._is_paused = self._is_closing = False

    # -- the transport's side ------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        listener = self.listener
        self.outbox = Outbox(listener.loop, self.transport, self._output_done, listener.share, self.traffic)
        self.last_active = self.listener.loop.time()
        if not self.listener.connected(self):
            self.abort("the listener is closed")

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.inbox.buffer()  # and nothing else: uvloop crashes if reading ends in here

    def buffer_updated(self, nbytes: int) -> None:
        self.last_active = self._time()
        self.traffic.bytes_in += nbytes
        run = self.inbox.received(nbytes)
        if run is None:
            return
        if self.is_busy:
            self._queued_ns = self._queued_ns or perf_counter_ns()
            self.inbox.consume(run, 0, referenced=False)
            if self.inbox.is_full:
                self.pause()
            waiting = self._waiting_for
            if type(waiting) is Deferred and waiting.on_next is not None:
                waiting.on_next()
        else:
            self._handle(run)

    def pause_writing(self) -> None:
        self.outbox.pause()

    def resume_writing(self) -> None:
        self.outbox.resume()

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_closing = True
        if self._waiting_for is not None:
            self._waiting_for.cancel()
        if self._muted is not None:
            self._muted.cancel()
        if self.login is not None:
            self.login.close()
        self.outbox.close()
        self.inbox.release_buffers()
        self.out.clear()
        for waiting in self.response_queue:
            if isinstance(waiting, CommittedResponse) and not waiting.is_ready:
                self.listener.broker.purgatory.abandon(waiting)
        self.response_queue.clear()
        self.listener.dismiss(self)
        # Reference cycles would wait for the garbage collector, possibly for hours.
        self.context, self.produced, self.shortcut, self.login = NO_CONTEXT, NO_RESPONSES, None, None

    # -- requests ------------------------------------------------------------------------------

    def _handle(self, run: memoryview) -> bool:
        """Handle the frames in a run. Returns whether there was any."""
        position, end, count = 0, len(run), 0
        inbox, tick = self.inbox, self.tick
        tick.wakeups += 1
        if not tick.wakeups & tick.sampled:
            sample_size(self, run)
        inbox.arena.is_lent = True
        self._turn = REQUESTS_A_TURN
        try:
            while end - position >= SIZE_BYTES and not self.is_busy and not self._is_closing:
                size = _size(run, position)[0]
                start, position = position, position + SIZE_BYTES + size
                if position > end or not inbox.frame_bytes_min <= size <= inbox.frame_bytes_max:
                    position = start
                    inbox.frame_end(run, start, end)  # raises if the size is wrong
                    break
                count += 1
                self._request(run[start + SIZE_BYTES : position])
        except ProtocolError as error:
            self.refuse(f"malformed request: {error}")
        except Exception:
            log.exception("a request from %s failed; the connection is closed", self.host)
            self.close()
        finally:
            inbox.arena.is_lent = False  # otherwise other channels would wait for it for ever
        self.traffic.requests += count
        position = end if self._is_closing else position
        inbox.consume(run, position, referenced=tick.is_open)
        if tick.is_open:
            tick.channel_done()
        if self.is_busy and inbox.is_full:
            self.pause()
        if inbox.waits_for_memory:
            self.pause()
            tick.arena.wait_for_room(self.resume)
        if self.out and not self.responses_pending:
            self.send()
        return position > 0

    def _request(self, frame: memoryview) -> None:
        if len(frame) < HEADER_BYTES_MIN:
            raise ProtocolError("header", f"{len(frame)} bytes are too few for a request header")
        key, version, correlation_id, client_length = _head(frame)
        if key == _FETCH:
            known = self.shortcut
            if known is not None and known.tail is not None and known.serve(frame, version, correlation_id):
                return
        route = self.routes.get(key << 16 | version)
        if route is None:
            route = self.listener.router.find(key, version)
            if route is None:
                self.refuse(f"api key {key} version {version} is not served on listener {self.listener.name}")
                return
        position = HEADER_BYTES_MIN + client_length if client_length > 0 else HEADER_BYTES_MIN
        if route.layout is not None and produce_directly(self, route, frame, position, correlation_id):
            return
        self.read_client(frame, position, route)
        if route.flexible_request:
            if position >= len(frame):
                raise ProtocolError("header", "the header is cut off")
            position = skip_header(frame) if frame[position] else position + 1
        context = self.context
        context.correlation_id = correlation_id
        context.version = version
        self._route = route
        started = perf_counter_ns()
        context.owns_frame = False
        if len(frame) > LARGE_FRAME_BYTES:
            request = None if route.has_many_elements else decode_few(route, frame, position)
            if request is None:
                data = self._frame = memoryview(bytearray(frame))
                self._wait(route, correlation_id, handle_large(route, data, position, context), started)
                return
        else:
            request, _ = route.decode(frame, position)
        self._frame = frame
        self._body_at = position
        self.accept_result(route, correlation_id, route.handler(request, context), started)
        self._turn -= 1
        if not self._turn:  # handle the rest in the next turn of the loop, after other channels
            self.block_requests()
            self.listener.loop.call_soon(self.unblock_requests)

    def accept_result(self, route: Route, correlation_id: int, result: Any, started: int) -> None:
        """Accept what a handler returned: a response, a promise of one, or None if the tick has it."""
        if result is not None and not isinstance(result, Message):
            self._wait(route, correlation_id, result, started)
            return
        if result is not None:
            self.respond(route, correlation_id, result)
        self._observe(route, started)

    def _observe(self, route: Route, started: int) -> None:
        """Count the time of a request that is over. A CommittedResponse counts its own when it leaves."""
        if self._has_pending:
            self._has_pending = False
        else:
            self.times_of(route).observe(perf_counter_ns() - started)

    def times_of(self, route: Route) -> ApiMetrics:
        """Followers' fetches are counted apart from those of consumers."""
        if self.shortcut is not None and route.key == _FETCH:
            return route.follower_times(self.listener.broker.metrics)
        return route.times

    def read_client(self, frame: memoryview, position: int, route: Route) -> None:
        """Check and remember the client id if it differs from the last request's."""
        if self._client_raw is not None and frame[8:position] == self._client_raw:
            return
        header, _ = read_header[route.flexible_request](frame, 0)
        self.context.client_id = header.client_id
        self._client_raw = memoryview(bytes(frame[8:position]))

    def learn_fetch(self, request: FetchRequest, session: FetchContext, follower: int) -> None:
        """Remember the follower's fetch that is being handled: the next may take a shortcut."""
        self.learn_follower().learn(request, session, follower, self._route, self._frame, self._body_at)

    def learn_follower(self) -> FollowerShortcut:
        """Count the fetches of this connection as a follower's from now on."""
        if self.shortcut is None:
            self.shortcut = FollowerShortcut(self)
        return self.shortcut

    def _wait(self, route: Route, correlation_id: int, result: Any, started: int) -> None:
        """Wait for a handler that responds later. The channel handles no further request until then."""
        self.is_busy = True
        local_ns = perf_counter_ns() - started

        def finished(response: Response | None) -> None:
            self._waiting_for = None
            self.is_busy = self._blocks > 0
            if not self._has_pending:
                remote_ns = perf_counter_ns() - started - local_ns
                self.times_of(route).observe_wait(local_ns, remote_ns)
            self._has_pending = False
            if self._is_closing:
                return
            try:
                if response is not None:
                    self.respond(route, correlation_id, response)
                if self.out and not self.responses_pending:
                    self.send()
            except Exception:
                self.fail("responding")
                return
            self._continue()

        if isinstance(result, Deferred):
            self._waiting_for = result
            result.then(finished)
        else:
            task = self._waiting_for = self.listener.loop.create_task(self._await(result, finished))
            task.add_done_callback(lambda _: result.close())  # if the task was cancelled before it began

    async def _await(self, result: Coroutine[Any, Any, Message | None], finished: Any) -> None:
        try:
            response = await result
        except ProtocolError as error:
            self.refuse(f"malformed request: {error}")
            return
        except Exception:
            log.exception("a request from %s failed; the connection is closed", self.host)
            self.close()
            return
        finished(response)

    def _continue(self) -> None:
        """Handle requests that arrived meanwhile, then read on; not within another channel's request."""
        if self.inbox.arena.is_lent:
            self.listener.loop.call_soon(self._continue)
            return
        while not self.is_busy and not self._is_closing:
            run = self.inbox.pop_waiting()
            if run is None:
                break
            if self._queued_ns:
                note_wait(self, run, perf_counter_ns() - self._queued_ns)
                self._queued_ns = 0
            if not self._handle(run):
                break
        inbox = self.inbox
        if self._is_paused and not (self.is_busy or inbox.is_full or inbox.waits_for_memory):
            self.resume()

    # -- responses -----------------------------------------------------------------------------

    def respond(self, route: Route, correlation_id: int, response: Response) -> None:
        if self.responses_pending:
            self.tick.respond(MessageResponse(self, route, correlation_id, response))
        else:
            self.encode(route, correlation_id, response)

    def respond_after_tick(self, response: Message, refuse: Refuse) -> Message | None:
        """Respond when the tick is written. Returns the response if the tick has nothing to write."""
        if not self.tick.is_open:
            return response
        if self.listener.router.is_wrapped:
            self.unsent = response
        correlation_id = self.context.correlation_id
        self.tick.respond(MessageResponse(self, self._route, correlation_id, response, refuse))
        return None

    def respond_after_commit(self, response: ProduceResponse, waits: list[Wait], timeout_ms: int) -> None:
        """Respond when every in-sync replica has the appended batches."""
        if self.listener.router.is_wrapped:
            self.unsent = response
        self._has_pending = True
        correlation_id = self.context.correlation_id
        pending = CommittedResponse(self, self._route, correlation_id, response, waits, timeout_ms)
        self.respond_when_committed(pending)

    def respond_when_committed(self, pending: CommittedResponse) -> None:
        """Finish the response when the tick is written, or now if nothing is staged."""
        if self.tick.is_open or self.responses_pending:
            self.tick.respond(pending)
        else:
            pending.finish({})

    def wait_in_purgatory(self, pending: CommittedResponse) -> None:
        """Let a response wait for followers. Later responses leave after it."""
        if self._is_closing:
            self.listener.broker.purgatory.abandon(pending)
            return
        self.listener.broker.purgatory.add(pending)
        self.enqueue(pending)

    def enqueue(self, pending: CommittedResponse | SyncedResponse) -> None:
        self.response_queue.append(pending)
        if len(self.response_queue) >= QUEUE_MAX and not self._is_queue_full:
            self._is_queue_full = True
            self.block_requests()

    def send_ready(self) -> None:
        """Send the queued responses up to the first that still waits. Never raises."""
        queue = self.response_queue
        try:
            while queue:
                first = queue[0]
                if isinstance(first, list):
                    queue.popleft()
                    self.out += first
                    self._has_slices = True  # perhaps
                elif first.is_ready:
                    queue.popleft()
                    first.encode_into(self)
                else:
                    break
            if self.out:
                self.send()
        except Exception:
            self.fail("responding")
        if self._is_queue_full and len(queue) < QUEUE_MAX // 2:
            self._is_queue_full = False
            self.unblock_requests()

    def put_encoded(self, responses: list[bytes]) -> None:
        if self.response_queue:
            self.response_queue.append(responses)
        else:
            self.out += responses

    def encode(self, route: Route, correlation_id: int, response: Response) -> None:
        """Append the framed response to `out`, or behind queued responses. `send` sends it."""
        if self._is_closing:
            return
        out = self.out
        if self.response_queue:
            out = []
            self.response_queue.append(out)
        self.encode_to(out, route, correlation_id, response)

    def encode_to(self, out: list[Any], route: Route, correlation_id: int, response: Response) -> None:
        try:
            parts = route.framed(correlation_id, response)
            route.count_errors(response)
            self.sent_times = route.times
        except Exception:
            log.exception("a response to %s cannot be encoded; the connection is closed", self.host)
            self.close()
            return
        if route.key in _WITH_SLICES or _size(parts[0])[0] > JOINED_BYTES_MAX:
            out += parts  # slices of log files among them, or too many bytes to copy
            self._has_slices = True
        else:
            out.append(b"".join(parts))

    def send(self) -> None:
        out = self.out
        if out:
            self.out = []
            has_slices, self._has_slices = self._has_slices, False
            if self._is_closing:
                return
            tick = self.tick
            tick.sends += 1
            started = perf_counter_ns() if not tick.sends & tick.sampled else 0
            if not self.outbox.put(out, has_slices=has_slices):
                self.is_busy = True
                self._sending_ns = started or perf_counter_ns()
            elif started and self.sent_times is not None:
                self.sent_times.observe_send(perf_counter_ns() - started)

    def _output_done(self) -> None:
        """Handle the next request: a long response was sent."""
        if self._sending_ns and self.sent_times is not None and not self.outbox.is_waiting:
            self.sent_times.observe_send(perf_counter_ns() - self._sending_ns)
            self._sending_ns = 0
        if self._waiting_for is None and not self._blocks:
            self.is_busy = False
            self._continue()

    def block_requests(self) -> None:
        """Handle no further request until `unblock_requests` was called as often as this."""
        self.is_busy = True
        self._blocks += 1

    def unblock_requests(self) -> None:
        self._blocks -= 1
        self._output_done()

    @property
    def route(self) -> Route | None:
        """The route of the last request that was decoded."""
        return getattr(self, "_route", None)

    @property
    def request_size(self) -> int:
        return len(self._frame)

    def pop_unsent(self) -> Message | None:
        """Return and forget the response that the last handler gave to the tick. It can still be changed."""
        found, self.unsent = self.unsent, None
        return found
