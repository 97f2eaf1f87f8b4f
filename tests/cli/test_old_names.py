"""Names from older Kafka releases work, or end with an error that names the command to use now."""

import pytest

from barnabas.cli.old_names import CLASSES, REPLACEMENTS, tool_of_class
from barnabas.cli.tools import BY_KAFKA_NAME

from .conftest import RunTool


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_classes_of_kafka_are_tools(name: str) -> None:
    tool = tool_of_class(f"kafka.tools.{name}")
    assert tool is not None and tool is BY_KAFKA_NAME[CLASSES[name]]


def test_every_tool_of_kafka_has_a_class() -> None:
    assert set(BY_KAFKA_NAME) - set(CLASSES.values()) <= {"kafka-server-stop", "ksql-test-runner"}


@pytest.mark.parametrize(
    "command",
    [
        ("kafka-run-class.sh", "kafka.tools.GetOffsetShell"),
        ("barnabas", "kafka-run-class", "org.apache.kafka.tools.GetOffsetShell"),
        ("barnabas", "run-class", "GetOffsetShell"),
        ("barnabas", "broker-api-versions"),
        ("barnabas", "console-consumer"),
        ("barnabas", "kafka-configs.sh"),
    ],
)
def test_other_names_of_tools_work(command: tuple[str, ...], run_tool: RunTool) -> None:
    ran = run_tool(*command, "--version")
    assert (ran.status, ran.output[:6]) == (0, "4.3.1 ")


@pytest.mark.parametrize("name", sorted(REPLACEMENTS))
def test_removed_commands_name_their_replacement(name: str, run_tool: RunTool) -> None:
    ran = run_tool("barnabas", f"{name}.sh")
    assert ran.status == 1
    assert ran.errors.startswith(f"barnabas: {name} no longer exists: ")


def test_a_class_that_is_no_tool_is_reported(run_tool: RunTool) -> None:
    ran = run_tool("kafka-run-class", "kafka.Nothing")
    assert (ran.status, ran.errors.startswith("kafka-run-class: kafka.Nothing is no tool here")) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "use"),
    [
        (("--zookeeper", "zoo:2181", "--list"), "kafka-topics --bootstrap-server localhost:9092 --list"),
        (
            ("--create", "--zookeeper=zoo:2181/kafka", "--topic", "a b"),
            "kafka-topics --create --bootstrap-server localhost:9092 --topic 'a b'",
        ),
    ],
)
def test_the_error_for_zookeeper_has_the_complete_command(
    arguments: tuple[str, ...], use: str, run_tool: RunTool
) -> None:
    ran = run_tool("kafka-topics.sh", *arguments)
    assert ran.status == 1
    assert ran.errors.startswith(
        f"--zookeeper was removed in Kafka 3: tools connect to a broker. Use: {use} (see "
    )


@pytest.mark.parametrize(
    "tool", ["kafka-configs", "kafka-consumer-groups", "kafka-console-consumer", "kafka-features"]
)
def test_every_tool_reports_zookeeper(tool: str, run_tool: RunTool) -> None:
    assert f"Use: {tool} --bootstrap-server localhost:9092" in run_tool(tool, "--zookeeper", "x:1").errors


def test_broker_list_of_ids_is_no_old_spelling(broker: str, run_tool: RunTool) -> None:
    ran = run_tool("kafka-log-dirs", "--bootstrap-server", broker, "--describe", "--broker-list", "1")
    assert (ran.status, ran.errors) == (0, "")
