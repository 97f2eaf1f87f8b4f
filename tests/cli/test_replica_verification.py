"""`replica-verification`: the comparison on prepared values, and the tool on a single broker."""

import re
from collections.abc import Callable

import pytest

from barnabas.cli.frame.parsing import ToolError
from barnabas.cli.topics.replica_verification import Comparison
from barnabas.client.core.topology import TopicPartition
from barnabas.client.replica_reader import BatchMark, ReplicaBatches

from .conftest import RunTool

WHERE = TopicPartition("t", 0)


def comparison() -> Comparison:
    return Comparison({WHERE: (1, 2)}, {WHERE: 0})


def batches(high_watermark: int, *marks: tuple[int, int]) -> ReplicaBatches:
    return ReplicaBatches(high_watermark, tuple(BatchMark(*mark) for mark in marks))


def test_equal_replicas_are_compared_up_to_the_high_watermark() -> None:
    compared = comparison()
    found = {1: batches(6, (2, 7), (5, 8), (9, 9)), 2: batches(6, (2, 7), (5, 8))}
    assert list(compared.compare(WHERE, found)) == []
    compared.measure(WHERE, found)
    assert (compared.positions[WHERE], compared.lag_max, compared.is_done) == (6, 0, True)


def test_a_replica_that_lags_is_no_difference() -> None:
    compared = comparison()
    found = {1: batches(6, (2, 7), (5, 8)), 2: batches(3, (2, 7))}
    assert list(compared.compare(WHERE, found)) == []
    compared.measure(WHERE, found)
    assert (compared.positions[WHERE], compared.lag_max, compared.is_done) == (3, 3, False)


def test_different_checksums_are_reported_and_the_comparison_continues() -> None:
    compared = comparison()
    found = {1: batches(6, (2, 7), (5, 8)), 2: batches(6, (2, 1), (5, 8))}
    [line] = compared.compare(WHERE, found)
    assert line == (
        "partition t-0 has unmatched checksum at offset 2; replica 1's checksum 7; replica 2's checksum 1"
    )
    assert (compared.positions[WHERE], compared.differences) == (6, 1)


def test_different_offsets_end_the_comparison() -> None:
    told = []
    with pytest.raises(ToolError, match="do not have the same batches"):
        for line in comparison().compare(WHERE, {1: batches(6, (2, 7)), 2: batches(6, (3, 7))}):
            told.append(line)
    assert told == ["partition t-0: replica 1's offset 2 doesn't match replica 2's offset 3"]


def test_a_topic_is_verified_once(broker: str, run_tool: RunTool, fresh_name: Callable[[], str]) -> None:
    topic = fresh_name()
    run_tool("kafka-topics", "--bootstrap-server", broker, "--create", "--topic", topic, "--partitions", "2")
    run_tool("kafka-console-producer", "--bootstrap-server", broker, "--topic", topic, input="a\nb\nc\n")
    ran = run_tool(
        "kafka-replica-verification",
        *(
            "--broker-list",
            broker,
            "--topics-include",
            topic,
            "--time",
            "-2",
            "--max-wait-ms",
            "10",
            "--once",
        ),
    )
    assert (ran.status, ran.errors) == (0, "")
    started, done = ran.lines
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}: verification process is started", started)
    assert re.search(rf"max lag is 0 for partition {topic}-\d at offset \d among 2 partitions$", done)


def test_no_topic_is_an_error(broker: str, run_tool: RunTool) -> None:
    ran = run_tool(
        "kafka-replica-verification", "--broker-list", broker, "--topics-include", "no-such", "--once"
    )
    assert (ran.status, ran.errors[:16]) == (1, "No topics found."), ran
