"""Verifiable clients print the events of Kafka's own, with the same fields in the same order."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from .conftest import RunTool


@pytest.fixture
def topic(broker: str, run_tool: RunTool, fresh_name: Callable[[], str]) -> str:
    name = fresh_name()
    run_tool("kafka-topics", "--bootstrap-server", broker, "--create", "--topic", name)
    return name


def events(run_tool: RunTool, tool: str, *arguments: str) -> list[dict[str, Any]]:
    ran = run_tool(tool, *arguments)
    assert ran.status == 0, ran.errors
    return [json.loads(line) for line in ran.lines]


def produce(run_tool: RunTool, broker: str, topic: str, count: int) -> list[dict[str, Any]]:
    named = ("--bootstrap-server", broker, "--topic", topic, "--max-messages", str(count))
    return events(run_tool, "kafka-verifiable-producer", *named, "--repeating-keys", "2")


def test_a_producer_tells_where_each_record_is(broker: str, topic: str, run_tool: RunTool) -> None:
    told = produce(run_tool, broker, topic, 3)
    assert [event["name"] for event in told] == [
        "startup_complete",
        *["producer_send_success"] * 3,
        "shutdown_complete",
        "tool_data",
    ]
    fields = ["timestamp", "name", "key", "value", "offset", "topic", "partition"]
    assert list(told[1]) == fields
    assert [(event["key"], event["value"], event["offset"]) for event in told[1:4]] == [
        ("0", "0", 0),
        ("1", "1", 1),
        ("0", "2", 2),
    ]
    assert (told[-1]["sent"], told[-1]["acked"], told[-1]["target_throughput"]) == (3, 3, -1)


def test_a_consumer_tells_of_records_and_commits(broker: str, topic: str, run_tool: RunTool) -> None:
    produce(run_tool, broker, topic, 3)
    named = ("--bootstrap-server", broker, "--topic", topic, "--group-id", topic, "--max-messages", "2")
    told = events(run_tool, "kafka-verifiable-consumer", *named, "--verbose")
    names = [event["name"] for event in told]
    assert names[:2] == ["startup_complete", "partitions_assigned"]
    assert names[-2:] == ["partitions_revoked", "shutdown_complete"]
    records = [event for event in told if event["name"] == "record_data"]
    assert [list(event) for event in records] == [
        ["timestamp", "name", "key", "value", "topic", "partition", "offset"]
    ] * 2
    commits = [event["offsets"] for event in told if event["name"] == "offsets_committed"]
    assert commits[-1] == [{"topic": topic, "partition": 0, "offset": 2}]


def test_a_share_consumer_tells_of_records_and_acknowledgements(
    broker: str, topic: str, run_tool: RunTool
) -> None:
    produce(run_tool, broker, topic, 3)
    named = ("--bootstrap-server", broker, "--topic", topic, "--group-id", topic, "--max-messages", "3")
    more = ("--offset-reset-strategy", "earliest", "--acknowledgement-mode", "sync", "--verbose")
    told = events(run_tool, "kafka-verifiable-share-consumer", *named, *more)
    assert [event["name"] for event in told] == [
        "startup_complete",
        "offset_reset_strategy_set",
        *["record_data"] * 3,
        "records_consumed",
        "offsets_acknowledged",
        "shutdown_complete",
    ]
    partition = {"topic": topic, "partition": 0, "count": 3, "offsets": [0, 1, 2]}
    assert told[5]["partitions"] == [partition]
    assert {name: told[6][name] for name in ("count", "partitions", "success")} == {
        "count": 3,
        "partitions": [partition],
        "success": True,
    }


def test_members_of_a_share_group_are_measured(broker: str, topic: str, run_tool: RunTool) -> None:
    produce(run_tool, broker, topic, 500)
    group = ("--entity-type", "groups", "--entity-name", topic)
    reset = ("--alter", "--add-config", "share.auto.offset.reset=earliest")
    run_tool("kafka-configs", "--bootstrap-server", broker, *group, *reset)
    named = ("--bootstrap-server", broker, "--topic", topic, "--group", topic, "--num-records", "500")
    more = ("--threads", "2", "--show-consumer-stats")
    ran = run_tool("kafka-share-consumer-perf-test", *named, *more)
    assert ran.status == 0, ran.errors
    header, one, other, total = ran.lines
    assert header == (
        "start.time, end.time, data.consumed.in.MB, MB.sec, nMsg.sec, data.consumed.in.nMsg, fetch.time.ms"
    )
    assert one.startswith(
        "Share consumer 1 having client id perf-share-consumer-client-1 consumption metrics- "
    )
    counts = [int(line.split(", ")[-2]) for line in (one, other, total)]
    assert counts[0] + counts[1] == counts[2] == 500
