"""The entry point: names, help, errors, and imports."""

import os
import re
import subprocess
import sys
from importlib.metadata import entry_points

import pytest

from barnabas.cli.tools import BY_KAFKA_NAME, HIDDEN, TOOLS
from barnabas.testing.ports import free_ports

from .conftest import RunTool


def test_help_lists_every_tool(run_tool: RunTool) -> None:
    ran = run_tool("barnabas", "--help")
    assert ran.status == 0
    for tool in TOOLS:
        assert (f"  {tool.name} " in ran.output) == (tool.name not in HIDDEN)


def test_without_arguments_the_help_is_printed_and_the_status_is_1(run_tool: RunTool) -> None:
    ran = run_tool("barnabas")
    assert (ran.status, "usage: barnabas TOOL" in ran.output) == (1, True)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_every_tool_has_help_with_an_example(tool: object, run_tool: RunTool) -> None:
    ran = run_tool("barnabas", tool.name, "--help")  # type: ignore[attr-defined]
    assert ran.status == 0
    assert f"usage: barnabas {tool.name}" in ran.output  # type: ignore[attr-defined]
    assert f"examples:\n  barnabas {tool.name}" in ran.output  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", sorted(BY_KAFKA_NAME))
def test_every_tool_is_installed_under_kafkas_name(name: str) -> None:
    scripts = {each.name: each.value for each in entry_points(group="console_scripts")}
    assert scripts[name] == scripts[f"{name}.sh"] == "barnabas.cli.main:main"


def test_kafkas_names_work_behind_barnabas_too(run_tool: RunTool) -> None:
    assert run_tool("barnabas", "kafka-topics.sh", "--version").output.startswith("4.3.1 ")


@pytest.mark.parametrize("program", ["kafka-topics", "/usr/bin/kafka-topics.sh"])
def test_a_command_is_known_by_its_name(program: str, run_tool: RunTool) -> None:
    assert run_tool(program, "--version").output.startswith("4.3.1 ")


def test_the_closest_name_is_proposed_for_a_misspelt_tool(run_tool: RunTool) -> None:
    ran = run_tool("barnabas", "topic")
    assert ran.status == 1
    assert ran.errors == "barnabas: there is no tool 'topic': did you mean 'topics'?\n"


def test_an_unreachable_broker_is_one_line(run_tool: RunTool) -> None:
    port = free_ports(1)[0]
    ran = run_tool("kafka-topics", "--bootstrap-server", f"127.0.0.1:{port}", "--list")
    assert ran.status == 1
    assert ran.output == ""
    assert ran.errors == (
        f"Error while executing topic command : cannot connect to 127.0.0.1:{port}: connection refused\n"
    )


def test_zookeeper_ends_with_the_command_to_use(run_tool: RunTool) -> None:
    ran = run_tool("kafka-topics", "--zookeeper", "localhost:2181", "--list")
    assert ran.status == 1
    assert "--zookeeper was removed in Kafka 3" in ran.errors
    assert "--bootstrap-server localhost:9092" in ran.errors


def test_broker_list_still_works(broker: str, run_tool: RunTool) -> None:
    ran = run_tool("kafka-get-offsets", "--broker-list", broker, "--topic", "nothing-here")
    assert "--broker-list is an old spelling: use --bootstrap-server" in ran.errors
    assert "Could not match any topic-partitions" in ran.errors


def test_the_address_has_a_default_under_our_name_only(
    broker: str, run_tool: RunTool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BARNABAS_BOOTSTRAP", broker)
    assert run_tool("barnabas", "topics", "--list").status == 0
    assert run_tool("kafka-topics", "--list").status == 1


def test_a_missing_file_is_one_line(broker: str, run_tool: RunTool) -> None:
    ran = run_tool(
        "kafka-topics", "--bootstrap-server", broker, "--list", "--command-config", "/no/such/file"
    )
    assert ran.status == 1
    assert ran.errors == (
        "Error while executing topic command : cannot read /no/such/file: no such file or directory\n"
    )


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        (
            "from barnabas.cli.main import main; main(['--help'])",
            ["asyncio", "barnabas.protocol", "argparse"],
        ),
        ("import barnabas.cli.node.start", ["rich", "confluent_kafka", "prometheus_client"]),
        (
            "import barnabas.cli.topics.topics",
            ["rich", "confluent_kafka", "barnabas.storage", "barnabas.broker"],
        ),
    ],
)
def test_only_the_modules_of_the_tool_are_imported(code: str, absent: list[str]) -> None:
    check = f"import sys; {code}; print([name for name in {absent!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    "command",
    [
        ("kafka-features", "describe"),
        ("kafka-metadata-quorum", "describe", "--status"),
        ("kafka-transactions", "list"),
    ],
)
def test_the_address_may_follow_the_subcommand(
    command: tuple[str, ...], broker: str, run_tool: RunTool
) -> None:
    program, *words = command
    behind = run_tool(program, *words, "--bootstrap-server", broker)
    assert (behind.status, behind.errors) == (0, "")
    assert run_tool(program, *words, f"--bootstrap-server={broker}").status == 0


def test_the_error_of_a_misspelt_command_lists_the_commands(run_tool: RunTool) -> None:
    ran = run_tool("kafka-cluster", "foo")
    assert ran.status == 1
    assert re.match(
        r"'foo' is not one of '?cluster-id'?, '?unregister'?, '?list-endpoints'? \(see ", ran.errors
    )


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["topics", "--help"], ["no-such-tool"]])
def test_a_closed_pipe_ends_every_tool_quietly(words: list[str]) -> None:
    """As in `barnabas --help | head -1`."""
    read, write = os.pipe()
    os.close(read)
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "barnabas", *words],
            stdin=subprocess.DEVNULL,
            stdout=write,
            stderr=write if words == ["no-such-tool"] else subprocess.PIPE,
            check=False,
        )
    finally:
        os.close(write)
    assert (ended.returncode, ended.stderr or b"") == (0, b"")
