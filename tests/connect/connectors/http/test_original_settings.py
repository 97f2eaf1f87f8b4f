"""Settings of Confluent's and Aiven's HTTP connectors: replacements, batches, pauses, headers, errors."""

from __future__ import annotations

import logging
from decimal import Decimal

import orjson
import pytest
from tests.connect.connectors.contexts import Offsets, started_source
from tests.connect.connectors.http.test_http_sink import Sink, ok, records
from tests.stores.http_server import HttpServer, Reply, Seen

from barnabas.connect.connectors.http.http_sink import AivenHttpSinkConnector, HttpSinkConnector
from barnabas.connect.connectors.http.http_source import HttpSourceConnector
from barnabas.connect.plugins import ConnectError, RetriableError


def test_what_matches_is_replaced_in_each_body_and_not_between_them() -> None:
    with HttpServer(ok) as server:
        config = {
            "http.api.url": server.url,
            "batch.max.size": "2",
            "batch.separator": "|",
            "regex.patterns": r"^\{(.*)\}$~secret-\d+~\|",
            "regex.replacements": r"<$1 of ${key}>~\$\$~never",
        }
        sink = Sink(config)
        sink.put(records(["{a secret-12}", "{b}"], keys=["k1", "k2"]))
        assert [each.body for each in server.seen] == [b"<a $$ of k1>|<b of k2>"]


def test_replacements_that_do_not_fit_their_patterns_are_refused() -> None:
    check = HttpSinkConnector().check
    base = {"http.api.url": "http://x", "regex.patterns": "a~b"}
    assert "1 for 2 patterns" in check({**base, "regex.replacements": "x"})["regex.replacements"][0]
    assert (
        "no expression"
        in check({**base, "regex.patterns": "(", "regex.replacements": "x"})["regex.patterns"][0]
    )
    with HttpServer(ok) as server:
        sink = Sink({"http.api.url": server.url, "regex.patterns": "b(.)", "regex.replacements": "$2"})
        sink.put(records(["abc", "ok"]))
        assert [offset for offset, _ in sink.errant] == [0] and [each.body for each in server.seen] == [b"ok"]


def test_records_of_one_request_have_the_same_batch_key() -> None:
    with HttpServer(ok) as server:
        config = {"http.api.url": server.url, "batch.max.size": "10", "batch.key.pattern": "${topic}/${key}"}
        sink = Sink(config)
        sink.put(records(["a", "b", "c", "d"], keys=["1", "1", "2", "1"]))
        assert [each.body for each in server.seen] == [b"a,b", b"c", b"d"]


def test_tombstones_are_logged_where_that_is_wanted(caplog: pytest.LogCaptureFixture) -> None:
    with HttpServer(ok) as server, caplog.at_level(logging.WARNING):
        sink = Sink({"http.api.url": server.url, "behavior.on.null.values": "log"})
        sink.put(records(["a", None], keys=["1", "gone"]))
        assert len(server.seen) == 1 and sink.errant == []
    assert "orders-0 offset 1 with the key 'gone'" in caplog.text


def test_pauses_grow_with_jitter_or_stay_as_long_as_the_first() -> None:
    with HttpServer(lambda seen: Reply(503)) as server:
        constant = Sink(
            {"http.api.url": server.url, "retry.backoff.ms": "5", "retry.backoff.policy": "CONSTANT_VALUE"}
        )
        growing = Sink({"http.api.url": server.url, "retry.backoff.ms": "1000"})
        for sink in (constant, growing):
            with pytest.raises(RetriableError):
                sink.put(records(["a"]), tries=3)
        assert constant.pauses == [5, 5, 5]
        for pause, longest in zip(growing.pauses, (1000, 2000, 4000), strict=True):
            assert longest / 2 <= pause <= longest


def test_the_token_server_gets_the_headers_of_the_settings() -> None:
    def decide(seen: Seen) -> Reply:
        return Reply(200, {"access_token": "t"}) if seen.path == "/token" else Reply()

    with HttpServer(decide) as server:
        sink = Sink(
            {
                "http.api.url": server.url + "/in",
                "auth.type": "OAUTH2",
                "oauth2.token.url": server.url + "/token",
                "oauth2.client.id": "me",
                "oauth2.client.secret": "s",
                "oauth2.client.headers": "X-Tenant:seven;X-Zone:a:b",
                "oauth2.client.header.separator": ";",
            }
        )
        sink.put(records(["a"]))
        assert server.seen[0].headers["x-tenant"] == "seven" and server.seen[0].headers["x-zone"] == "a:b"
        assert server.seen[1].headers["authorization"] == "Bearer t"


def test_aivens_sink_tries_without_end_where_kafka_retries_are_wanted() -> None:
    with HttpServer(lambda seen: Reply(500)) as server:
        config = {"http.url": server.url, "max.retries": "1", "retry.backoff.ms": "100"}
        ending = Sink(config, AivenHttpSinkConnector)
        endless = Sink({**config, "kafka.retry.backoff.ms": "40"}, AivenHttpSinkConnector)
        with pytest.raises(ConnectError, match="gave up after 1 retries"):
            ending.put(records(["a"]), tries=3)
        with pytest.raises(RetriableError):
            endless.put(records(["a"]), tries=5)
        assert len(endless.pauses) == 5 and max(endless.pauses) <= 40


def test_decimals_are_texts_or_numbers() -> None:
    with HttpServer(ok) as server:
        for form in ("", "NUMERIC"):
            sink = Sink({"http.url": server.url, "decimal.format": form}, AivenHttpSinkConnector)
            sink.put(records([[Decimal("12.50")]]))
        assert [orjson.loads(each.body) for each in server.seen] == [["12.50"], [12.5]]


def test_a_source_goes_on_behind_errors_where_that_is_wanted() -> None:
    replies = iter([Reply(404), Reply(200, b"[1"), Reply(200, b"[1"), Reply(200, [1])])
    with HttpServer(lambda seen: next(replies)) as server:
        config = {
            "url": server.url + "/?o=${offset}",
            "topic": "t",
            "behavior.on.error": "IGNORE",
            "request.interval.ms": "0",
            "retry.backoff.ms": "1",
            "max.retries": "1",
            "http.request.headers": "A:1",
            "http.request.sensitive.headers": "B:2",
        }
        assert HttpSourceConnector().check(config) == {}
        task = started_source(HttpSourceConnector, config, Offsets())
        assert task.poll() is None  # 404
        with pytest.raises(RetriableError):
            task.poll()
        task._readers[0].not_before = 0.0  # type: ignore[attr-defined]
        assert task.poll() is None  # the retries are used up
        found = task.poll()
        task.stop()
        assert found is not None and [row.value for row in found.rows()] == [1]
        assert (server.seen[0].headers["a"], server.seen[0].headers["b"]) == ("1", "2")
