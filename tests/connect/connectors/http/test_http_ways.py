"""The HTTP connectors over TLS and through proxies, with certificates of clients and tokens, and against
servers that cut connections or answer slowly."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable
from typing import Any

import pytest
from tests.connect.connectors.contexts import Offsets, started_sink, started_source
from tests.connect.connectors.http.test_http_sink import records
from tests.connect.connectors.http.test_http_source import ROWS
from tests.security.tls_world import certificates
from tests.stores.http_proxy import http_proxy
from tests.stores.http_server import HttpServer, Reply, Seen

from barnabas.connect.connectors.http.http_sink import AivenHttpSinkConnector, HttpSinkConnector
from barnabas.connect.connectors.http.http_source import HttpSourceConnector
from barnabas.connect.plugins import ConnectError, RetriableError, SinkTask

Decide = Callable[[Seen], Reply]


def secured(decide: Decide) -> HttpServer:
    """A server that asks for a certificate."""
    found = certificates()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=found.ca_file)
    context.load_cert_chain(found.broker_file)
    context.verify_mode = ssl.CERT_REQUIRED
    return HttpServer(decide, context)


def stores(prefix: str, keystore: str = "", truststore: str = "") -> dict[str, str]:
    found = certificates()
    return {
        f"{prefix}truststore.location": truststore or found.ca_file,
        f"{prefix}truststore.type": "PEM",
        f"{prefix}keystore.location": keystore or found.alice_file,
        f"{prefix}keystore.type": "PEM",
    }


def sink(config: dict[str, str], connector: Any = HttpSinkConnector) -> SinkTask:
    return started_sink(connector, {"retry.backoff.ms": "1", **config})


def sent(server: HttpServer) -> list[bytes]:
    return [each.body for each in server.seen if each.method == "POST"]


def ok(_: Seen) -> Reply:
    return Reply(200)


def test_certificates_of_both_sides_are_checked() -> None:
    found = certificates()
    with secured(ok) as server:
        task = sink({"http.api.url": server.url, **stores("https.ssl.")})
        task.put(records(["a"]))
        task.stop()
        task = sink({"http.url": server.url, **stores("http.ssl.")}, AivenHttpSinkConnector)
        task.put(records(["b"]))
        task.stop()
        assert sent(server) == [b"a", b"b"]
        mallory = found.store("mallory.pem", found.mallory)
        for wrong in (
            stores("https.ssl.", keystore=mallory),
            stores("https.ssl.", truststore=found.other_ca_file),
        ):
            task = sink({"http.api.url": server.url, **wrong})
            with pytest.raises(RetriableError):
                task.put(records(["c"]))
            task.stop()
        server.decide = lambda seen: Reply(200, ROWS[:2] if seen.query["o"] == "0" else [])
        given = {"url": server.url + "/?o=${offset}", "topic": "t", **stores("https.ssl.")}
        source = started_source(HttpSourceConnector, given, Offsets())
        batch = source.poll()
        assert batch is not None and [row.value["id"] for row in batch.rows()] == [1, 2]
        source.stop()


@pytest.mark.parametrize("is_secured", [False, True])
def test_requests_go_through_a_proxy_that_wants_a_login(is_secured: bool) -> None:
    tokens = Reply(200, {"access_token": "one", "expires_in": 3600})
    decide: Decide = lambda seen: tokens if seen.path == "/token" else Reply(200, ROWS[:1])  # noqa: E731
    make = secured if is_secured else HttpServer
    with make(decide) as server, http_proxy("me:secret") as proxy:
        own = stores("https.ssl.") if is_secured else {}
        way = {"http.proxy.host": "127.0.0.1", "http.proxy.port": str(proxy.port), **own}
        login = {"http.proxy.user": "me", "http.proxy.password": "secret"}
        oauth = {"auth.type": "OAUTH2", "oauth2.token.url": f"{server.url}/token"}
        oauth |= {"oauth2.client.id": "me", "oauth2.client.secret": "x"}
        task = sink({"http.api.url": f"{server.url}/in", **way, **login, **oauth})
        task.put(records(["a"]))
        task.stop()
        assert [(each.path, each.headers.get("authorization")) for each in server.seen[1:]] == [
            ("/in", "Bearer one")
        ]
        given = {"url": server.url + "/?o=${offset}", "topic": "t", **way, **login}
        source = started_source(HttpSourceConnector, given, Offsets())
        assert source.poll() is not None
        source.stop()
        methods = [method for method, _ in proxy.asked]
        assert methods == (["CONNECT"] * len(methods) if is_secured else ["POST", "POST", "GET"])
        assert all(each.headers.get("proxy-authorization") is None for each in server.seen) or not is_secured
        task = sink({"http.api.url": server.url, **way})
        with pytest.raises(ConnectError, match="407"):
            task.put(records(["a"]))
        task.stop()


def test_a_connection_that_is_cut_within_a_response_is_tried_again() -> None:
    replies = [Reply(200, b"x" * 1000, cut_at=10), Reply(200, b"x" * 1000)]
    with HttpServer(lambda seen: replies.pop(0)) as server:
        task = sink({"http.api.url": server.url, "batch.max.size": "5"})
        with pytest.raises(RetriableError, match=r"incomplete|closed"):
            task.put(records(["a", "b"]))
        task.put(records(["a", "b"]))
        assert sent(server) == [b"a,b", b"a,b"]
        task.stop()
    pages = [Reply(200, ROWS[:3], cut_at=20), Reply(200, ROWS[:3]), Reply(200, [])]
    with HttpServer(lambda seen: pages.pop(0)) as server:
        given = {"url": server.url + "/?o=${offset}", "topic": "t", "retry.backoff.ms": "1"}
        source: Any = started_source(HttpSourceConnector, given, Offsets())
        with pytest.raises(RetriableError):
            source.poll()
        source._readers[0].not_before = 0.0
        batch = source.poll()
        assert [row.value["id"] for row in batch.rows()] == [1, 2, 3]
        assert [each.query["o"] for each in server.seen] == ["0", "0"]
        source.stop()


def test_a_slow_server_is_tried_again() -> None:
    gate = threading.Event()
    with HttpServer(lambda seen: Reply(200, waits_for=gate)) as server:
        task = sink({"http.api.url": server.url, "http.request.timeout.ms": "200"})
        with pytest.raises(RetriableError, match="timed out"):
            task.put(records(["a"]))
        gate.set()
        task.put(records(["a"]))
        assert sent(server) == [b"a", b"a"]
        task.stop()
