"""Topics followed as server-sent events and over WebSocket."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosedError, ConnectionClosedOK, InvalidStatus
from websockets.sync.client import connect

from barnabas.rest.proxy import ProxySettings
from rest.serving import HTTP, Served, serving


def produce(proxy: Served, topic: str, *values: Any, partition: int = 0, key: str | None = None) -> None:
    for value in values:
        record: dict[str, Any] = {"partition_id": partition, "value": {"type": "JSON", "data": value}}
        if key is not None:
            record["key"] = {"type": "STRING", "data": key}
        answer = HTTP.post(f"{proxy.cluster}/topics/{topic}/records", json=record).json()
        assert answer["error_code"] == 200, answer


class Events:
    """The events of a response, one by one."""

    def __init__(self, response: httpx.Response) -> None:
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"] == "text/event-stream"
        self._lines = response.iter_lines()
        self.last_id = ""
        self.comments = 0

    def next(self) -> tuple[str, Any]:
        """The name and the data of the next event that has data."""
        name, data = "message", ""
        for line in self._lines:
            field, _, text = line.partition(":")
            match field:
                case "id":
                    self.last_id = text.strip()
                case "event":
                    name = text.strip()
                case "data":
                    data = text
                case "" if line:
                    self.comments += 1
                case "" if data:
                    return name, json.loads(data)
        raise StopIteration

    def record(self) -> Any:
        name, data = self.next()
        assert name == "message", data
        return data


def values(events: Events, count: int) -> list[Any]:
    return [events.record()["value"]["data"] for _ in range(count)]


def tail(proxy: Served, topic: str, **given: Any) -> Any:
    headers = {"accept": "text/event-stream", **given.pop("headers", {})}
    return HTTP.stream("GET", f"{proxy.url}/topics/{topic}/tail", params=given, headers=headers)


def test_records_come_as_they_are_written(proxy: Served, topic: str) -> None:
    produce(proxy, topic, "before")
    with tail(proxy, topic) as response:
        events = Events(response)
        produce(proxy, topic, {"n": 1}, key="k")
        record = events.record()
        assert record["topic_name"] == topic
        assert (record["partition_id"], record["offset"], record["headers"]) == (0, 1, [])
        assert record["key"] == {"type": "STRING", "data": "k"}
        assert record["value"] == {"type": "JSON", "data": {"n": 1}}
        assert record["timestamp"].endswith("Z")
        assert events.last_id == "0:2,1:0"
        produce(proxy, topic, 2, partition=1)
        assert values(events, 1) == [2]


def test_a_tail_goes_on_where_another_ended(proxy: Served, topic: str) -> None:
    with tail(proxy, topic) as response:
        events = Events(response)
        produce(proxy, topic, 1, 2)
        assert values(events, 2) == [1, 2]
        place = events.last_id
    produce(proxy, topic, 3)
    produce(proxy, topic, 4, partition=1)
    with tail(proxy, topic, headers={"last-event-id": place}) as response:
        assert sorted(values(Events(response), 2)) == [3, 4]
    with tail(proxy, topic, last_event_id=place, limit=1, partition=1) as response:
        assert values(Events(response), 1) == [4]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"from": "beginning"}, [0, 1, 2, 3, 4]),
        ({"from": "3"}, [3, 4]),
        ({"from": "-2"}, [3, 4]),
        ({"from": "-99"}, [0, 1, 2, 3, 4]),
        ({"from": "2000-01-01T00:00:00Z"}, [0, 1, 2, 3, 4]),
        ({"from": "beginning", "limit": "2"}, [0, 1]),
        ({"from": "beginning", "contains": "3"}, [3]),
        ({"from": "beginning", "key": "key-2"}, [2]),
    ],
)
def test_where_to_begin_and_what_to_show(
    proxy: Served, numbers: str, options: dict[str, str], expected: list[int]
) -> None:
    limit = {"limit": str(len(expected))}
    with tail(proxy, numbers, partition="0", **{**limit, **options}) as response:
        events = Events(response)
        assert values(events, len(expected)) == expected
        with pytest.raises(StopIteration):  # the limit ends the response
            events.next()


@pytest.fixture(scope="module")
def numbers(proxy: Served) -> str:
    """A topic with five records."""
    name = "numbers"
    HTTP.post(f"{proxy.cluster}/topics", json={"topic_name": name, "partitions_count": 2})
    for number in range(5):
        produce(proxy, name, number, key=f"key-{number}")
    return name


def test_formats_of_data(proxy: Served, topic: str) -> None:
    record = {"partition_id": 0, "value": {"type": "BINARY", "data": "/wA="}}
    HTTP.post(f"{proxy.cluster}/topics/{topic}/records", json=record)
    produce(proxy, topic, "text")
    with tail(proxy, topic, **{"from": "beginning"}) as response:
        events = Events(response)
        assert events.record()["value"] == {"type": "BINARY", "data": "/wA="}
        assert events.record()["value"] == {"type": "JSON", "data": "text"}
    with tail(proxy, topic, **{"from": "beginning", "format": "json"}) as response:
        shown = Events(response).record()["value"]
        assert (shown["type"], shown["data"]) == ("BINARY", "/wA=")
        assert "JSON" in shown["error"]
    with tail(proxy, topic, **{"from": "1", "format": "string", "partition": "0"}) as response:
        assert Events(response).record()["value"] == {"type": "STRING", "data": '"text"'}


def test_an_offset_behind_the_end_gets_a_notice(proxy: Served, numbers: str) -> None:
    with tail(proxy, numbers, partition="0", **{"from": "1000"}) as response:
        name, data = Events(response).next()
        assert name == "notice"
        assert (data["skipped_from"], data["skipped_to"], data["partition_id"]) == (1000, 5, 0)


@pytest.mark.parametrize(
    ("options", "status", "code"),
    [({"from": "soon"}, 400, 400), ({"partition": "99"}, 404, 40402), ({"colour": "red"}, 400, 400)],
)
def test_tails_that_are_refused(
    proxy: Served, numbers: str, options: dict[str, str], status: int, code: int
) -> None:
    response = HTTP.get(f"{proxy.url}/topics/{numbers}/tail", params=options)
    assert (response.status_code, response.json()["error_code"]) == (status, code)


def test_unknown_topics_and_other_media_types(proxy: Served, numbers: str) -> None:
    missing = HTTP.get(f"{proxy.url}/topics/no-such-topic/tail")
    assert (missing.status_code, missing.json()["error_code"]) == (404, 40403)
    html = HTTP.get(f"{proxy.url}/topics/{numbers}/tail", headers={"accept": "text/html"})
    assert html.status_code == 406


def test_a_deleted_topic_ends_its_tail(small: Served, fresh_name: Callable[[], str]) -> None:
    name = fresh_name()
    HTTP.post(f"{small.cluster}/topics", json={"topic_name": name})
    with tail(small, name) as response:
        events = Events(response)
        assert HTTP.delete(f"{small.cluster}/topics/{name}").status_code == 204
        kind, data = events.next()
        assert (kind, data["error_code"]) == ("error", 40403)


@pytest.fixture(scope="module")
def small(broker: str) -> Iterator[Served]:
    """A proxy with room for two tails, and signs of life every 100 ms."""
    settings = ProxySettings(tails_max=2, tail_idle_ms=100, origins=("https://page.example",))
    with serving(broker, settings) as served:
        yield served


def test_the_number_of_tails_is_bounded(small: Served, numbers: str) -> None:
    with tail(small, numbers) as first, tail(small, numbers):
        third = HTTP.get(f"{small.url}/topics/{numbers}/tail")
        assert (third.status_code, third.json()["error_code"]) == (429, 429005)
        produce(small, numbers, "more", partition=1)
        events = Events(first)
        assert values(events, 1) == ["more"]
        assert events.comments
    while small.proxy.tails:  # the proxy notices that the connections are closed
        with tail(small, numbers, limit="0"):
            pass


def web_socket(proxy: Served, path: str, **given: Any) -> Any:
    return connect(f"ws://127.0.0.1:{proxy.port}/topics/{path}", open_timeout=20, **given)


def test_the_same_records_over_web_socket(proxy: Served, topic: str) -> None:
    produce(proxy, topic, 1)
    with web_socket(proxy, f"{topic}/tail?from=beginning") as socket:
        first = json.loads(socket.recv(20))
        assert (first["kind"], first["value"]) == ("record", {"type": "JSON", "data": 1})
        assert first["id"] == "0:1,1:0"
        socket.send("ignored")
        produce(proxy, topic, 2)
        second = json.loads(socket.recv(20))
        assert second["offset"] == 1
    with web_socket(proxy, f"{topic}/tail?last_event_id={first['id']}&limit=1") as socket:
        assert json.loads(socket.recv(20)) == second
        with pytest.raises(ConnectionClosedOK):
            socket.recv(20)


def test_web_sockets_that_are_refused(proxy: Served, numbers: str) -> None:
    for path, status, given in (
        ("no-such-topic/tail", 404, {}),
        (f"{numbers}/tail?from=soon", 400, {}),
        (f"{numbers}/tail", 403, {"origin": "http://evil.example"}),
    ):
        with pytest.raises(InvalidStatus) as refused, web_socket(proxy, path, **given):
            pass
        assert refused.value.response.status_code == status
    own = f"http://127.0.0.1:{proxy.port}"
    with (
        web_socket(proxy, f"{numbers}/tail?limit=0", origin=own) as socket,
        pytest.raises(ConnectionClosedOK),
    ):
        socket.recv(20)


def test_pages_of_allowed_origins_may_open_web_sockets(small: Served, numbers: str) -> None:
    path = f"{numbers}/tail?limit=0"
    with (
        web_socket(small, path, origin="https://page.example") as socket,
        pytest.raises(ConnectionClosedOK),
    ):
        socket.recv(20)
    with pytest.raises(InvalidStatus), web_socket(small, path, origin="https://other.example"):
        pass


def test_a_stopping_proxy_ends_its_tails(broker: str, numbers: str) -> None:
    with (
        serving(broker, ProxySettings(tail_idle_ms=100)) as served,
        tail(served, numbers) as response,
        web_socket(served, f"{numbers}/tail") as socket,
    ):
        events = Events(response)
        served.loop.call_soon_threadsafe(served.proxy.stopping.set)
        with pytest.raises(StopIteration):
            events.next()
        with pytest.raises((ConnectionClosedOK, ConnectionClosedError)) as closed:
            socket.recv(20)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1001
