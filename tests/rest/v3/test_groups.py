"""Consumer groups of both protocols through v3: members, assignments, lags."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from confluent_kafka import Consumer

from rest.serving import HTTP, Served


def refused(response: httpx.Response, status: int, code: int) -> None:
    assert (response.status_code, response.json()["error_code"]) == (status, code), response.text


def get(url: str) -> Any:
    response = HTTP.get(url)
    assert response.status_code == 200, response.text
    return response.json()


@contextmanager
def member(broker: str, group: str, topic: str, protocol: str) -> Iterator[Consumer]:
    """A member of a group that has its partitions, and read one record of each."""
    settings = {
        "bootstrap.servers": broker,
        "group.id": group,
        "client.id": "reader",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "group.protocol": protocol,
    }
    consumer = Consumer(settings)
    try:
        consumer.subscribe([topic])
        deadline = time.monotonic() + 30
        while len(consumer.assignment()) < 2:
            assert time.monotonic() < deadline
            consumer.poll(0.2)
        yield consumer
    finally:
        consumer.close()


def fill(proxy: Served, topic: str) -> None:
    for partition, count in ((0, 3), (1, 5)):
        content = b'{"partition_id":%d,"value":{"type":"STRING","data":"x"}}' % partition * count
        url = f"{proxy.cluster}/topics/{topic}/records"
        HTTP.post(url, content=content, headers={"content-type": "application/json"})


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_with_a_member(
    broker: str, proxy: Served, topic: str, fresh_name: Callable[[], str], protocol: str
) -> None:
    group = f"group/of {fresh_name()}"
    fill(proxy, topic)
    with member(broker, group, topic, protocol) as consumer:
        for place in consumer.assignment():
            place.offset = 1 + place.partition
            consumer.commit(offsets=[place], asynchronous=False)
        url = f"{proxy.cluster}/consumer-groups/{quote(group, safe='')}"
        found = get(url)
        assert found["kind"] == "KafkaConsumerGroup"
        assert (found["consumer_group_id"], found["state"], found["is_simple"]) == (group, "STABLE", False)
        assert found["type"] == protocol.upper()
        assert found["partition_assignor"] in ("range", "uniform")
        assert found["is_mixed_consumer_group"] is False
        assert get(found["coordinator"]["related"])["kind"] == "KafkaBroker"
        assert found in get(f"{proxy.cluster}/consumer-groups")["data"]

        [one] = get(found["consumers"]["related"])["data"]
        assert (one["client_id"], one["instance_id"]) == ("reader", None)
        assert get(one["metadata"]["self"]) == one
        assignments = get(one["assignments"]["related"])["data"]
        places = [(each["topic_name"], each["partition_id"]) for each in assignments]
        assert places == [(topic, 0), (topic, 1)]
        assert get(assignments[0]["metadata"]["self"]) == assignments[0]
        assert get(assignments[0]["partition"]["related"])["partition_id"] == 0

        lags = get(f"{url}/lags")["data"]
        assert [(each["current_offset"], each["log_end_offset"], each["lag"]) for each in lags] == [
            (1, 3, 2),
            (2, 5, 3),
        ]
        assert {each["consumer_id"] for each in lags} == {one["consumer_id"]}
        assert get(assignments[1]["lag"]["related"]) == lags[1]
        summary = get(found["lag_summary"]["related"])
        assert summary["kind"] == "KafkaConsumerGroupLagSummary"
        assert (summary["total_lag"], summary["max_lag"], summary["max_lag_partition_id"]) == (5, 3, 1)
        assert summary["max_lag_consumer"]["related"] == one["metadata"]["self"]
        refused(HTTP.get(f"{url}/lags/{topic}/partitions/9"), 404, 40403)
        refused(HTTP.get(f"{url}/consumers/nobody"), 404, 404)
        refused(HTTP.get(f"{url}/consumers/nobody/assignments"), 404, 404)
        refused(HTTP.get(f"{one['assignments']['related']}/{topic}/partitions/9"), 404, 40403)
    empty = get(url)
    assert empty["state"] == "EMPTY"
    assert get(f"{url}/consumers")["data"] == []
    refused(HTTP.get(f"{url}/lags"), 404, 404)
    refused(HTTP.get(f"{url}/lag-summary"), 404, 404)


def test_a_group_that_nobody_knows(proxy: Served) -> None:
    url = f"{proxy.cluster}/consumer-groups/nobody"
    for path in ("", "/consumers", "/lags", "/lag-summary", "/lags/t/partitions/0", "/consumers/c"):
        refused(HTTP.get(url + path), 404, 404)
