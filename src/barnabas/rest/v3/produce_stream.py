"""Records produced as a stream: objects in, one result for each, in order, as they are done.

In: a request whose body goes on. Out: a response that begins with the first result and goes on as results
come. The number of records without a result is bounded, and so are their bytes: a client that does not read
its results makes the stream stop reading, and a slow cluster does the same. A stream that is broken, too old
or idle for too long ends with an error object. Does not know: records' fields.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Iterator

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from barnabas.client.accumulator import SentRecord
from barnabas.client.core.errors import ClientError
from barnabas.protocol import KafkaError
from barnabas.rest.kafka_errors import api_error, refusal
from barnabas.rest.v3.call import Call
from barnabas.rest.v3.json_stream import BrokenStream, JsonStream, TooLarge
from barnabas.rest.v3.records import NewRecord, RecordReader, RecordResults
from barnabas.rest.v3.sending import Sender
from barnabas.services.errors import ApiError

CHUNK_BYTES_MAX = 64 * 1024  # parsed in one turn of the loop
FLUSH_BYTES = 32 * 1024
DRAIN_BYTES_MAX = 1024 * 1024
EMPTY_BODY = 42206
Pending = tuple[SentRecord, NewRecord] | bytes


class RecordStream(Response):
    """The response of a produce request."""

    media_type = "application/json"

    def __init__(self, call: Call, topic: str) -> None:
        super().__init__()
        self._call = call
        self._settings = call.proxy.settings
        self._sender = Sender(call.kafka, topic, call.proxy.rates)
        self._reader = RecordReader(call.proxy.formats, topic)
        self._results = RecordResults(call.links.cluster_id, topic)
        self._objects = JsonStream(self._settings.record_chars_max)
        self._pending: deque[Pending] = deque()
        self._bytes_pending = 0
        self._changed = asyncio.Event()  # there is a pending record, or the reader is done
        self._room = asyncio.Event()
        self._out: list[bytes] = []
        self._bytes_out = 0
        self._has_begun = False
        self._body_ended = False
        self._is_read = False  # nothing more is read: the body ended, or the stream is refused
        self._bytes_read = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._call.proxy.kafka_of(self._call.request):  # keeps the caller's clients open
            await self._serve(receive, send)

    async def _serve(self, receive: Receive, send: Send) -> None:
        reading = asyncio.create_task(self._read(receive))
        stopping = asyncio.create_task(self._call.proxy.stopping.wait())
        stopping.add_done_callback(lambda done: None if done.cancelled() else reading.cancel("stopping"))
        try:
            await self._write(send)
            await reading
        except ClientDisconnect:
            return
        finally:
            stopping.cancel()
            reading.cancel()
            await asyncio.gather(stopping, reading, return_exceptions=True)
        if not self._body_ended:
            await self._drain(receive)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    # -- reading -------------------------------------------------------------------------------------

    async def _read(self, receive: Receive) -> None:
        settings = self._settings
        try:
            async with asyncio.timeout(settings.stream_ms_max / 1000):
                await self._read_objects(receive)
        except TimeoutError:
            limit = settings.stream_ms_max / 1000
            self._refuse(
                refusal(408, 408, f"Streaming connection open for longer than allowed: {limit:g} s.")
            )
        except TooLarge as error:
            self._refuse(refusal(413, 413, str(error)))
        except BrokenStream as error:
            self._refuse(refusal(400, 400, f"Error processing message: {error}"))
        except asyncio.CancelledError as error:
            if error.args != ("stopping",):
                raise
            self._refuse(refusal(503, 503, "The proxy is stopping: send the other records again."))
        finally:
            self._is_read = True
            self._changed.set()

    async def _read_objects(self, receive: Receive) -> None:
        idle_s = self._settings.stream_idle_ms / 1000
        while not self._body_ended:
            try:
                async with asyncio.timeout(idle_s) as limit:
                    message = await receive()
            except TimeoutError:
                if not limit.expired():
                    raise
                self._refuse(refusal(408, 408, f"Streaming connection idle for longer than {idle_s:g} s."))
                return
            if message["type"] != "http.request":
                raise ClientDisconnect
            self._body_ended = not message.get("more_body", False)
            body = message.get("body", b"")
            self._bytes_read += len(body)
            for chunk in chunks_of(body):
                for value in self._objects.feed(chunk):
                    await self._produce(value)
                await asyncio.sleep(0)  # a fast sender must not keep the loop for itself
        self._objects.end()

    async def _produce(self, value: object) -> None:
        settings = self._settings
        while (
            len(self._pending) >= settings.stream_in_flight_max
            or self._bytes_pending >= settings.stream_in_flight_bytes_max
        ):
            self._room.clear()
            await self._room.wait()
        try:
            record = await self._reader.read(value)
            pending: Pending = (await self._sender.send(record), record)
            self._bytes_pending += record.size_bytes
        except ApiError as error:
            pending = line_of(error)
        except (KafkaError, ClientError) as error:
            pending = line_of(api_error(error))
        self._pending.append(pending)
        self._changed.set()

    def _refuse(self, error: ApiError) -> None:
        self._pending.append(line_of(error))

    # -- writing -------------------------------------------------------------------------------------

    async def _write(self, send: Send) -> None:
        """Write results in the order of the records, until nothing more comes."""
        while True:
            if not self._pending:
                if self._is_read:
                    break
                await self._flush(send)
                self._changed.clear()
                if not self._pending and not self._is_read:
                    await self._changed.wait()
                continue
            line = await self._result_of(self._pending[0], send)
            self._pending.popleft()
            self._room.set()
            self._out.append(line)
            self._bytes_out += len(line)
            if self._bytes_out >= FLUSH_BYTES:
                await self._flush(send)
        if self._bytes_read == 0 and self._body_ended and not self._has_begun:
            raise refusal(422, EMPTY_BODY, "Request body is empty. Data is required.")
        await self._flush(send, at_end=True)

    async def _result_of(self, pending: Pending, send: Send) -> bytes:
        if isinstance(pending, bytes):
            return pending
        sent, record = pending
        try:
            if not sent.is_done:
                if not self._body_ended:
                    await self._flush(send)
                await sent
            return b'{"error_code":200,%b}\n' % self._results.written(sent.result(), record).encode()
        except (KafkaError, ClientError) as error:
            return line_of(api_error(error))
        finally:
            self._bytes_pending -= record.size_bytes

    async def _flush(self, send: Send, *, at_end: bool = False) -> None:
        if not self._out and not (at_end and not self._has_begun):
            return
        body = b"".join(self._out)
        self._out, self._bytes_out = [], 0
        if not self._has_begun:
            self._has_begun = True
            headers = [(b"content-type", b"application/json")]
            if at_end and self._body_ended:
                headers.append((b"content-length", b"%d" % len(body)))
            if not self._body_ended:  # the connection may hold bytes that nobody reads
                headers.append((b"connection", b"close"))
            await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body, "more_body": True})

    async def _drain(self, receive: Receive) -> None:
        """Read a little more of a refused stream, so that its sender gets to read the results."""
        left = DRAIN_BYTES_MAX
        try:
            async with asyncio.timeout(self._settings.stream_grace_ms / 1000):
                while left > 0:
                    message = await receive()
                    left -= len(message.get("body", b""))
                    if message["type"] != "http.request" or not message.get("more_body", False):
                        return
        except TimeoutError:
            return


def chunks_of(body: bytes) -> Iterator[bytes]:
    if len(body) <= CHUNK_BYTES_MAX:
        yield body
        return
    for start in range(0, len(body), CHUNK_BYTES_MAX):
        yield body[start : start + CHUNK_BYTES_MAX]


def line_of(error: ApiError) -> bytes:
    fields = {"error_code": error.code, "message": error.message}
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"
