"""Records produced through v3: one, many in a stream, a batch; errors of single records."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from confluent_kafka import Consumer, TopicPartition

from barnabas.rest.proxy import ProxySettings
from rest.serving import HTTP, Served, serving

JSON = {"content-type": "application/json"}


def produce(proxy: Served, topic: str, content: Any, **headers: str) -> httpx.Response:
    url = f"{proxy.cluster}/topics/{topic}/records"
    return HTTP.post(url, content=content, headers={**JSON, **headers})


def answers(response: httpx.Response) -> list[dict[str, Any]]:
    assert response.status_code == 200, response.text
    return [json.loads(line) for line in response.text.splitlines()]


def consumed(broker: str, topic: str, count: int, partition: int = 0) -> list[Any]:
    consumer = Consumer({"bootstrap.servers": broker, "group.id": "none", "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(topic, partition, 0)])
        found: list[Any] = []
        deadline = time.monotonic() + 30
        while len(found) < count and time.monotonic() < deadline:
            found += consumer.consume(count - len(found), timeout=1)
        return found
    finally:
        consumer.close()


def test_one_record_is_answered_like_a_plain_call(broker: str, proxy: Served, topic: str) -> None:
    record = {
        "partition_id": 0,
        "headers": [{"name": "a", "value": base64.b64encode(b"1").decode()}, {"name": "b", "value": None}],
        "key": {"type": "STRING", "data": "k"},
        "value": {"type": "JSON", "data": {"b": [1, 2.5, None], "ü": True}},
        "timestamp": "2026-01-02T03:04:05.678Z",
    }
    response = produce(proxy, topic, json.dumps(record))
    assert "content-length" in response.headers
    assert answers(response) == [
        {
            "error_code": 200,
            "cluster_id": proxy.cluster_id,
            "topic_name": topic,
            "partition_id": 0,
            "offset": 0,
            "timestamp": "2026-01-02T03:04:05.678Z",
            "key": {"type": "STRING", "size": 1},
            "value": {"type": "JSON", "size": 28},
        }
    ]
    [message] = consumed(broker, topic, 1)
    assert message.key() == b"k"
    assert json.loads(message.value()) == {"b": [1, 2.5, None], "ü": True}
    assert message.headers() == [("a", b"1"), ("b", None)]
    assert message.timestamp()[1] == 1767323045678


def test_null_and_absent_data(broker: str, proxy: Served, topic: str) -> None:
    first, second = answers(
        produce(proxy, topic, b'{"partition_id":0}{"partition_id":0,"value":{"type":"BINARY","data":"AAE="}}')
    )
    assert "key" not in first
    assert "value" not in first
    assert second["value"] == {"type": "BINARY", "size": 2}
    messages = consumed(broker, topic, 2)
    assert [each.value() for each in messages] == [None, b"\0\1"]
    assert [each.key() for each in messages] == [None, None]


def records(count: int, between: str = "") -> bytes:
    return between.join(
        json.dumps({"partition_id": 0, "value": {"type": "JSON", "data": number}}) for number in range(count)
    ).encode()


@pytest.mark.parametrize("between", ["", "\n", " \r\n\t"])
def test_a_stream_is_answered_in_order(broker: str, proxy: Served, topic: str, between: str) -> None:
    found = answers(produce(proxy, topic, records(500, between)))
    assert [each["offset"] for each in found] == list(range(500))
    assert [json.loads(each.value()) for each in consumed(broker, topic, 500)] == list(range(500))


def test_a_stream_in_odd_chunks(proxy: Served, topic: str) -> None:
    data = records(40)

    def chunks() -> Iterator[bytes]:
        for start in range(0, len(data), 7):
            yield data[start : start + 7]

    assert [each["offset"] for each in answers(produce(proxy, topic, chunks()))] == list(range(40))


class Duplex:
    """A connection that sends chunks while it reads answers."""

    def __init__(self, proxy: Served, topic: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", proxy.port), timeout=30)
        path = f"/v3/clusters/{proxy.cluster_id}/topics/{topic}/records"
        head = (
            f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            "Transfer-Encoding: chunked\r\n\r\n"
        )
        self._socket.sendall(head.encode())
        self._file = self._socket.makefile("rb")
        self._head: list[bytes] = []
        self._rest = b""

    def send(self, data: bytes) -> None:
        self._socket.sendall(b"%x\r\n%b\r\n" % (len(data), data))

    def end(self) -> None:
        self._socket.sendall(b"0\r\n\r\n")

    def answer(self) -> dict[str, Any] | None:
        """The next answer; None at the end of the response."""
        if not self._head:
            while (line := self._file.readline()) not in (b"\r\n", b""):
                self._head.append(line)
            assert b" 200 " in self._head[0]
        while b"\n" not in self._rest:
            size = int(self._file.readline().strip() or b"0", 16)
            if size == 0:
                return None
            self._rest += self._file.read(size)
            self._file.readline()
        line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(line)  # type: ignore[no-any-return]

    def close(self) -> None:
        self._file.close()
        self._socket.close()


@pytest.fixture
def duplex(proxy: Served, topic: str) -> Iterator[Duplex]:
    found = Duplex(proxy, topic)
    yield found
    found.close()


def test_answers_come_while_the_stream_is_open(duplex: Duplex) -> None:
    for number in range(3):
        duplex.send(records(1))
        answer = duplex.answer()
        assert answer is not None
        assert answer["offset"] == number
    duplex.end()
    assert duplex.answer() is None


def test_broken_json_gives_one_error_and_ends_the_stream(duplex: Duplex) -> None:
    duplex.send(records(2) + b'{"value": oops}' + records(5))
    assert [duplex.answer()["error_code"] for _ in range(3)] == [200, 200, 400]  # type: ignore[index]
    assert duplex.answer() is None
    assert any(line.lower() == b"connection: close\r\n" for line in duplex._head)


def test_a_stream_that_ends_inside_an_object_gives_an_error(proxy: Served, topic: str) -> None:
    found = answers(produce(proxy, topic, records(1) + b'{"value"'))
    assert [each["error_code"] for each in found] == [200, 400]
    assert found[1]["message"].startswith("Bad Request: Error processing message:")


@pytest.mark.parametrize(
    ("record", "code"),
    [
        ({"partition_id": -1}, 40402),
        ({"partition_id": 99}, 40403),
        ({"partition_id": "0"}, 400),
        ({"colour": 1}, 422),
        ({"value": 5}, 400),
        ({"value": {"type": "BINARY", "data": "%%"}}, 42206),
        ({"value": {"type": "BINARY", "data": 5}}, 42206),
        ({"value": {"type": "STRING", "data": 5}}, 42206),
        ({"value": {"type": "OTHER", "data": 5}}, 400),
        ({"value": {"type": "JSON", "schema_id": 1, "data": 5}}, 400),
        ({"value": {"type": "JSON", "schema_version": 1, "data": 5}}, 400),
        ({"value": {"schema_id": 1, "schema_version": 1, "data": 5}}, 400),
        ({"value": {"subject": "s", "subject_name_strategy": "TOPIC_NAME", "data": 5}}, 400),
        ({"value": {"schema": "{}", "data": 5}}, 400),
        ({"value": {"type": "STRING", "subject": "s", "data": "x"}}, 400),
        ({"value": {"data": 5}}, 40801),
        ({"value": {"schema_id": 1, "data": 5}}, 40801),
        ({"value": {"extra": 5}}, 422),
        ({"headers": {}}, 400),
        ({"headers": [{"value": "AA=="}]}, 42206),
        ({"headers": [{"name": "a", "value": "?"}]}, 42206),
        ({"timestamp": "yesterday"}, 400),
        ({"timestamp": "2026-01-02T03:04:05"}, 400),
        ({"timestamp": 5}, 400),
        ({"value": {"type": "STRING", "data": "x" * 2_000_000}}, 413),
    ],
)
def test_a_record_that_fails_does_not_end_the_stream(
    proxy: Served, topic: str, record: dict[str, Any], code: int
) -> None:
    content = records(1) + json.dumps(record).encode() + records(1)
    found = answers(produce(proxy, topic, content))
    assert [each["error_code"] for each in found] == [200, code, 200], found
    assert ": " in found[1]["message"]
    assert set(found[1]) == {"error_code", "message"}


def test_bodies_that_are_missing_or_empty(proxy: Served, topic: str) -> None:
    missing = produce(proxy, topic, b"")
    assert (missing.status_code, missing.json()["error_code"]) == (422, 42206)
    assert (produce(proxy, topic, b" \n ").status_code, produce(proxy, topic, b" ").text) == (200, "")
    form = produce(proxy, topic, b"{}", **{"content-type": "text/plain"})
    assert (form.status_code, form.json()["error_code"]) == (415, 415)


def test_the_cluster_id_does_not_count_for_records(proxy: Served, topic: str) -> None:
    url = f"{proxy.url}/v3/clusters/other/topics/{topic}/records"
    [found] = answers(HTTP.post(url, content=records(1), headers=JSON))
    assert found["cluster_id"] == proxy.cluster_id


def test_a_topic_that_cannot_exist_fails_every_record(proxy: Served) -> None:
    found = answers(produce(proxy, "not@legal", records(3)))
    assert [each["error_code"] for each in found] == [40002] * 3


def test_batches_answer_every_entry(broker: str, proxy: Served, topic: str) -> None:
    entries = [
        {"id": "one", "partition_id": 0, "value": {"type": "STRING", "data": "1"}},
        {"id": "two", "partition_id": 0, "value": {"type": "BINARY", "data": "%"}},
        {"id": "3", "partition_id": 0, "key": {"type": "JSON", "data": 3}},
    ]
    url = f"{proxy.cluster}/topics/{topic}/records:batch"
    response = HTTP.post(url, json={"entries": entries})
    assert response.status_code == 207
    found = response.json()
    assert [(each["id"], each["offset"]) for each in found["successes"]] == [("one", 0), ("3", 1)]
    assert found["successes"][0]["value"] == {"type": "STRING", "size": 1}
    [failure] = found["failures"]
    assert (failure["id"], failure["error_code"]) == ("two", 42206)
    assert [each.value() for each in consumed(broker, topic, 2)] == [b"1", None]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 422, 42208),
        (b"{}", 422, 42208),
        (b'{"entries":[]}', 422, 42208),
        (b'{"entries":[{"value":{}}]}', 422, 42208),
        (b'{"entries":[{"id":5}]}', 422, 42208),
        (b'{"entries":[{"id":"a"},{"id":"a"}]}', 422, 42208),
        (b'{"entries":[{"id":"a\\""}]}', 422, 42208),
        (json.dumps({"entries": [{"id": str(number)} for number in range(11)]}).encode(), 422, 42208),
        (b'{"entries":[{"id":"a"}],"x":1}', 422, 422),
        (b"{", 400, 400),
    ],
)
def test_batches_that_are_refused_whole(
    proxy: Served, topic: str, body: bytes, status: int, code: int
) -> None:
    response = HTTP.post(f"{proxy.cluster}/topics/{topic}/records:batch", content=body, headers=JSON)
    assert (response.status_code, response.json()["error_code"]) == (status, code), response.text


@pytest.fixture(scope="module")
def strict(broker: str) -> Iterator[Served]:
    """A proxy with small limits."""
    settings = ProxySettings(
        record_chars_max=500,
        stream_ms_max=1_500,
        stream_idle_ms=600,
        stream_grace_ms=50,
        stream_in_flight_max=5,
        stream_in_flight_bytes_max=300,
    )
    with serving(broker, settings) as served:
        yield served


def test_an_object_that_is_too_large_ends_the_stream(strict: Served, topic: str) -> None:
    found = answers(produce(strict, topic, records(1) + b'{"value":{"type":"STRING","data":"' + b"x" * 600))
    assert [each["error_code"] for each in found] == [200, 413]


def test_few_records_in_flight_still_pass_all(strict: Served, topic: str) -> None:
    assert len(answers(produce(strict, topic, records(300)))) == 300


def test_streams_that_are_idle_or_old_end_with_408(strict: Served, topic: str) -> None:
    idle = Duplex(strict, topic)
    idle.send(records(1))
    assert [idle.answer()["error_code"] for _ in range(2)] == [200, 408]  # type: ignore[index]
    assert idle.answer() is None
    old = Duplex(strict, topic)
    codes = []
    while 408 not in codes:
        old.send(records(1))
        answer = old.answer()
        assert answer is not None
        codes.append(answer["error_code"])
    assert set(codes) == {200, 408}
    idle.close()
    old.close()


def test_a_client_that_leaves_does_not_disturb_others(proxy: Served, topic: str) -> None:
    gone = Duplex(proxy, topic)
    gone.send(records(1) + b'{"val')
    gone.close()
    assert len(answers(produce(proxy, topic, records(10)))) == 10


def test_a_stopping_proxy_ends_its_streams(broker: str, fresh_name: Callable[[], str]) -> None:
    with serving(broker) as served:
        stream = Duplex(served, fresh_name())
        stream.send(records(1))
        first = stream.answer()
        assert first is not None
        served.loop.call_soon_threadsafe(served.proxy.stopping.set)
        last = stream.answer()
        assert last is not None
        assert last["error_code"] == 503
        assert stream.answer() is None
        stream.close()


def test_records_beyond_the_rate_of_the_proxy_are_refused(broker: str, fresh_name: Callable[[], str]) -> None:
    with serving(broker, ProxySettings(produce_records_per_s=5)) as served:
        found = answers(produce(served, fresh_name(), records(50)))
        codes = [each["error_code"] for each in found]
        assert codes[:5] == [200] * 5
        assert 429001 in codes
        batch = {"entries": [{"id": "1"}, *({"id": f"more-{number}"} for number in range(9))]}
        url = f"{served.cluster}/topics/{fresh_name()}/records:batch"
        failures = HTTP.post(url, json=batch).json()["failures"]
        assert {each["error_code"] for each in failures} == {429001}


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl_streams_records_and_reads_their_answers(proxy: Served, topic: str) -> None:
    url = f"{proxy.cluster}/topics/{topic}/records"
    # The dot: read answers while standard input waits for more.
    options = ["-sS", "--no-buffer", "-H", "Content-Type: application/json", "-T", ".", "-X", "POST"]
    with subprocess.Popen(["curl", *options, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as curl:
        assert curl.stdin is not None
        assert curl.stdout is not None
        for number in range(3):
            curl.stdin.write(records(1))
            curl.stdin.flush()
            assert json.loads(curl.stdout.readline())["offset"] == number
        curl.stdin.close()
        assert curl.stdout.read() == b""
    assert curl.returncode == 0
