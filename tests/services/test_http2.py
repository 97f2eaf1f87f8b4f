"""HTTP/2 on the sockets of services: by prior knowledge, by ALPN, several streams, readers that stall."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Sequence
from typing import Any

import h2.config
import h2.connection
import h2.events
import uvloop

from barnabas.services.settings.listeners import Listener
from services.hosted import Sample, hosted
from services.test_hosting import client_tls, raw, tls_settings


def run(coroutine: Any) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(30):
            await coroutine

    uvloop.run(bounded())


class Client:
    """A client with one connection. `events` are those of all streams."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        self.events: list[h2.events.Event] = []
        self.h2.initiate_connection()
        self.flush()

    @classmethod
    async def connect(cls, listener: Listener, tls: ssl.SSLContext | None = None) -> Client:
        host = "localhost" if tls else None
        return cls(
            *await asyncio.open_connection(listener.host, listener.port, ssl=tls, server_hostname=host)
        )

    def flush(self) -> None:
        self._writer.write(self.h2.data_to_send())

    def request(self, method: str, path: str, ends: bool = True) -> int:
        stream = self.h2.get_next_available_stream_id()
        names = [(":method", method), (":path", path), (":scheme", "http"), (":authority", "localhost")]
        self.h2.send_headers(stream, names, end_stream=ends)
        self.flush()
        return stream

    def data(self, stream: int, data: bytes, ends: bool) -> None:
        self.h2.send_data(stream, data, end_stream=ends)
        self.flush()

    async def read(self, acknowledges: bool = True) -> None:
        data = await self._reader.read(65_536)
        assert data, "the connection ended"
        for event in self.h2.receive_data(data):
            self.events.append(event)
            if acknowledges and isinstance(event, h2.events.DataReceived):
                assert event.stream_id is not None
                self.h2.acknowledge_received_data(event.flow_controlled_length or 0, event.stream_id)
        self.flush()

    def of(self, stream: int, kind: type[h2.events.Event]) -> Sequence[Any]:
        return [e for e in self.events if isinstance(e, kind) and getattr(e, "stream_id", 0) == stream]

    async def response(self, stream: int) -> tuple[str, bytes]:
        while not self.of(stream, h2.events.StreamEnded):
            await self.read()
        headers = dict(self.of(stream, h2.events.ResponseReceived)[0].headers)
        return headers[":status"], b"".join(e.data for e in self.of(stream, h2.events.DataReceived))

    def close(self) -> None:
        self._writer.close()


def test_a_client_with_prior_knowledge_gets_responses_of_several_streams() -> None:
    async def scenario() -> None:
        async with hosted() as (_, (listener,)):
            client = await Client.connect(listener)
            who, size = client.request("GET", "/who"), client.request("POST", "/size", ends=False)
            client.data(size, b"x" * 1000, ends=False)
            client.data(size, b"y" * 500, ends=True)
            status, body = await client.response(size)
            assert (status, json.loads(body)) == ("200", 1500)
            assert (await client.response(who))[0] == "200"
            missing = client.request("GET", "/missing")
            status, body = await client.response(missing)
            assert status == "404" and json.loads(body)["error_code"] == 404
            client.close()

    run(scenario())


def test_alpn_chooses_http2_and_clients_without_it_get_http1() -> None:
    async def scenario() -> None:
        async with hosted(listeners="https://127.0.0.1:0", **tls_settings()) as (_, (listener,)):
            context = client_tls()
            context.check_hostname = False
            context.set_alpn_protocols(["h2"])
            client = await Client.connect(listener, context)
            assert (await client.response(client.request("GET", "/who")))[0] == "200"
            client.close()

    run(scenario())


def test_a_reader_that_takes_nothing_holds_up_no_other_stream() -> None:
    async def scenario() -> None:
        async with hosted() as (_, (listener,)):
            client = await Client.connect(listener)
            stream = client.request("GET", "/stream")
            while not client.of(stream, h2.events.DataReceived):
                await client.read(acknowledges=False)
            client.h2.reset_stream(stream)
            client.flush()
            assert (await client.response(client.request("GET", "/who")))[0] == "200"
            client.close()

    run(scenario())


def test_large_bodies_wait_for_the_windows_of_both_sides() -> None:
    async def scenario() -> None:
        sample = Sample()
        async with hosted(sample) as (_, (listener,)):
            client = await Client.connect(listener)
            stream = client.request("POST", "/size", ends=False)
            left = 2_000_000
            while left:
                room = min(
                    client.h2.local_flow_control_window(stream), client.h2.max_outbound_frame_size, left
                )
                if room <= 0:
                    await client.read()
                    continue
                left -= room
                client.data(stream, b"z" * room, ends=not left)
            status, body = await client.response(stream)
            assert (status, json.loads(body)) == ("200", 2_000_000)
            client.close()

    run(scenario())


def test_bytes_that_are_no_http2_behind_the_preface_end_the_connection() -> None:
    async def scenario() -> None:
        async with hosted() as (_, (listener,)):
            reader, writer = await asyncio.open_connection(listener.host, listener.port)
            writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 20_000)
            while await reader.read(1000):
                pass
            writer.close()

    run(scenario())


def test_a_request_that_wishes_for_http_2_is_served_on_http_1_with_its_body() -> None:
    async def check() -> None:
        async with hosted() as (_, places):
            found = await raw(
                places[0],
                b"POST /size HTTP/1.1\r\nhost: here\r\nconnection: Upgrade, HTTP2-Settings, close\r\n"
                b"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\ncontent-length: 5\r\n\r\nhello",
            )
            assert found.startswith(b"HTTP/1.1 200") and found.endswith(b"5"), found

    run(check())
