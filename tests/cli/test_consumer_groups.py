"""`consumer-groups`: the example of a course with every form of reset, and errors of one line."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.topics import NewTopic
from barnabas.client.cluster import Cluster
from barnabas.client.core.address import parse_bootstrap
from barnabas.client.core.topology import TopicPartition
from barnabas.client.producer import Producer
from barnabas.testing.ports import free_ports

from .conftest import Ran, RunTool
from .group_members import Members

HOUR_MS = 3_600_000
# 2024-01-01T00:00:00Z; one record for each hour, from the first partition to the last.
BEGIN_MS = 1_704_067_200_000
RECORDS = {0: 5, 1: 4, 2: 3}
COMMITTED = {0: 3, 1: 3, 2: 2}  # so lags of 2, 1 and 1


class Case:
    """A group that lags, and the tool with its options."""

    def __init__(self, broker: str, run_tool: RunTool, name: str) -> None:
        self.broker = broker
        self._run_tool = run_tool
        self.group = f"group-{name}"
        self.topic = f"topic-{name}"
        asyncio.run(self._prepare())

    async def _prepare(self) -> None:
        async with Cluster(parse_bootstrap(self.broker)) as cluster:
            admin = Admin(cluster)
            await admin.create_topic(NewTopic(self.topic, partitions=len(RECORDS)))
            await cluster.partitions_of(self.topic, auto_create=True)
            async with Producer(cluster) as producer:
                hour = 0
                for partition, count in RECORDS.items():
                    for _ in range(count):
                        at_ms = BEGIN_MS + hour * HOUR_MS
                        await producer.send(self.topic, b"x", partition=partition, timestamp_ms=at_ms)
                        hour += 1
        await self.commit(COMMITTED)

    async def commit(self, offsets: dict[int, int]) -> None:
        async with Cluster(parse_bootstrap(self.broker)) as cluster:
            wanted = {TopicPartition(self.topic, index): offset for index, offset in offsets.items()}
            results = await Admin(cluster).alter_offsets(self.group, wanted)
            assert not any(results.values())

    def tool(self, *arguments: str) -> Ran:
        return self._run_tool("kafka-consumer-groups", "--bootstrap-server", self.broker, *arguments)

    def reset(self, *arguments: str) -> dict[int, int]:
        """The new offsets in the output of the tool."""
        ran = self.tool("--reset-offsets", "--group", self.group, *arguments)
        assert ran.status == 0, ran.errors
        header, *rows = [line.split() for line in ran.lines if line and not line.startswith("Warn: ")]
        assert header == ["GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"]
        assert all(row[:2] == [self.group, self.topic] for row in rows)
        return {int(row[2]): int(row[3]) for row in rows}

    def described(self) -> dict[int, tuple[int, int, int]]:
        """Committed offset, log end offset and lag of each partition."""
        ran = self.tool("--describe", "--group", self.group)
        assert f"Consumer group '{self.group}' has no active members." in ran.errors
        rows = [line.split() for line in ran.lines if line.startswith(f"{self.group} ")]
        return {int(row[2]): (int(row[3]), int(row[4]), int(row[5])) for row in rows}

    def offsets(self) -> dict[int, int]:
        return {index: offset for index, (offset, _, _) in self.described().items()}


@pytest.fixture
def case(broker: str, run_tool: RunTool, fresh_name: Callable[[], str]) -> Case:
    return Case(broker, run_tool, fresh_name()[-30:].strip("-"))


def test_describe_shows_lags(case: Case) -> None:
    assert case.described() == {0: (3, 5, 2), 1: (3, 4, 1), 2: (2, 3, 1)}


ALL = ("--all-topics",)


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        (("--to-earliest", *ALL), {0: 0, 1: 0, 2: 0}),
        (("--to-latest", *ALL), {0: 5, 1: 4, 2: 3}),
        (("--to-offset", "1", *ALL), {0: 1, 1: 1, 2: 1}),
        (("--to-offset", "4", *ALL), {0: 4, 1: 4, 2: 3}),
        (("--shift-by", "-2", *ALL), {0: 1, 1: 1, 2: 0}),
        (("--shift-by", "2", *ALL), {0: 5, 1: 4, 2: 3}),
        (("--to-current", *ALL), COMMITTED),
        (("--to-datetime", "2024-01-01T06:30:00.000", *ALL), {0: 5, 1: 2, 2: 0}),
        (("--to-datetime", "2024-01-01T06:30:00.000+02:00", *ALL), {0: 5, 1: 0, 2: 0}),
        (("--by-duration", "P36500D", *ALL), {0: 0, 1: 0, 2: 0}),
        (("--by-duration", "PT1S", *ALL), {0: 5, 1: 4, 2: 3}),
    ],
    ids=lambda value: "-".join(value[:2]).strip("-") if isinstance(value, tuple) else "",
)
def test_a_dry_run_shows_a_reset_and_execute_commits_it(
    case: Case, form: tuple[str, ...], expected: dict[int, int]
) -> None:
    assert case.reset(*form, "--dry-run") == expected
    assert case.offsets() == COMMITTED
    assert case.reset(*form, "--execute") == expected
    assert case.offsets() == expected


def test_without_execute_nothing_changes_and_a_warning_says_so(case: Case) -> None:
    ran = case.tool("--reset-offsets", "--group", case.group, "--all-topics", "--to-earliest")
    assert "WARN: No action will be performed as the --execute option is missing." in ran.errors
    assert case.offsets() == COMMITTED


def test_only_the_partitions_that_are_named_are_reset(case: Case) -> None:
    assert case.reset("--topic", f"{case.topic}:0,2", "--to-earliest", "--execute") == {0: 0, 2: 0}
    assert case.offsets() == {0: 0, 1: 3, 2: 0}


def test_an_exported_plan_can_be_applied_from_the_file(case: Case, tmp_path: Path) -> None:
    export = (
        "--reset-offsets",
        "--group",
        case.group,
        "--all-topics",
        "--to-current",
        "--export",
        "--dry-run",
    )
    saved = case.tool(*export)
    assert saved.lines[:3] == [f"{case.topic},{index},{offset}" for index, offset in COMMITTED.items()]
    path = tmp_path / "plan.csv"
    path.write_text(saved.output)
    case.reset("--all-topics", "--to-latest", "--execute")
    assert case.reset("--from-file", str(path), "--dry-run") == COMMITTED
    assert case.offsets() == {0: 5, 1: 4, 2: 3}
    assert case.reset("--from-file", str(path), "--execute") == COMMITTED
    assert case.offsets() == COMMITTED


def test_a_group_continues_at_its_reset_offsets(case: Case, run_tool: RunTool) -> None:
    case.reset("--all-topics", "--to-offset", "2", "--execute")
    ran = run_tool(
        "kafka-console-consumer",
        *("--bootstrap-server", case.broker, "--topic", case.topic, "--group", case.group),
        *("--max-messages", "6", "--timeout-ms", "20000"),
        *("--formatter-property", "print.partition=true", "--formatter-property", "print.offset=true"),
    )
    seen = sorted(tuple(map(int, re.findall(r":(\d+)", line))) for line in ran.lines)
    assert seen == [(0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (2, 2)]
    assert case.offsets() == {0: 5, 1: 4, 2: 3}


def test_a_group_with_members_is_not_reset(case: Case, run_tool: RunTool) -> None:
    with Members(case.broker) as members:
        members.join(case.group, case.topic, client_id="ann")
        base = ("consumer-groups", "--bootstrap-server", case.broker, "--group", case.group)
        reset = run_tool("barnabas", *base, "--reset-offsets", "--all-topics", "--to-earliest", "--execute")
        deleted = run_tool("barnabas", *base, "--delete")
    assert (reset.status, reset.errors) == (
        1,
        f"Error: Assignments can only be reset if the group '{case.group}' is inactive, "
        "but the current state is Stable.\n",
    )
    assert deleted.status == 1
    assert f"* Group '{case.group}' could not be deleted due to: The group is not empty." in deleted.output
    assert case.offsets() == COMMITTED


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--describe", "--group", "nobody"), "Error: Group nobody not found."),
        (
            ("--reset-offsets", "--group", "g", "--topic", "no-such-topic", "--to-earliest", "--dry-run"),
            "Error: This server does not host this topic-partition.",
        ),
        (
            ("--reset-offsets", "--group", "g", "--all-topics", "--to-datetime", "today", "--dry-run"),
            "Error: Error parsing timestamp. It does not contain a 'T' according to ISO8601 format "
            "(give YYYY-MM-DDThh:mm:ss.sss, in UTC unless Z, +hh, +hhmm or +hh:mm follows)",
        ),
        (
            ("--reset-offsets", "--group", "g", "--from-file", "/no/such/file", "--dry-run"),
            "Error: Unable to read file /no/such/file",
        ),
        (
            ("--describe", "--group", "g", "--timeout", "soon"),
            "Error: Cannot parse argument 'soon' of option timeout",
        ),
    ],
)
def test_an_error_is_one_line_and_a_status(
    broker: str, run_tool: RunTool, arguments: tuple[str, ...], line: str
) -> None:
    ran = run_tool("barnabas", "consumer-groups", "--bootstrap-server", broker, *arguments)
    assert (ran.output, ran.errors, ran.status) == ("", f"{line}\n", 1)


def test_under_kafkas_name_an_error_is_output_and_the_status_is_0(broker: str, run_tool: RunTool) -> None:
    ran = run_tool("kafka-consumer-groups", "--bootstrap-server", broker, "--describe", "--group", "nobody")
    assert (ran.output, ran.errors, ran.status) == (
        "\nError: Executing consumer group command failed due to Group nobody not found.\n",
        "",
        0,
    )


def test_a_missing_broker_is_reported(run_tool: RunTool) -> None:
    address = f"127.0.0.1:{free_ports(1)[0]}"
    ran = run_tool("barnabas", "consumer-groups", "--bootstrap-server", address, "--list")
    assert (ran.errors, ran.status) == (f"Error: cannot connect to {address}: connection refused\n", 1)


def test_a_wrong_expression_fails_under_our_name(run_tool: RunTool) -> None:
    ran = run_tool("barnabas", "consumer-groups", "--validate-regex", "(?=a)")
    assert (ran.output, ran.status) == (
        "The regular expression `(?=a)` is invalid: invalid or unsupported Perl syntax.\n",
        1,
    )
