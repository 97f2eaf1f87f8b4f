"""Services on real sockets: several listeners, TLS, graceful stop, and what strangers send."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import ssl
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvloop

from barnabas.security.errors import SecuritySettingsError
from barnabas.security.tls.certificates import issue
from barnabas.services.app import Service
from barnabas.services.hosting.binding import ListenError, bind, listener_tls, store_files
from barnabas.services.hosting.process import serve
from barnabas.services.hosting.tls_reload import TlsReload
from barnabas.services.settings.listeners import Listener
from barnabas.services.settings.loading import load_settings
from barnabas.testing.waiting import until
from security.tls_world import HOSTS, NOW, certificates
from services.hosted import Sample, hosted

TLS = {
    "ssl_keystore_type": "PEM",
    "ssl_truststore_type": "PEM",
}


def run(coroutine: Any) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(60):
            await coroutine

    uvloop.run(bounded())  # the loop of services


def tls_settings() -> dict[str, str]:
    world = certificates()
    return {
        **TLS,
        "ssl_keystore_location": world.broker_file,
        "ssl_truststore_location": world.ca_file,
    }


def client_tls(certificate: str | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=certificates().ca_file)
    if certificate is not None:
        context.load_cert_chain(certificate)
    return context


async def raw(listener: Listener, data: bytes) -> bytes:
    """Everything that comes back until the connection is closed."""
    reader, writer = await asyncio.open_connection(listener.host, listener.port)
    try:
        writer.write(data)
        return await reader.read()
    finally:
        writer.close()


def test_http_and_https_side_by_side_with_the_certificates_name_as_caller() -> None:
    async def check() -> None:
        async with hosted(
            listeners="http://127.0.0.1:0,https://127.0.0.1:0",
            ssl_client_authentication="REQUESTED",
            ssl_principal_mapping_rules="RULE:^CN=([^,]+),.*$/$1/",
            **tls_settings(),
        ) as (_, (plain, secured)):
            async with httpx.AsyncClient(trust_env=False) as client:
                assert (await client.get(f"{plain}/who")).json() == "ANONYMOUS"
            async with httpx.AsyncClient(verify=client_tls(), trust_env=False) as client:
                assert (await client.get(f"{secured}/who")).json() == "ANONYMOUS"
            alice = client_tls(certificates().alice_file)
            async with httpx.AsyncClient(verify=alice, trust_env=False) as client:
                for _ in range(2):  # on one connection
                    assert (await client.get(f"{secured}/who")).json() == "alice"
            from websockets.asyncio.client import connect

            async with connect(f"wss://127.0.0.1:{secured.port}/socket", ssl=alice, proxy=None) as opened:
                assert await opened.recv() == "alice"

    run(check())


def test_mutual_tls_refuses_strangers() -> None:
    async def check() -> None:
        async with hosted(
            listeners="https://127.0.0.1:0", ssl_client_authentication="REQUIRED", **tls_settings()
        ) as (_, (secured,)):
            good = client_tls(certificates().alice_file)
            async with httpx.AsyncClient(verify=good, trust_env=False) as client:
                assert (await client.get(f"{secured}/who")).json() == "CN=alice,OU=clients,O=Rig"
            for context in (client_tls(), client_tls(mallory_file())):
                async with httpx.AsyncClient(verify=context, trust_env=False) as client:
                    with pytest.raises(httpx.TransportError):
                        await client.get(f"{secured}/who")

    run(check())


def mallory_file() -> str:
    world = certificates()
    return world.store("mallory.pem", world.mallory)


def test_requests_end_before_the_service_stops_and_streams_are_told() -> None:
    async def check() -> None:
        sample = Sample()
        async with hosted(sample, shutdown_graceful_ms="10000") as (host, (place,)):
            assert sample.events == ["start True"]
            async with httpx.AsyncClient(trust_env=False) as client:
                waiting = asyncio.ensure_future(client.get(f"{place}/wait"))
                stream = asyncio.ensure_future(client.get(f"{place}/stream"))
                await until(lambda: "waiting" in sample.events)
                host.stop()
                assert (await stream).text.endswith("tick\nend\n")
                sample.events.append("released")
                sample.go.set()
                assert (await waiting).json() == "done"
        assert sample.events == ["start True", "waiting", "released", "stop"]

    run(check())


def test_a_request_that_never_ends_is_cancelled_behind_the_grace_time() -> None:
    async def check() -> None:
        sample = Sample()
        async with (
            hosted(sample, shutdown_graceful_ms="100") as (host, (place,)),
            httpx.AsyncClient(trust_env=False) as client,
        ):
            waiting = asyncio.ensure_future(client.get(f"{place}/wait"))
            await until(lambda: "waiting" in sample.events)
            host.stop()
            response = await waiting
            assert (response.status_code, response.json()["message"]) == (
                503,
                "the service is stopping; try again",
            )
        assert sample.events[-1] == "stop"

    run(check())


def test_responses_do_not_wait_for_acknowledgements() -> None:
    async def main() -> int:
        settings = load_settings(
            "rest", overrides={"listeners": "http://127.0.0.1:0", "bootstrap.servers": "h:1"}
        )
        [bound] = bind(settings.listeners, None)
        accepted: asyncio.Future[asyncio.StreamWriter] = asyncio.get_running_loop().create_future()
        server = await asyncio.start_server(lambda _, out: accepted.set_result(out), sock=bound.socket)
        async with server:
            _, out = await asyncio.open_connection("127.0.0.1", bound.listener.port)
            ours = await accepted
            no_delay: int = ours.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            for each in (out, ours):
                each.close()
                await each.wait_closed()
        return no_delay

    assert asyncio.run(main())


def test_a_port_that_is_taken_and_a_store_that_is_missing_are_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(ListenError, match=f"http://127.0.0.1:{port}: Address already in use"):
            bind([Listener("http", "127.0.0.1", 0), Listener("http", "127.0.0.1", port)], None)
    with pytest.raises(ListenError, match=r"192\.0\.2\.1"):
        bind([Listener("http", "192.0.2.1", 0)], None)
    settings = load_settings(
        "rest", overrides={"bootstrap.servers": "a:1", "listeners": "https://127.0.0.1:0"}
    )
    with pytest.raises(SecuritySettingsError, match=r"ssl\.keystore\.location is not set"):
        listener_tls(settings)


def test_a_service_that_cannot_start_closes_its_sockets_and_says_why() -> None:
    ports: list[int] = []

    def failing(settings: Any) -> Service:
        async def start() -> None:
            ports.append(settings.listeners[0].port)
            raise TimeoutError("no broker answers")

        return Service("sample", [], start)

    settings = load_settings(
        "rest", overrides={"bootstrap.servers": "a:1", "listeners": "http://127.0.0.1:0"}
    )
    with pytest.raises(TimeoutError, match="no broker"):
        run(serve(settings, failing))
    socket.create_server(("127.0.0.1", ports[0])).close()


def test_open_listeners_are_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    async def check(**changes: str) -> None:
        async with hosted(**changes):
            pass

    run(check(listeners="http://127.0.0.1:0"))
    assert "everybody" not in caplog.text
    run(check(listeners="http://0.0.0.0:0"))
    assert "everybody who reaches http://0.0.0.0:" in caplog.text


def test_scripts_of_other_origins_may_ask_where_a_setting_says_so() -> None:
    async def check() -> None:
        async with (
            hosted(access_control_allow_origin="https://ui.example") as (_, (place,)),
            httpx.AsyncClient(trust_env=False) as client,
        ):
            response = await client.get(f"{place}/who", headers={"origin": "https://ui.example"})
            assert response.headers["access-control-allow-origin"] == "https://ui.example"
            response = await client.get(f"{place}/who", headers={"origin": "https://evil.example"})
            assert "access-control-allow-origin" not in response.headers

    run(check())


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
        (b"GET\r\n\r\n", 400),
        (b"GET /who HTTP/9.9\r\n\r\n", 400),
        (b"\x00" * 1000, 400),
        (b"GET /who HTTP/1.1\r\nhost: x\r\nbad header\r\n\r\n", 400),
        (b"POST /size HTTP/1.1\r\nhost: x\r\ncontent-length: -5\r\n\r\n", 400),
        (b"POST /size HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999999999999999999\r\n\r\n", 400),
        (b"POST /size HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", 400),
        (b"POST /size HTTP/1.1\r\nhost: x\r\ncontent-length: 999999999\r\n\r\n", 413),
        (b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n\r\n", 431),
        (b"GET /who HTTP/1.1\r\nx: " + b"a" * 20_000 + b"\r\n\r\n", 431),
        (b"GET /who HTTP/1.1\r\n" + b"a: b\r\n" * 300 + b"\r\n", 431),
        (b"GET /%ff HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", 400),
        (b"OPTIONS * HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", 404),
    ],
)
def test_garbage_gets_an_error_and_others_are_served(data: bytes, status: int) -> None:
    async def check() -> None:
        async with hosted() as (_, (place,)):
            response = await raw(place, data)
            head, _, body = response.partition(b"\r\n\r\n")
            assert head.startswith(f"HTTP/1.1 {status} ".encode()), response
            assert json.loads(body)["error_code"] == status
            async with httpx.AsyncClient(trust_env=False) as client:
                assert (await client.get(f"{place}/who")).status_code == 200

    run(check())


def test_a_header_that_never_ends_is_refused_while_it_arrives() -> None:
    async def check() -> None:
        async with hosted() as (_, (place,)):
            reader, writer = await asyncio.open_connection(place.host, place.port)
            writer.write(b"GET /who HTTP/1.1\r\nx: ")
            reading = asyncio.ensure_future(reader.read())
            sent = 0
            while not reading.done() and sent < 100_000:
                writer.write(b"a" * 1000)
                sent += 1000
                await asyncio.sleep(0.002)
            assert (await reading).startswith(b"HTTP/1.1 431 ")
            assert sent < 100_000
            writer.close()

    run(check())


def test_slow_headers_and_silent_connections_are_closed() -> None:
    async def check() -> None:
        async with hosted(barnabas_http_header_timeout_ms="200") as (_, (place,)):
            assert await raw(place, b"") == b""
            assert await raw(place, b"GET /who HTTP/1.1\r\nx: y") == b""
            # The second request of a connection has the same time.
            found = await raw(place, b"GET /who HTTP/1.1\r\nhost: x\r\n\r\nGET /who HTT")
            assert found.count(b"200 OK") == 1

    run(check())


def test_a_slow_upload_ends_with_408_and_an_endless_one_with_413() -> None:
    async def check() -> None:
        async with hosted(barnabas_http_request_timeout_ms="300", barnabas_http_body_bytes_max="100000") as (
            _,
            (place,),
        ):
            head = b"POST /size HTTP/1.1\r\nhost: x\r\n"
            slow = await raw(place, head + b"content-length: 1000\r\n\r\nsome")
            assert slow.startswith(b"HTTP/1.1 408 ")
            reader, writer = await asyncio.open_connection(place.host, place.port)
            writer.write(head + b"transfer-encoding: chunked\r\n\r\n")
            reading = asyncio.ensure_future(reader.read())
            chunk = b"2710\r\n" + b"x" * 10_000 + b"\r\n"
            sent = 0
            try:
                while not reading.done():
                    writer.write(chunk)
                    sent += len(chunk)
                    await writer.drain()
                    await asyncio.sleep(0)
            except ConnectionError:
                pass
            writer.close()
            try:
                assert (await reading).startswith(b"HTTP/1.1 413 ")
            except ConnectionError:
                pass  # the connection was closed while more was arriving
            assert sent < 50_000_000

    run(check())


def test_thousands_of_connections_are_bounded_and_the_service_lives() -> None:
    async def check() -> None:
        async with hosted(server_connection_limit="300", barnabas_http_header_timeout_ms="30000") as (
            host,
            (place,),
        ):
            opened = []
            refused = 0
            for _ in range(10):
                some = await asyncio.gather(
                    *(asyncio.open_connection(place.host, place.port) for _ in range(100))
                )
                opened += some
            for reader, _ in opened[300:]:
                answer = await reader.read()
                refused += answer.startswith(b"HTTP/1.1 503 ") and b"retry-after: 1" in answer
            assert refused == 700
            for _, writer in opened:
                writer.close()
            connections = host._server.server_state.connections
            await until(lambda: not connections)
            async with httpx.AsyncClient(trust_env=False) as client:
                assert (await client.get(f"{place}/who")).status_code == 200

    run(check())


def test_changed_stores_are_used_for_new_connections(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = certificates()
    store = tmp_path / "service.pem"
    store.write_bytes(Path(world.broker_file).read_bytes())
    other = issue(world.authority, "CN=renewed,O=Rig", NOW, hosts=HOSTS)

    async def served_name(place: Listener) -> str:
        _, writer = await asyncio.open_connection(place.host, place.port, ssl=client_tls())
        certificate = writer.get_extra_info("peercert")
        writer.close()
        return str(dict(part[0] for part in certificate["subject"])["commonName"])

    async def check() -> None:
        changes = {**tls_settings(), "ssl_keystore_location": str(store)}
        async with hosted(listeners="https://127.0.0.1:0", **changes) as (host, (place,)):
            overrides = {name.replace("_", "."): text for name, text in changes.items()}
            overrides |= {"bootstrap.servers": "a:1", "listeners": "https://127.0.0.1:0"}
            settings = load_settings("rest", overrides=overrides)
            reload = TlsReload(store_files(settings), lambda: listener_tls(settings), host.replace_tls)
            assert not await reload.look()
            async with httpx.AsyncClient(verify=client_tls(), trust_env=False) as client:
                await client.get(f"{place}/who")
                store.write_bytes(b"nonsense")
                assert not await reload.look()
                assert await served_name(place) == "broker"
                store.write_bytes(other.key_pem + other.chain_pem)
                assert await reload.look()
                assert await served_name(place) == "renewed"
                assert (await client.get(f"{place}/who")).status_code == 200  # on its old connection
                for number in range(3):
                    again = issue(world.authority, f"CN=number-{number},O=Rig", NOW, hosts=HOSTS)
                    store.write_bytes(again.key_pem + again.chain_pem)
                    assert await reload.look()
                    assert await served_name(place) == f"number-{number}"

    run(check())
    assert "the old ones stay: ssl.keystore.location" in caplog.text


def test_tls_garbage_does_not_reach_the_service(caplog: pytest.LogCaptureFixture) -> None:
    async def check() -> None:
        async with hosted(listeners="https://127.0.0.1:0", **tls_settings()) as (_, (place,)):
            for data in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01" + b"\xff" * 500):
                try:
                    assert not (await raw(place, data)).startswith(b"HTTP/1.1 200")
                except ConnectionError:
                    pass
            async with httpx.AsyncClient(verify=client_tls(), trust_env=False) as client:
                assert (await client.get(f"{place}/who")).status_code == 200

    caplog.set_level(logging.WARNING)
    run(check())
    assert "Traceback" not in caplog.text
