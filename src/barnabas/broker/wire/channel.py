"""The channel: one client's connection; frames in, handlers called, answers out in request order.

Requests are handled as they arrive, several a wake-up. A handler that cannot answer at once makes the
channel busy: what arrives meanwhile waits (bounded, then reading pauses), which keeps the order of answers
and is the backpressure. A malformed request, an unknown API or version closes the connection, as Kafka
does. Does not know: what the requests mean, where the data lies.
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
from barnabas.broker.api.large_requests import LARGE_FRAME_BYTES, handle_large
from barnabas.broker.api.request_header import read_header, skip_header
from barnabas.broker.produce.direct_produce import produce_directly
from barnabas.broker.produce.held_answers import HeldAnswer
from barnabas.broker.produce.pending_responses import NO_RESPONSES, MessageResponse, ProduceResponses
from barnabas.broker.wire.outbox import Outbox
from barnabas.broker.wire.remembering import Remembering
from barnabas.connection.inbox import FRAME_BYTES_MIN, SIZE_BYTES, Inbox
from barnabas.protocol import ApiKey, Message, ProtocolError

if TYPE_CHECKING:
    from barnabas.broker.api.routes import Route
    from barnabas.broker.produce.flush_waits import SyncedResponse
    from barnabas.broker.produce.held_answers import Wait
    from barnabas.broker.produce.pending_responses import Refuse
    from barnabas.broker.wire.server import Listener
    from barnabas.protocol.messages.produce import ProduceResponse

log = logging.getLogger("barnabas.channel")
_size = struct.Struct(">i").unpack_from
_head = struct.Struct(">hhih").unpack_from
_FETCH = int(ApiKey.FETCH)
HEADER_BYTES_MIN = 10
REQUESTS_A_TURN = 100  # some milliseconds; producers' requests, which are short, do not count
HELD_MAX = 512  # answers that wait for followers; no further request is taken then
MUTED_MS_MAX = 15 * 60 * 1000  # so that dead peers are still detected


class Channel(Remembering, asyncio.BufferedProtocol):
    __slots__ = (
        "_body_at", "_client_raw", "_frame", "_has_held", "_has_slices", "_holds", "_is_closing",
        "_is_full_of_held", "_is_paused", "_muted", "_route", "_routes", "_time", "_turn", "_unsent",
        "_waiting_for", "answers_waiting", "context", "held", "host", "inbox", "is_busy", "last_active",
        "listener", "now_ms", "out", "outbox", "partitions", "produced", "tick", "transport",
    )  # fmt: skip

    def __init__(self, listener: Listener, host: str) -> None:
        self.listener = listener
        self.tick = listener.tick
        self._routes = listener.router.routes
        self.partitions = listener.broker.partitions
        self.now_ms = listener.broker.clock.now_ms
        self._time = listener.loop.time
        self.inbox = Inbox(listener.tick.arena, listener.frame_bytes_max)
        self.context = RequestContext(listener.broker, self, listener.name)
        self.host = self.context.host = host
        self.out: list[Any] = []  # encoded answers of this wake-up
        self.produced = ProduceResponses(self)
        self.answers_waiting = 0  # given to the tick and not yet encoded: later answers queue behind them
        # Answers that wait for followers, in order, and whatever is to leave behind them.
        self.held: deque[HeldAnswer | SyncedResponse | list[Any]] = deque()
        self._is_full_of_held = False
        self.is_busy = False
        self._holds = 0  # reasons to take no further request
        self._has_held = False  # the last handler left its response to a held answer
        self._has_slices = False  # log slices are in `out`
        self.last_active = 0.0
        self._route: Route
        self._frame: memoryview
        self._body_at = 0  # in the frame
        self._tail = self._named_last = None
        self._client_raw: memoryview | None = None
        self._waiting_for: Deferred | asyncio.Task[None] | None = None
        self._muted: asyncio.TimerHandle | None = None
        self._unsent: Message | None = None  # what the last handler left for the tick to send
        self._is_paused = False
        self._is_closing = False

    # -- the transport's side ------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.outbox = Outbox(self.listener.loop, self.transport, self._output_done, self.listener.share)
        self.last_active = self.listener.loop.time()
        if not self.listener.connected(self):
            self.abort("the listener is closed")

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.inbox.buffer()  # and nothing else: uvloop crashes if reading ends in here

    def buffer_updated(self, nbytes: int) -> None:
        self.last_active = self._time()
        run = self.inbox.received(nbytes)
        if run is None:
            return
        if self.is_busy:
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
        self.outbox.close()
        self.inbox.release_buffers()
        self.out.clear()
        for held in self.held:
            if isinstance(held, HeldAnswer) and not held.is_ready:
                self.listener.broker.purgatory.abandon(held)
        self.held.clear()
        self.listener.dismiss(self)
        # Circles would wait for the collector of garbage: for hours, if the connection was open for seconds.
        self.context, self.produced = NO_CONTEXT, NO_RESPONSES

    # -- requests ------------------------------------------------------------------------------

    def _handle(self, run: memoryview) -> bool:
        """Handle the frames in a run; whether there was any."""
        position, end = 0, len(run)
        inbox, tick = self.inbox, self.tick
        inbox.arena.is_lent = True
        self._turn = REQUESTS_A_TURN
        try:
            while end - position >= SIZE_BYTES and not self.is_busy and not self._is_closing:
                size = _size(run, position)[0]
                start, position = position, position + SIZE_BYTES + size
                if position > end or not FRAME_BYTES_MIN <= size <= inbox.frame_bytes_max:
                    position = start
                    inbox.frame_end(run, start, end)  # raises where it is the size that is wrong
                    break
                self._request(run[start + SIZE_BYTES : position])
        except ProtocolError as error:
            self.refuse(f"malformed request: {error}")
        except Exception:
            log.exception("a request from %s failed; the connection is closed", self.host)
            self.close()
        finally:
            inbox.arena.is_lent = False  # else others would wait for it for ever
        if self._is_closing:
            position = end
        inbox.consume(run, position, referenced=tick.is_open)
        if tick.is_open:
            tick.channel_done()
        if self.is_busy and inbox.is_full:
            self.pause()
        if inbox.waits_for_memory:
            self.pause()
            tick.arena.wait_for_room(self.resume)
        if self.out and not self.answers_waiting:
            self.send()
        return position > 0

    def _request(self, frame: memoryview) -> None:
        if len(frame) < HEADER_BYTES_MIN:
            raise ProtocolError("header", f"{len(frame)} bytes are too few for a request header")
        key, version, correlation_id, client_length = _head(frame)
        if key == _FETCH and self._tail is not None and self._follow_again(frame, version, correlation_id):
            return
        route = self._routes.get(key << 16 | version)
        if route is None:
            route = self._find_route(key, version)
            if route is None:
                return
        position = HEADER_BYTES_MIN + client_length if client_length > 0 else HEADER_BYTES_MIN
        if route.layout is not None and produce_directly(self, route, frame, position, correlation_id):
            return
        self.read_client(frame, position, route)
        if route.flexible_request:
            if position >= len(frame):
                raise ProtocolError("header", "the header is cut off")
            if frame[position]:
                position = skip_header(frame)
            else:
                position += 1
        context = self.context
        context.correlation_id = correlation_id
        context.version = version
        self._route = route
        started = perf_counter_ns()
        if len(frame) > LARGE_FRAME_BYTES and route.is_of_elements:
            data = bytes(frame)
            self._frame = memoryview(data)
            self._wait(route, correlation_id, handle_large(route, data, position, context), started)
            return
        request, _ = route.decode(frame, position)
        self._frame = frame
        self._body_at = position
        self._handled(route, correlation_id, route.handler(request, context), started)
        self._turn -= 1
        if not self._turn:  # the rest has the next turn of the loop, behind those of others
            self.hold()
            self.listener.loop.call_soon(self.let_go)

    def _handled(self, route: Route, correlation_id: int, answer: Any, started: int) -> None:
        """A handler has answered, or will, or has left it to the tick."""
        if answer is not None and not isinstance(answer, Message):
            self._wait(route, correlation_id, answer, started)
            return
        if answer is not None:
            self.answer(route, correlation_id, answer)
        self._observe(route, started)

    def _observe(self, route: Route, started: int) -> None:
        """A request is over; one that was left to a held answer is when that leaves."""
        if self._has_held:
            self._has_held = False
        else:
            route.times.observe(perf_counter_ns() - started)

    def read_client(self, frame: memoryview, position: int, route: Route) -> None:
        """Check and remember the client id, if it is another one than before."""
        if self._client_raw is not None and frame[8:position] == self._client_raw:
            return
        header, _ = read_header[route.flexible_request](frame, 0)
        self.context.client_id = header.client_id
        self._client_raw = memoryview(bytes(frame[8:position]))

    def _find_route(self, key: int, version: int) -> Route | None:
        found = self.listener.router.find(key, version)
        if found is None:
            self.refuse(f"api key {key} version {version} is not served on listener {self.listener.name}")
        return found

    def _wait(self, route: Route, correlation_id: int, answer: Any, started: int) -> None:
        """The handler answers later; until then the channel takes no further request."""
        self.is_busy = True

        def finished(response: Response | None) -> None:
            self._waiting_for = None
            self.is_busy = self._holds > 0
            self._observe(route, started)
            if self._is_closing:
                return
            try:
                if response is not None:
                    self.answer(route, correlation_id, response)
                if self.out and not self.answers_waiting:
                    self.send()
            except Exception:
                self.fail("answering")
                return
            self._continue()

        if isinstance(answer, Deferred):
            self._waiting_for = answer
            answer.then(finished)
        else:
            task = self._waiting_for = self.listener.loop.create_task(self._await(answer, finished))
            task.add_done_callback(lambda _: answer.close())  # of a task that is cancelled before it begins

    async def _await(self, answer: Coroutine[Any, Any, Message | None], finished: Any) -> None:
        try:
            response = await answer
        except ProtocolError as error:
            self.refuse(f"malformed request: {error}")
            return
        except Exception:
            log.exception("a request from %s failed; the connection is closed", self.host)
            self.close()
            return
        finished(response)

    def _continue(self) -> None:
        """Handle what arrived while the channel was busy, then read on; but not within another's request."""
        if self.inbox.arena.is_lent:
            self.listener.loop.call_soon(self._continue)
            return
        while not self.is_busy and not self._is_closing:
            run = self.inbox.pop_waiting()
            if run is None:
                break
            if not self._handle(run):
                break
        if (
            self._is_paused
            and not self.is_busy
            and not self.inbox.is_full
            and not self.inbox.waits_for_memory
        ):
            self.resume()

    # -- answers -------------------------------------------------------------------------------

    def answer(self, route: Route, correlation_id: int, response: Response) -> None:
        if self.answers_waiting:
            self.tick.respond(MessageResponse(self, route, correlation_id, response))
        else:
            self.encode(route, correlation_id, response)

    def answer_after_tick(self, response: Message, refuse: Refuse) -> Message | None:
        """Answer when the tick is written; at once if the tick has nothing to write."""
        if not self.tick.is_open:
            return response
        if self.listener.router.is_guarded:
            self._unsent = response
        correlation_id = self.context.correlation_id
        self.tick.respond(MessageResponse(self, self._route, correlation_id, response, refuse))
        return None

    def answer_after_commit(self, response: ProduceResponse, waits: list[Wait], timeout_ms: int) -> None:
        """Answer when every replica in sync has what was appended."""
        if self.listener.router.is_guarded:
            self._unsent = response
        self._has_held = True
        correlation_id = self.context.correlation_id
        self.hold_answer(HeldAnswer(self, self._route, correlation_id, response, waits, timeout_ms))

    def hold_answer(self, held: HeldAnswer) -> None:
        """Wait for the tick if anything is staged, then for followers."""
        if self.tick.is_open or self.answers_waiting:
            self.tick.respond(held)
        else:
            held.finish({})

    def held_back(self, held: HeldAnswer) -> None:
        """An answer waits for followers: what is answered from now on leaves behind it."""
        if self._is_closing:
            self.listener.broker.purgatory.abandon(held)
            return
        self.listener.broker.purgatory.add(held)
        self.keep_in_order(held)

    def keep_in_order(self, held: HeldAnswer | SyncedResponse) -> None:
        self.held.append(held)
        if len(self.held) >= HELD_MAX and not self._is_full_of_held:
            self._is_full_of_held = True
            self.hold()

    def release_held(self) -> None:
        """Send answers from the first one on, up to one that still waits. Never raises."""
        held = self.held
        try:
            while held:
                first = held[0]
                if isinstance(first, list):
                    held.popleft()
                    self.out += first
                    self._has_slices = True  # perhaps
                elif first.is_ready:
                    held.popleft()
                    first.encode_into(self)
                else:
                    break
            if self.out:
                self.send()
        except Exception:
            self.fail("answering")
        if self._is_full_of_held and len(held) < HELD_MAX // 2:
            self._is_full_of_held = False
            self.let_go()

    def put(self, answers: list[bytes]) -> None:
        """Answers that are encoded already."""
        if self.held:
            self.held.append(answers)
        else:
            self.out += answers

    def encode(self, route: Route, correlation_id: int, response: Response) -> None:
        """Append the framed answer to `out`; `send` puts it on the wire."""
        if self._is_closing:
            return
        out = self.out
        if self.held:
            out = []
            self.held.append(out)
        self.encode_to(out, route, correlation_id, response)

    def encode_to(self, out: list[Any], route: Route, correlation_id: int, response: Response) -> None:
        try:
            parts = route.framed(correlation_id, response)
        except Exception:
            log.exception("an answer to %s cannot be encoded; the connection is closed", self.host)
            self.close()
            return
        if route.key == _FETCH:
            out += parts  # slices of log files among them
            self._has_slices = True
        else:
            out.append(b"".join(parts))

    def send(self) -> None:
        out = self.out
        if out:
            self.out = []
            has_slices, self._has_slices = self._has_slices, False
            if not self._is_closing and not self.outbox.put(out, has_slices=has_slices):
                self.is_busy = True

    def _output_done(self) -> None:
        """A long answer has left: the next request may be handled."""
        if self._waiting_for is None and not self._holds:
            self.is_busy = False
            self._continue()

    def hold(self) -> None:
        """Take no further request until `let_go`, as often as it was held: answers wait for the disk, the
        client for its quota.
        """
        self.is_busy = True
        self._holds += 1

    def let_go(self) -> None:
        self._holds -= 1
        self._output_done()

    # -- quotas --------------------------------------------------------------------------------

    def mute(self, wait_ms: int) -> None:
        """Read nothing for this long; answers leave all the same."""
        until = self._time() + min(wait_ms, MUTED_MS_MAX) / 1000
        if self._muted is None:
            self.hold()
            self.pause()
        elif until <= self._muted.when():
            return
        else:
            self._muted.cancel()
        self._muted = self.listener.loop.call_at(until, self._unmute)

    def _unmute(self) -> None:
        self._muted = None
        self.let_go()

    @property
    def request_size(self) -> int:
        return len(self._frame)

    def unsent(self) -> Message | None:
        """The answer that waits for the tick, if the last handler left one: it can still be changed."""
        found, self._unsent = self._unsent, None
        return found

    # -- flow ----------------------------------------------------------------------------------

    def pause(self) -> None:
        if not self._is_paused and not self._is_closing:
            self._is_paused = True
            self.transport.pause_reading()

    def resume(self) -> None:
        if self._is_paused and not self._is_closing:
            self._is_paused = False
            self.transport.resume_reading()

    def refuse(self, reason: str) -> None:
        if not self._is_closing:
            log.info("closing the connection from %s: %s", self.host, reason)
        self.close()

    def fail(self, doing: str) -> None:
        """An answer could not be made or sent, for a reason that nobody foresaw: the client has to ask again,
        over another connection. For an `except` block."""
        self.tick.unexpected.note(doing, self.host)
        self.close()

    def abort(self, reason: str) -> None:
        """Close at once, whatever waits to be written. Told to who looks closely: a flood makes many."""
        log.debug("closing the connection from %s: %s", self.host, reason)
        self._is_closing = True
        self.transport.abort()

    @property
    def last_api_key(self) -> int:
        """Of the last request that took the ordinary path; -1 before there was one."""
        return self._route.key if hasattr(self, "_route") else -1

    @property
    def has_spoken(self) -> bool:
        """Whether a request has come."""
        return self._client_raw is not None

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self.transport.close()
