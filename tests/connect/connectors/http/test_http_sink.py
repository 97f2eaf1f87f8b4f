"""The HTTP sink against a server on loopback: batches, retries, logins, templates, reports, nothing lost."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import orjson
import pytest
from confluent_kafka import Consumer
from tests.connect.connectors.contexts import started_sink
from tests.stores.http_server import HttpServer, Reply, Seen

from barnabas.connect.connectors.http.http_sink import AivenHttpSinkConnector, HttpSinkConnector
from barnabas.connect.connectors.http.sink_settings import status_codes
from barnabas.connect.data import INT64, STRING, Column, Records, struct
from barnabas.connect.plugins import ConnectError, Connector, RetriableError, SinkTask
from barnabas.testing import Broker

ORDER = struct(name="Order", id=INT64, country=STRING)


def records(values: Sequence[Any], keys: Sequence[Any] | None = None, first: int = 0) -> Records:
    column = Column.of(values, ORDER if isinstance(values[0], dict) else None)
    return Records.of(
        "orders",
        column,
        Column.of(keys if keys is not None else [str(i) for i in range(len(values))]),
        timestamps=[0] * len(values),
        partitions=[0] * len(values),
        offsets=list(range(first, first + len(values))),
    )


STARTED: list[SinkTask] = []


@pytest.fixture(autouse=True)
def stopped() -> Iterator[None]:
    yield
    while STARTED:
        STARTED.pop().stop()


class Sink:
    """A task with what it told."""

    def __init__(self, config: dict[str, str], connector: type[Connector] = HttpSinkConnector) -> None:
        self.errant: list[tuple[int, str]] = []
        self.pauses: list[int] = []

        def report(some: Records, indices: Sequence[int], error: BaseException) -> None:
            self.errant += [(some.offsets[index].as_py(), str(error)) for index in indices]

        self.task: SinkTask = started_sink(
            connector, config, errant=report, retry_after_ms=self.pauses.append
        )
        STARTED.append(self.task)

    def put(self, some: Records, tries: int = 1) -> None:
        for left in range(tries, 0, -1):
            try:
                self.task.put(some)
                return
            except RetriableError:
                if left == 1:
                    raise


def ok(_: Seen) -> Reply:
    return Reply(200)


def test_records_are_sent_in_batches_as_a_json_array() -> None:
    with HttpServer(ok) as server:
        sink = Sink(
            {"http.api.url": server.url + "/in", "batch.max.size": "2", "batch.json.as.array": "true"}
        )
        sink.put(records([{"id": n, "country": "DE"} for n in range(5)]))
        assert [orjson.loads(each.body) for each in server.seen] == [
            [{"id": 0, "country": "DE"}, {"id": 1, "country": "DE"}],
            [{"id": 2, "country": "DE"}, {"id": 3, "country": "DE"}],
            [{"id": 4, "country": "DE"}],
        ]
        assert server.seen[0].headers["content-type"] == "application/json"


def test_addresses_headers_and_bodies_are_filled_from_the_record() -> None:
    with HttpServer(ok) as server:
        sink = Sink(
            {
                "http.api.url": server.url + "/${topic}/${key}/${country}",
                "request.method": "PUT",
                "headers": "Idempotency-Key:${topic}-${partition}-${offset}|X-Fixed: yes",
                "request.body.template": '{"n": ${value.id}}',
            }
        )
        sink.put(records([{"id": 7, "country": "a/b ü"}], ["k?1"]))
        seen = server.seen[0]
        assert (seen.method, seen.path) == ("PUT", "/orders/k%3F1/a%2Fb%20%C3%BC")
        assert (seen.headers["idempotency-key"], seen.headers["x-fixed"]) == ("orders-0-0", "yes")
        assert seen.body == b'{"n": 7}'


def test_a_batch_that_fails_in_its_middle_goes_on_there() -> None:
    answers = iter([200, 503, 200, 429, 200, 200, 200, 200])
    with HttpServer(lambda seen: Reply(next(answers), headers={"retry-after": "0"})) as server:
        sink = Sink({"http.api.url": server.url, "retry.backoff.ms": "7"})
        sink.put(records(["a", "b", "c", "d"]), tries=3)
        assert [each.body for each in server.seen] == [b"a", b"b", b"b", b"c", b"c", b"d"]
        assert 4 <= sink.pauses[0] <= 7 <= sink.pauses[1] <= 14
        sink.put(records(["e"], first=4))
        assert server.seen[-1].body == b"e"


def test_retry_after_is_kept_even_if_the_runtime_comes_earlier() -> None:
    answers = iter([503])
    with HttpServer(lambda seen: Reply(next(answers), headers={"retry-after": "30"})) as server:
        sink = Sink({"http.api.url": server.url, "retry.backoff.ms": "1"})
        with pytest.raises(RetriableError, match="503"):
            sink.put(records(["a"]))
        with pytest.raises(RetriableError, match="asked to wait"):
            sink.put(records(["a"]))
        assert len(server.seen) == 1
        assert sink.pauses[1] >= 30_000 > 29_000 < sink.pauses[2] <= 30_001


def test_retries_end_and_the_task_fails_with_the_reason() -> None:
    with HttpServer(lambda seen: Reply(500, b"broken")) as server:
        sink = Sink({"http.api.url": server.url, "max.retries": "2", "retry.backoff.ms": "1"})
        for _ in range(2):
            with pytest.raises(RetriableError):
                sink.put(records(["a"]))
        with pytest.raises(ConnectError, match="500: broken; gave up after 2 retries"):
            sink.put(records(["a"]))
        assert sink.errant == []


def test_a_server_that_is_away_is_tried_again() -> None:
    with HttpServer(ok) as server:
        url = server.url
    sink = Sink({"http.api.url": url})
    with pytest.raises(RetriableError, match=r"POST http://127\.0\.0\.1"):
        sink.put(records(["a"]))


def test_refused_records_are_errant_and_the_others_are_sent() -> None:
    with HttpServer(lambda seen: Reply(400 if seen.body == b"bad" else 201)) as server:
        sink = Sink({"http.api.url": server.url, "behavior.on.null.values": "fail"})
        sink.put(records(["a", "bad", None, "b"]))
        assert [offset for offset, _ in sink.errant] == [1, 2]
        assert "answered 400" in sink.errant[0][1] and "no value" in sink.errant[1][1]
        assert [each.body for each in server.seen] == [b"a", b"bad", b"b"]


def test_nothing_behind_a_refused_record_is_sent_where_the_task_fails_with_it() -> None:
    class Ended(Exception):
        pass

    def report(some: Records, indices: Sequence[int], error: BaseException) -> None:
        raise Ended

    for values in (["a", "bad", "b"], ["a", None, "b"]):
        with HttpServer(lambda seen: Reply(400 if seen.body == b"bad" else 201)) as server:
            config = {"http.api.url": server.url, "behavior.on.null.values": "fail"}
            task = started_sink(HttpSinkConnector, config, errant=report)
            with pytest.raises(Ended):
                task.put(records(values))
            task.stop()
            assert b"b" not in [each.body for each in server.seen]


def test_a_login_that_is_refused_fails_the_task_and_blames_no_record() -> None:
    with HttpServer(lambda seen: Reply(401, b"expired")) as server:
        sink = Sink({"http.api.url": server.url, "errors.tolerance": "all", "bearer.token": "x"})
        with pytest.raises(ConnectError, match="refuses the connector, not the records"):
            sink.put(records(["a", "b"]))
        assert sink.errant == [] and len(server.seen) == 1


def test_refused_records_are_reported_even_if_later_ones_are_tried_again() -> None:
    answers = {b"bad": [400], b"b": [503, 200]}
    with HttpServer(lambda seen: Reply(answers[seen.body].pop(0))) as server:
        sink = Sink({"http.api.url": server.url, "behavior.on.null.values": "fail"})
        sink.put(records([None, "bad", "b"]), tries=2)
        assert [offset for offset, _ in sink.errant] == [0, 1]
        assert [each.body for each in server.seen] == [b"bad", b"b", b"b"]


def test_tombstones_delete_or_are_ignored() -> None:
    with HttpServer(ok) as server:
        url = server.url + "/things/${key}"
        Sink({"http.api.url": url}).put(records([None, "x"], ["a", "b"]))
        Sink({"http.api.url": url, "behavior.on.null.values": "delete"}).put(records([None], ["a"]))
        assert [(each.method, each.path) for each in server.seen] == [
            ("POST", "/things/b"),
            ("DELETE", "/things/a"),
        ]


def test_a_header_with_a_line_end_makes_the_record_errant() -> None:
    with HttpServer(ok) as server:
        sink = Sink({"http.api.url": server.url, "headers": "x:${key}"})
        sink.put(records(["v"], ["a\r\nset-cookie: b"]))
        assert server.seen == [] and "end of a line" in sink.errant[0][1]


@pytest.mark.parametrize(
    ("config", "header"),
    [
        ({"auth.type": "BASIC", "connection.user": "u", "connection.password": "p"}, "Basic dTpw"),
        ({"auth.type": "bearer", "bearer.token": "t"}, "Bearer t"),
    ],
)
def test_logins_that_never_change(config: dict[str, str], header: str) -> None:
    with HttpServer(ok) as server:
        Sink({"http.api.url": server.url, **config}).put(records(["a"]))
        assert server.seen[0].headers["authorization"] == header


def test_api_keys_stand_in_a_header_or_in_the_address(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    config = {"auth.type": "API_KEY", "api.key.name": "x-key", "api.key.value": "s"}
    with HttpServer(ok) as server:
        Sink({"http.api.url": server.url, **config}).put(records(["a"]))
        Sink({"http.api.url": server.url, **config, "api.key.location": "query"}).put(records(["a"]))
        assert server.seen[0].headers["x-key"] == "s" and server.seen[1].query == {"x-key": "s"}
    assert "x-key=s" not in caplog.text


def test_a_token_is_fetched_once_and_again_when_it_is_refused() -> None:
    tokens = iter(["one", "two"])
    valid = {"Bearer one"}

    def decide(seen: Seen) -> Reply:
        if seen.path == "/token":
            return Reply(200, {"access_token": next(tokens), "expires_in": 3600})
        return Reply(200 if seen.headers["authorization"] in valid else 401)

    with HttpServer(decide) as server:
        sink = Sink(
            {
                "http.api.url": server.url + "/in",
                "auth.type": "OAUTH2",
                "oauth2.token.url": server.url + "/token",
                "oauth2.client.id": "me",
                "oauth2.client.secret": "secret",
                "oauth2.client.scope": "write",
            }
        )
        sink.put(records(["a", "b"]))
        valid.clear()
        valid.add("Bearer two")
        sink.put(records(["c"]))
        assert [each.path for each in server.seen] == ["/token", "/in", "/in", "/in", "/token", "/in"]
        assert (
            b"grant_type=client_credentials" in server.seen[0].body and b"scope=write" in server.seen[0].body
        )
        assert server.seen[0].headers["authorization"].startswith("Basic ")


def test_aivens_names_give_lines() -> None:
    with HttpServer(ok) as server:
        config = {
            "http.url": server.url,
            "http.authorization.type": "static",
            "http.headers.authorization": "Bearer x",
            "http.headers.additional": "a:1,b:2",
            "batching.enabled": "true",
        }
        Sink(config, AivenHttpSinkConnector).put(records(["a", "b"]))
        seen = server.seen[0]
        assert seen.body == b"a\nb\n"
        assert (seen.headers["authorization"], seen.headers["a"], seen.headers["b"]) == ("Bearer x", "1", "2")


def test_nothing_is_lost_and_order_is_kept_over_random_failures() -> None:
    rng = random.Random(5)
    taken: list[bytes] = []

    def decide(seen: Seen) -> Reply:
        if rng.random() < 0.4:
            return Reply(rng.choice([500, 503, 429, 408]))
        taken.extend(seen.body.split(b","))
        return Reply(200)

    with HttpServer(decide) as server:
        sink = Sink({"http.api.url": server.url, "batch.max.size": "3", "max.retries": "-1"})
        for first in range(0, 60, 10):
            sink.put(records([str(n) for n in range(first, first + 10)], first=first), tries=1000)
        assert taken == [str(n).encode() for n in range(60)]


def test_reports_are_written_before_offsets_are_committed(barnabas_broker: Broker) -> None:
    with HttpServer(lambda seen: Reply(400 if seen.body == b"bad" else 200, b"thanks")) as server:
        sink = Sink(
            {
                "report.errors.as": "http_response",
                "reporter.error.topic.partitions": "2",
                "http.api.url": server.url,
                "reporter.bootstrap.servers": barnabas_broker.bootstrap,
                "reporter.result.topic.name": "http-ok",
                "reporter.result.topic.replication.factor": "1",
                "reporter.error.topic.name": "http-bad",
                "reporter.error.topic.replication.factor": "1",
            }
        )
        sink.put(records(["a", "bad"]))
        sink.task.flush({})
        good, bad = (first_record(barnabas_broker.bootstrap, topic) for topic in ("http-ok", "http-bad"))
        assert (good.key(), good.value()) == (b"orders-0-0", b"thanks")
        assert bad.key() == b"orders-0-1" and bad.value() == b"thanks"
        assert dict(bad.headers())["response_code"] == b"400"
        assert dict(good.headers())["input_record_offset"] == b"0"


def first_record(bootstrap: str, topic: str) -> Any:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": topic, "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe([topic])
        found = consumer.poll(30)
    finally:
        consumer.close()
    assert found is not None and found.error() is None
    return found


def test_settings_that_do_not_fit_are_named() -> None:
    def errors(**config: str) -> dict[str, list[str]]:
        return HttpSinkConnector().check({name.replace("_", "."): text for name, text in config.items()})

    assert list(errors(http_api_url="ftp://x")) == ["http.api.url"]
    assert list(errors(http_api_url="http://x", retry_on_status_codes="abc")) == ["retry.on.status.codes"]
    assert list(errors(http_api_url="http://x", auth_type="OAUTH2")) == ["oauth2.token.url"]
    assert list(errors(http_api_url="http://x", headers="nonsense")) == ["headers"]
    assert errors(http_api_url="http://x") == {}


def test_ranges_of_statuses() -> None:
    is_retried = status_codes("408, 500-502,  599-")
    assert [n for n in (400, 408, 499, 500, 502, 503, 599, 600) if is_retried(n)] == [408, 500, 502, 599, 600]
