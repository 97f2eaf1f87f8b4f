"""Consuming as a member of a group: printed records are committed, members share, Ctrl-C leaves the group."""

import re
import signal
import time
from collections.abc import Callable

import pytest

from barnabas.cli.frame.parsing import ToolError
from barnabas.cli.records.consume_group import group_of

from .children import Child, start
from .conftest import Ran, RunTool
from .group_members import Members

TIMEOUT_S = 60.0


@pytest.fixture
def topic(broker: str, run_tool: RunTool, fresh_name: Callable[[], str]) -> str:
    name = fresh_name()
    create = ("--create", "--topic", name, "--partitions", "2")
    assert run_tool("kafka-topics", "--bootstrap-server", broker, *create).status == 0
    return name


def produce(run_tool: RunTool, broker: str, topic: str, *values: int) -> None:
    keyed = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
    text = "".join(f"{value}:{value}\n" for value in values)
    server = ("--bootstrap-server", broker, "--topic", topic)
    assert run_tool("kafka-console-producer", *server, *keyed, input=text).status == 0


def consume(run_tool: RunTool, broker: str, topic: str, group: str, *more: str) -> Ran:
    server = ("--bootstrap-server", broker, "--topic", topic, "--group", group)
    return run_tool("barnabas", "consume", *server, "--timeout-ms", "30000", *more)


def groups_of(run_tool: RunTool, broker: str) -> list[str]:
    return run_tool("kafka-consumer-groups", "--bootstrap-server", broker, "--list").lines


def lag_of(run_tool: RunTool, broker: str, group: str) -> int:
    ran = run_tool("kafka-consumer-groups", "--bootstrap-server", broker, "--describe", "--group", group)
    return sum(int(line.split()[5]) for line in ran.lines if line.startswith(f"{group} "))


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_every_record_is_printed_once_over_several_runs(
    broker: str, topic: str, run_tool: RunTool, protocol: str
) -> None:
    produce(run_tool, broker, topic, *range(10))
    kind = ("--command-property", f"group.protocol={protocol}")
    seen = []
    for count in (3, 1, 6):
        ran = consume(run_tool, broker, topic, topic, "--from-beginning", "--max-messages", str(count), *kind)
        assert ran.errors == f"Processed a total of {count} messages\n"
        seen += ran.lines
    assert sorted(seen) == [str(number) for number in range(10)]
    assert lag_of(run_tool, broker, topic) == 0


def test_nothing_is_committed_without_auto_commit(broker: str, topic: str, run_tool: RunTool) -> None:
    produce(run_tool, broker, topic, 1, 2)
    options = ("--from-beginning", "--max-messages", "2", "--command-property", "enable.auto.commit=false")
    for _ in range(2):
        assert sorted(consume(run_tool, broker, topic, topic, *options).lines) == ["1", "2"]


def test_members_share_partitions_and_an_interrupted_one_leaves_at_once(
    broker: str, topic: str, run_tool: RunTool, children: list[Child]
) -> None:
    with Members(broker) as members:
        members.join(topic, topic, client_id="ann")
        server = ("--bootstrap-server", broker, "--topic", topic)
        child = start(children, "consume", *server, "--group", topic, "--command-property", "client.id=bob")
        deadline = time.monotonic() + TIMEOUT_S
        describe = ("--describe", "--group", topic, "--members")
        while True:
            ran = run_tool("kafka-consumer-groups", "--bootstrap-server", broker, *describe)
            if re.search(r"\bann +1 ", ran.output) and re.search(r"\bbob +1 ", ran.output):
                break
            assert time.monotonic() < deadline, ran.output
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=TIMEOUT_S)
        assert (child.returncode, errors) == (130, b"Processed a total of 0 messages\n")
        ran = run_tool("kafka-consumer-groups", "--bootstrap-server", broker, *describe)
        assert "bob" not in ran.output


def test_topics_by_expression_are_read_by_a_group_too(broker: str, topic: str, run_tool: RunTool) -> None:
    produce(run_tool, broker, topic, 7)
    ran = run_tool(
        "barnabas",
        *("consume", "--bootstrap-server", broker, "--include", f"{topic}|none-{topic}"),
        *("--group", topic, "--from-beginning", "--max-messages", "1", "--timeout-ms", "30000"),
    )
    assert ran.lines == ["7"]


def test_under_kafkas_name_a_generated_group_commits_nothing(
    broker: str, topic: str, run_tool: RunTool, children: list[Child]
) -> None:
    before = set(groups_of(run_tool, broker))
    produce(run_tool, broker, topic, 1)
    server = ("--bootstrap-server", broker, "--topic", topic)
    child = start(children, "kafka-console-consumer", *server, "--from-beginning")
    assert child.stdout is not None
    assert child.stdout.readline() == b"1\n"
    [group] = set(groups_of(run_tool, broker)) - before
    assert re.fullmatch(r"console-consumer-\d{1,5}", group)
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=TIMEOUT_S)
    ran = run_tool("kafka-consumer-groups", "--bootstrap-server", broker, "--describe", "--group", group)
    assert topic not in ran.output


def test_under_our_name_no_group_is_generated(
    broker: str, topic: str, run_tool: RunTool, children: list[Child]
) -> None:
    before = groups_of(run_tool, broker)
    produce(run_tool, broker, topic, 1)
    child = start(children, "consume", "--bootstrap-server", broker, "--topic", topic, "--from-beginning")
    assert child.stdout is not None
    assert child.stdout.readline() == b"1\n"
    assert groups_of(run_tool, broker) == before


def test_a_setting_that_only_kafkas_consumer_has_is_noted(broker: str, topic: str, run_tool: RunTool) -> None:
    produce(run_tool, broker, topic, 1)
    more = ("--from-beginning", "--max-messages", "1", "--command-property", "interceptor.classes=x")
    ran = consume(run_tool, broker, topic, topic, *more)
    assert ran.lines == ["1"]
    assert "the consumer setting interceptor.classes has no effect in this tool\n" in ran.errors


def test_a_group_member_prints_records_as_a_consumer_without_a_group(
    broker: str, topic: str, run_tool: RunTool
) -> None:
    reader = ("--reader-property", "parse.key=true", "--reader-property", "parse.headers=true")
    server = ("--bootstrap-server", broker, "--topic", topic)
    run_tool("kafka-console-producer", *server, *reader, input="h:1\tkey\tvalue\n")
    shown = [
        part
        for name in ("key", "timestamp", "partition", "offset", "epoch", "headers")
        for part in ("--formatter-property", f"print.{name}=true")
    ]
    read = ("--from-beginning", "--max-messages", "1", *shown)
    alone = run_tool("barnabas", "consume", *server, *read)
    assert consume(run_tool, broker, topic, topic, *read).lines == alone.lines != []


def test_a_perf_consumer_joins_the_group_that_it_is_given(broker: str, topic: str, run_tool: RunTool) -> None:
    produce(run_tool, broker, topic, *range(20))
    ran = run_tool(
        "kafka-consumer-perf-test",
        *("--bootstrap-server", broker, "--topic", topic, "--group", topic, "--num-records", "20"),
        *("--timeout", "30000", "--hide-header"),
    )
    columns = ran.lines[-1].split(", ")
    assert columns[4] == "20"
    assert int(columns[6]) > 0  # rebalance.time.ms
    assert topic in groups_of(run_tool, broker)


def test_groups_of_option_and_settings_must_agree() -> None:
    assert group_of(None, {}) is None
    assert group_of("a", {}) == group_of(None, {"group.id": "a"}) == group_of("a", {"group.id": "a"}) == "a"
    with pytest.raises(ToolError, match=r"do not match\. Detected group ids: 'a', 'b'"):
        group_of("a", {"group.id": "b"})
