"""Consumer instances of API v2: their life, records in every format, positions, commits, every refusal."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from barnabas.client.consumers.group_consumer import OffsetReset
from barnabas.rest.application.service import RestOptions
from barnabas.rest.v2.consumers.instances import ConsumerSettings
from rest.serving import Served, serving
from rest.v2.calling import PATIENCE_S, V2, Api, embedded, refusal, until

Consumer = Callable[..., Api]
EARLIEST = {"format": "json", "auto.offset.reset": "earliest"}
AVRO = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": ["null", "bytes"]}]})


def place(topic: str, partition: int, **others: Any) -> dict[str, Any]:
    return {"topic": topic, "partition": partition, **others}


def test_the_life_of_an_instance(api: Api, topic: str, consumer: Consumer) -> None:
    response = api.post("/consumers/a%20group", {"name": "my name", **EARLIEST})
    assert response.json() == {
        "instance_id": "my name",
        "base_uri": f"{api.url}/consumers/a%20group/instances/my%20name",
    }
    mine = Api(response.json()["base_uri"])
    assert mine.get("/subscription").json() == {"topics": []}
    assert mine.post("/subscription", {"topics": [topic]}).status_code == 204
    assert mine.get("/subscription").json() == {"topics": [topic]}
    assert mine.get("/assignments").json() == {"partitions": []}
    api.produce(topic, {"key": "k", "value": {"a": 1}, "partition": 1})
    records = mine.read(1)
    assert records == [{"topic": topic, "key": "k", "value": {"a": 1}, "partition": 1, "offset": 0}]
    assert mine.get("/assignments").json() == {"partitions": [place(topic, 0), place(topic, 1)]}
    assert mine.delete("/subscription").status_code == 204
    assert mine.get("/subscription").json() == {"topics": []}
    assert mine.delete("").status_code == 204
    assert refusal(mine.delete("")) == (404, 40403)


def test_defaults_need_no_body(api: Api, topic: str) -> None:
    response = api.post("/consumers/g")
    assert response.status_code == 200
    assert response.json()["instance_id"].startswith("rest-consumer-")
    mine = Api(response.json()["base_uri"])
    api.produce(topic, {"value": "AAAA", "partition": 0}, data="binary")
    mine.post("/assignments", {"partitions": [place(topic, 0)]})
    mine.post("/positions/beginning", {"partitions": [place(topic, 0)]})
    (record,) = mine.read(1, "binary")
    assert (record["key"], record["value"]) == (None, "AAAA")
    response = mine.get("/records?timeout=0")
    assert (response.json(), response.headers["content-type"]) == ([], V2)  # the plain type means binary
    assert mine.delete("").status_code == 204


@pytest.mark.parametrize(
    ("data", "value", "schema"),
    [
        ("binary", base64.b64encode(b"\x00\xff").decode(), None),
        ("json", {"a": [1.5, None]}, None),
        ("avro", {"a": {"bytes": "\u00ff\u0000"}}, AVRO),
        ("jsonschema", {"a": 1}, '{"type": "object"}'),
        ("protobuf", {"a": "1", "inner": {"b": ["x"]}}, None),
    ],
)
def test_every_format_comes_back_as_it_was_produced(
    api: Api, topic: str, consumer: Consumer, data: str, value: Any, schema: str | None
) -> None:
    if data == "protobuf":
        pytest.importorskip("barnabas.schemas.protobuf.parsing")
        schema = (
            'syntax = "proto3"; message M { int64 a = 1; Inner inner = 2; '
            "message Inner { repeated string b = 1; } }"
        )
    others = {} if schema is None else {"value_schema": schema}
    response = api.produce(topic, {"value": value, "partition": 0}, data=data, **others)
    assert response.json()["offsets"][0]["error"] is None, response.text
    mine = consumer(format=data)
    mine.post("/assignments", {"partitions": [place(topic, 0)]})
    mine.post("/positions/beginning", {"partitions": [place(topic, 0)]})
    (record,) = mine.read(1, data)
    assert record["value"] == value
    other = "json" if data == "binary" else "binary"
    assert refusal(mine.get("/records", accept=embedded(other))) == (406, 40601)
    assert refusal(mine.get("/records", accept="text/html")) == (406, 406)
    assert mine.get("/records?timeout=0", accept=None).headers["content-type"] == embedded(data)


def test_a_pattern_finds_topics(api: Api, topic: str, consumer: Consumer) -> None:
    mine = consumer(**EARLIEST)
    assert mine.post("/subscription", {"topic_pattern": f"{topic[:-1]}."}).status_code == 204
    api.produce(topic, {"value": 1})
    assert mine.read(1)[0]["topic"] == topic
    assert mine.get("/subscription").json() == {"topics": [topic]}
    assert mine.post("/subscription", {"topics": [topic], "topic_pattern": "("}).status_code == 204
    for pattern in ("(", "", None, 7):
        assert refusal(mine.post("/subscription", {"topic_pattern": pattern})) == (422, 422)


def test_commits_are_read_back_and_count_for_the_next_instance(
    api: Api, topic: str, consumer: Consumer, fresh_name: Callable[[], str]
) -> None:
    group = fresh_name()
    api.produce(topic, *({"value": index, "partition": 0} for index in range(5)))
    mine = consumer(group, **EARLIEST)
    mine.post("/subscription", {"topics": [topic]})
    assert [each["value"] for each in mine.read(5)] == [0, 1, 2, 3, 4]
    wanted = {"partitions": [place(topic, 0), place(topic, 1)]}
    assert mine.get("/offsets", wanted).json() == {"offsets": []}
    response = mine.post("/offsets", {"offsets": [place(topic, 0, offset=1, metadata="m")]})
    assert (response.status_code, response.json()) == (200, [])
    expected = {"offsets": [place(topic, 0, offset=2, metadata="m")]}
    assert mine.get("/offsets", wanted).json() == expected
    mine.delete("")
    next_one = consumer(group, **EARLIEST)
    next_one.post("/subscription", {"topics": [topic]})
    assert [each["value"] for each in next_one.read(3)] == [2, 3, 4]
    assert next_one.post("/offsets").json() == []
    assert next_one.get("/offsets", wanted).json()["offsets"][0]["offset"] == 5


def test_positions_are_set_by_offset_end_and_time(api: Api, topic: str, consumer: Consumer) -> None:
    api.produce(topic, *({"value": index, "partition": 0} for index in range(5)))
    mine = consumer(format="json")
    mine.post("/assignments", {"partitions": [place(topic, 0)]})
    assert mine.get("/assignments").json() == {"partitions": [place(topic, 0)]}
    assert mine.post("/positions", {"offsets": [place(topic, 0, offset=3)]}).status_code == 204
    assert [each["value"] for each in mine.read(2)] == [3, 4]
    assert mine.post("/positions/beginning", {"partitions": [place(topic, 0)]}).status_code == 204
    assert len(mine.read(5)) == 5
    for moment, count in ((0, 5), ("2001-01-01T00:00:00Z", 5), ("2999-01-01T00:00:00Z", 0)):
        body = {"timestamps": [place(topic, 0, timestamp=moment)]}
        assert mine.post("/positions", body).status_code == 204
        assert len(mine.get("/records?timeout=200", accept=embedded("json")).json()) == count
    assert mine.post("/positions/end", {"partitions": [place(topic, 0)]}).status_code == 204
    assert mine.get("/records?timeout=50", accept=embedded("json")).json() == []
    api.produce(topic, {"value": "new", "partition": 0})
    assert [each["value"] for each in mine.read(1)] == ["new"]
    elsewhere = [place(topic, 1, offset=0)]
    assert refusal(mine.post("/positions", {"offsets": elsewhere})) == (409, 40903)
    for end in ("beginning", "end"):
        body = {"partitions": [place(topic, 1)]}
        assert refusal(mine.post(f"/positions/{end}", body)) == (409, 40903)


def test_reads_are_bounded_by_bytes_and_a_larger_record_comes_alone(
    api: Api, topic: str, consumer: Consumer
) -> None:
    values = ["x" * 50, "x" * 50, "x" * 500, "x" * 50]
    api.produce(topic, *({"value": each, "partition": 0} for each in values))
    mine = consumer(format="json")
    mine.post("/assignments", {"partitions": [place(topic, 0)]})
    mine.post("/positions/beginning", {"partitions": [place(topic, 0)]})
    reads = [
        mine.get("/records?max_bytes=160&timeout=5000", accept=embedded("json")).json() for _ in range(3)
    ]
    assert [[len(each["value"]) for each in some] for some in reads] == [[50, 50], [500], [50]]


def test_a_read_waits_for_fetch_min_bytes(api: Api, topic: str, consumer: Consumer) -> None:
    mine = consumer(**EARLIEST, **{"fetch.min.bytes": "300", "consumer.request.timeout.ms": "20000"})
    mine.post("/assignments", {"partitions": [place(topic, 0)]})
    found: list[Any] = []
    read = threading.Thread(target=lambda: found.extend(mine.get("/records", accept=embedded("json")).json()))
    read.start()
    for _ in range(4):
        api.produce(topic, {"value": "x" * 100, "partition": 0})
    read.join(PATIENCE_S)
    assert 3 <= len(found) <= 4


def test_two_reads_of_one_instance_wait_for_each_other(api: Api, topic: str, consumer: Consumer) -> None:
    api.produce(topic, *({"value": index, "partition": 0} for index in range(200)))
    mine = consumer(**EARLIEST)
    mine.post("/assignments", {"partitions": [place(topic, 0)]})
    reads: list[list[Any]] = []

    def read() -> None:
        path = "/records?max_bytes=600&timeout=2000"
        reads.append([each["value"] for each in mine.get(path, accept=embedded("json")).json()])

    threads = [threading.Thread(target=read) for _ in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(PATIENCE_S)
    seen = sorted(value for some in reads for value in some)
    assert len(seen) > 100
    assert seen == list(range(len(seen)))
    assert all(some == sorted(some) for some in reads)


def test_two_instances_share_a_group(
    api: Api, topic: str, consumer: Consumer, fresh_name: Callable[[], str]
) -> None:
    group = fresh_name()
    both = [consumer(group, **EARLIEST) for _ in range(2)]
    for each in both:
        each.post("/subscription", {"topics": [topic]})

    def shared() -> bool:
        counts = []
        for each in both:
            each.get("/records?timeout=50", accept=embedded("json"))
            counts.append(len(each.get("/assignments").json()["partitions"]))
        return counts == [1, 1]

    until(shared)
    api.produce(topic, {"value": 0, "partition": 0}, {"value": 1, "partition": 1})
    assert sorted(each.read(1)[0]["value"] for each in both) == [0, 1]


def test_subscribing_and_assigning_exclude_each_other(api: Api, topic: str, consumer: Consumer) -> None:
    subscribed, assigned = consumer(), consumer()
    subscribed.post("/subscription", {"topics": [topic]})
    assigned.post("/assignments", {"partitions": [place(topic, 0)]})
    body = {"partitions": [place(topic, 0)]}
    assert refusal(subscribed.post("/assignments", body)) == (409, 40903)
    assert refusal(assigned.post("/subscription", {"topics": [topic]})) == (409, 40903)
    assert refusal(assigned.post("/subscription", {"topic_pattern": "x"})) == (409, 40903)
    assert refusal(consumer().get("/records", accept=embedded("binary"))) == (409, 40903)


def test_automatic_commits(api: Api, topic: str, consumer: Consumer, fresh_name: Callable[[], str]) -> None:
    group = fresh_name()
    api.produce(topic, {"value": 1, "partition": 0})
    for setting in (True, "true"):
        mine = consumer(group, **EARLIEST, **{"auto.commit.enable": setting})
        mine.post("/subscription", {"topics": [topic]})
        mine.read(1)
        mine.delete("")
        asking = consumer(group)
        found = asking.get("/offsets", {"partitions": [place(topic, 0)]}).json()["offsets"]
        assert found[0]["offset"] > 0
        api.produce(topic, {"value": 2, "partition": 0})


def test_a_record_that_cannot_be_read_stops_nothing_behind_it(
    api: Api, topic: str, consumer: Consumer
) -> None:
    api.produce(topic, {"value": "Mg==", "partition": 0}, {"value": "/w==", "partition": 0}, data="binary")
    api.produce(topic, {"value": "Mw==", "partition": 0}, data="binary")
    mine = consumer(**EARLIEST)
    mine.post("/assignments", {"partitions": [place(topic, 0)]})
    assert [each["value"] for each in mine.read(1)] == [2]
    for _ in range(2):
        response = mine.get("/records?timeout=2000", accept=embedded("json"))
        assert refusal(response) == (500, 50002)
        assert f"offset 1 of {topic}-0" in response.json()["message"]
    mine.post("/positions", {"offsets": [place(topic, 0, offset=2)]})
    assert [each["value"] for each in mine.read(1)] == [3]


CREATE: list[tuple[Any, tuple[int, int]]] = [
    ({"format": "xml"}, (400, 400)),
    ({"format": 7}, (400, 400)),
    ({"auto.offset.reset": "middle"}, (422, 42204)),
    ({"auto.offset.reset": 1}, (422, 42204)),
    ({"auto.commit.enable": "maybe"}, (422, 42204)),
    ({"auto.commit.enable": 1}, (422, 42204)),
    ({"fetch.min.bytes": 0}, (422, 42204)),
    ({"fetch.min.bytes": -2}, (422, 42204)),
    ({"fetch.min.bytes": "x"}, (422, 42204)),
    ({"fetch.min.bytes": 10_000_001}, (422, 42204)),
    ({"consumer.request.timeout.ms": -1}, (422, 42204)),
    ({"consumer.request.timeout.ms": 1.5}, (422, 42204)),
    ({"name": ""}, (422, 42204)),
    ({"name": "x" * 300}, (422, 42204)),
    ({"name": []}, (422, 42204)),
    ({"colour": "red"}, (422, 422)),
    ([], (422, 422)),
    (b"{", (400, 400)),
]


@pytest.mark.parametrize(("body", "expected"), CREATE, ids=repr)
def test_settings_that_are_refused(api: Api, body: Any, expected: tuple[int, int]) -> None:
    assert refusal(api.post("/consumers/g", body)) == expected


BODIES: list[tuple[str, str, Any]] = [
    ("POST", "/subscription", {}),
    ("POST", "/subscription", {"topics": "t"}),
    ("POST", "/subscription", {"topics": [1]}),
    ("POST", "/subscription", {"colour": 1}),
    ("POST", "/assignments", {}),
    ("POST", "/assignments", {"partitions": [{}]}),
    ("POST", "/assignments", {"partitions": [{"topic": "t", "partition": -1}]}),
    ("POST", "/assignments", {"partitions": [{"topic": "t", "partition": "0"}]}),
    ("POST", "/positions", {"offsets": [{"topic": "t", "partition": 0}]}),
    ("POST", "/positions", {"offsets": [{"topic": "t", "partition": 0, "offset": -1}]}),
    ("POST", "/positions", {"timestamps": [{"topic": "t", "partition": 0, "timestamp": "noon"}]}),
    ("POST", "/positions/end", {"partitions": 1}),
    ("POST", "/offsets", {"offsets": [{"topic": "t", "partition": 0, "offset": 2**63}]}),
    ("POST", "/offsets", {"offsets": [{"topic": "t", "partition": 0, "offset": 1, "metadata": 7}]}),
    ("POST", "/offsets", []),
    ("GET", "/offsets", {"partitions": [{"topic": 1, "partition": 0}]}),
]


def test_bodies_that_are_refused(consumer: Consumer) -> None:
    mine = consumer()
    for method, path, body in BODIES:
        assert refusal(mine.call(method, path, body)) == (422, 422), (path, body)
    assert refusal(mine.get("/offsets")) == (404, 40402)
    for query in ("timeout=x", "max_bytes=-1", "timeout=1.5", "timeout="):
        assert refusal(mine.get(f"/records?{query}", accept=embedded("binary"))) == (400, 400)


ALL_REQUESTS = [
    ("DELETE", "", None),
    ("POST", "/subscription", {"topics": ["t"]}),
    ("GET", "/subscription", None),
    ("DELETE", "/subscription", None),
    ("POST", "/assignments", {"partitions": []}),
    ("GET", "/assignments", None),
    ("POST", "/positions", {"offsets": []}),
    ("POST", "/positions/beginning", {"partitions": []}),
    ("POST", "/positions/end", {"partitions": []}),
    ("GET", "/records", None),
    ("POST", "/offsets", None),
    ("GET", "/offsets", {"partitions": []}),
]


@pytest.mark.parametrize(("method", "path", "body"), ALL_REQUESTS, ids=str)
def test_an_instance_that_is_not_there(api: Api, method: str, path: str, body: Any) -> None:
    assert refusal(api.call(method, f"/consumers/g/instances/nobody{path}", body)) == (404, 40403)


def test_names_are_taken_once_in_a_group(consumer: Consumer, api: Api) -> None:
    consumer("g1", name="n")
    consumer("g2", name="n")
    assert refusal(api.post("/consumers/g1", {"name": "n"})) == (409, 40902)


def test_the_number_of_instances_is_bounded(consumer: Consumer, api: Api) -> None:
    for _ in range(8):
        last = consumer("g")
    assert refusal(api.post("/consumers/g")) == (429, 42901)
    assert last.delete("").status_code == 204
    consumer("g")


def test_an_instance_expires_and_leaves_its_group(broker: str, fresh_name: Callable[[], str]) -> None:
    settings = ConsumerSettings(
        instance_timeout_ms=300, heartbeat_interval_ms=100, reset=OffsetReset.EARLIEST
    )
    with serving(broker, options=RestOptions(settings)) as served:
        api, group = Api(served.url), fresh_name()
        mine = Api(api.post(f"/consumers/{group}", {"name": "n"}).json()["base_uri"])
        mine.post("/subscription", {"topics": [fresh_name()]})
        mine.get("/records?timeout=500", accept=embedded("binary"))

        def members() -> int:
            described = asyncio.run_coroutine_threadsafe(described_group(served, group), served.loop)
            return described.result(PATIENCE_S)

        until(lambda: members() == 0)
        assert refusal(mine.get("/subscription")) == (404, 40403)
        assert api.post(f"/consumers/{group}", {"name": "n"}).status_code == 200


async def described_group(served: Served, group: str) -> int:
    found = (await served.proxy._own.admin.describe_groups([group]))[group]
    return len(getattr(found, "members", ()))


def test_stopping_the_proxy_leaves_all_groups(broker: str, topic: str, proxy: Served) -> None:
    group = f"{topic}-group"
    with serving(broker, options=RestOptions(ConsumerSettings(heartbeat_interval_ms=100))) as served:
        mine = Api(Api(served.url).post(f"/consumers/{group}").json()["base_uri"])
        mine.post("/subscription", {"topics": [topic]})
        until(
            lambda: (
                mine.get("/records?timeout=100").status_code == 200
                and mine.get("/assignments").json()["partitions"]
            )
        )
    described = asyncio.run_coroutine_threadsafe(described_group(proxy, group), proxy.loop)
    assert described.result(PATIENCE_S) == 0


def test_the_advertised_address_is_in_base_uri(broker: str) -> None:
    from barnabas.rest.proxy import ProxySettings

    with serving(broker, ProxySettings(advertised_url="https://rest.example:8443/")) as served:
        response = Api(served.url).post("/consumers/g", {"name": "n"})
        assert response.json()["base_uri"] == "https://rest.example:8443/consumers/g/instances/n"
