"""MBeans in Jolokia's form: names, requests and answers, and a real node on its metrics port."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.metrics.object_names import ObjectName, parse_object_name
from barnabas.metrics.samples import quoted
from barnabas.monitor.jolokia.requests import JolokiaError, joined_path, of_json, of_path, split_path
from barnabas.testing import Broker
from barnabas.testing.ports import free_ports

texts = st.text(st.characters(codec="ascii", exclude_characters="\r"), min_size=1, max_size=8)


@given(st.lists(texts, min_size=1, max_size=4).map(tuple))
def test_paths_come_back_as_they_were_escaped(parts: tuple[str, ...]) -> None:
    assert tuple(split_path(joined_path(parts))) == parts


@given(texts)
def test_a_quoted_value_is_matched_by_its_own_name_and_by_no_other(value: str) -> None:
    name = parse_object_name(f"d:type=T,topic={quoted(value)}")
    assert name.matches(name) and not name.is_pattern
    assert parse_object_name("d:type=T,topic=*").matches(name)
    other = parse_object_name(f"d:type=T,topic={quoted(value + 'x')}")
    assert not name.matches(other) and not other.matches(name)


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("kafka.log:type=Log,name=Size,topic=t", True),
        ("kafka.log:topic=t,name=Size,type=Log", True),
        ("kafka.*:type=Log,*", True),
        ("kafka.log:type=Log", False),
        ("kafka.log:type=L?g,name=*,topic=t", True),
        ("kafka.log:type=Log,*,partition=0", False),
        ("*:*", True),
        ("kafka:*", False),
    ],
)
def test_patterns_match_as_in_jmx(pattern: str, matches: bool) -> None:
    name = parse_object_name("kafka.log:type=Log,name=Size,topic=t")
    assert parse_object_name(pattern).matches(name) is matches


@pytest.mark.parametrize(
    "text", ["kafka.log", "kafka.log:", "d:a", "d:a=1,a=2", "d:a=1,,b=2", "d:" + "a" * 5000]
)
def test_a_malformed_name_says_what_is_wrong(text: str) -> None:
    with pytest.raises(ValueError, match=r"Domain|propert|Duplicate|characters"):
        parse_object_name(text)


def test_names_are_canonical_with_keys_in_order() -> None:
    name = parse_object_name("d:type=T,name=N,a=1")
    assert name.canonical == "d:a=1,name=N,type=T"
    assert ObjectName("d", (), is_open=True).canonical == "d:*"


def test_requests_of_paths_and_of_json_mean_the_same() -> None:
    one = of_path("read/d:type=T/A,B/inner/p!/q", {})
    two = of_json({"type": "READ", "mbean": "d:type=T", "attribute": ["A", "B"], "path": "inner/p!/q"}, {})
    assert one == two and one.path == ("inner", "p/q")
    assert of_path("", {}).type == "version"


@pytest.mark.parametrize(
    ("data", "status"),
    [
        ([], 400),
        ({"type": "read"}, 400),
        ({"type": "nothing"}, 400),
        ({"type": "exec", "mbean": "d:a=b"}, 403),
        ({"type": "read", "mbean": "d:a=b", "target": {"url": "service:jmx"}}, 403),
        ({"type": "read", "mbean": 7}, 400),
    ],
)
def test_requests_that_are_not_served_have_jolokias_status(data: Any, status: int) -> None:
    with pytest.raises(JolokiaError) as error:
        of_json(data, {})
    assert error.value.status == status


# -- a node ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    [port] = free_ports(1)
    with Broker(overrides={"barnabas.metrics.port": port}) as broker:
        broker.create_topic("a/b".replace("/", "."), partitions=2)
        yield f"http://127.0.0.1:{port}/jolokia"


def ask(url: str, data: object = None) -> Any:
    body = None if data is None else json.dumps(data).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data=body), timeout=30) as response:
        return json.load(response)


def test_one_attribute_of_one_mbean_stands_alone(url: str) -> None:
    found = ask(f"{url}/read/kafka.controller:type=KafkaController,name=ActiveControllerCount/Value")
    assert found["value"] == 1 and found["status"] == 200
    assert found["request"] == {
        "type": "read",
        "mbean": "kafka.controller:name=ActiveControllerCount,type=KafkaController",
        "attribute": "Value",
    }
    assert found["timestamp"] > 1_600_000_000


def test_all_attributes_of_a_meter_and_a_histogram_are_kafkas(url: str) -> None:
    meter = ask(f"{url}/read/kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec")["value"]
    assert set(meter) == {
        "Count", "EventType", "RateUnit", "MeanRate", "OneMinuteRate", "FiveMinuteRate", "FifteenMinuteRate",
    }  # fmt: skip
    times = ask(f"{url}/read/kafka.network:type=RequestMetrics,name=TotalTimeMs,request=CreateTopics")[
        "value"
    ]
    assert {
        "50thPercentile",
        "99thPercentile",
        "999thPercentile",
        "Count",
        "Max",
        "Mean",
        "Min",
        "StdDev",
    } <= set(times)
    assert times["Count"] == 1


def test_patterns_give_values_by_mbean_and_leave_out_mbeans_without_the_attribute(url: str) -> None:
    found = ask(f"{url}/read/kafka.log:type=Log,name=Size,*/Value")["value"]
    assert found == {
        f"kafka.log:name=Size,partition={index},topic=a.b,type=Log": {"Value": 0} for index in range(2)
    }
    # Kafka's order of keys, for those who ask for it.
    plain = ask(f"{url}/read/kafka.log:type=Log,name=Size,*/Value?canonicalNaming=false")["value"]
    assert "kafka.log:type=Log,name=Size,topic=a.b,partition=0" in plain
    every = ask(f"{url}/read/kafka.server:*/Count")["value"]
    assert every and all(set(each) == {"Count"} for each in every.values())


def test_a_bulk_request_as_telegraf_sends_it(url: str) -> None:
    answers = ask(
        f"{url}/read?ignoreErrors=true",
        [
            {
                "type": "read",
                "mbean": "kafka.server:type=raft-metrics",
                "attribute": ["current-leader", "nothing"],
            },
            {"type": "read", "mbean": "kafka.server:type=NoSuchThing"},
            {"type": "read", "mbean": "kafka.server:type=ReplicaManager,name=*", "attribute": "Value"},
        ],
    )
    assert [each["status"] for each in answers] == [200, 404, 200]
    assert answers[0]["value"]["current-leader"] == 1
    assert answers[0]["value"]["nothing"].startswith("ERROR")
    assert answers[1]["error_type"] == "javax.management.InstanceNotFoundException"
    assert answers[2]["value"]["kafka.server:name=PartitionCount,type=ReplicaManager"] == {"Value": 2}


def test_search_and_list_show_the_same_mbeans(url: str) -> None:
    names = ask(f"{url}/search/kafka.server:*")["value"]
    listed = ask(f"{url}/list/kafka.server")["value"]
    assert set(names) == {f"kafka.server:{keys}" for keys in listed}
    attributes = listed["name=PartitionCount,type=ReplicaManager"]["attr"]
    assert attributes["Value"]["type"] == "long" and attributes["Value"]["rw"] is False
    assert ask(f"{url}/list?maxDepth=1")["value"]["kafka.log"] == 1


def test_version_names_the_protocol_and_the_product(url: str) -> None:
    for address in (url, f"{url}/", f"{url}/version", f"{url}?p=/version"):
        found = ask(address)["value"]
        assert found["protocol"] == "7.2" and found["info"]["product"] == "Barnabas"


def test_an_attribute_that_is_not_there_is_status_404_in_the_document(url: str) -> None:
    found = ask(f"{url}/read/kafka.server:type=ReplicaManager,name=LeaderCount/Nothing")
    assert found["status"] == 404 and "AttributeNotFoundException" in found["error"]
    assert ask(f"{url}/read/nonsense")["status"] == 400
    assert ask(f"{url}/write/a:b=c/d/e")["status"] == 403


def test_bodies_that_are_no_requests_are_refused(url: str) -> None:
    assert ask(url, {"type": "read"})["status"] == 400
    request = urllib.request.Request(url, data=b"{")
    with urllib.request.urlopen(request) as response:
        assert json.load(response)["status"] == 400
    too_many = [{"type": "version"}] * 1001
    assert ask(url, too_many)["status"] == 400
    large = urllib.request.Request(url, data=b" " * (2 * 1024 * 1024))
    with pytest.raises((urllib.error.HTTPError, urllib.error.URLError)) as error:
        urllib.request.urlopen(large)
    assert getattr(error.value, "code", 413) == 413
    if isinstance(error.value, urllib.error.HTTPError):
        error.value.close()


def test_the_page_of_prometheus_is_still_beside_it(url: str) -> None:
    with urllib.request.urlopen(url.replace("/jolokia", "/metrics")) as response:
        assert b"kafka_controller_kafkacontroller_activecontrollercount 1" in response.read()
