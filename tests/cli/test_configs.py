"""`configs`: parsing of settings, numbers in Java's format, and behaviour that Kafka's tool does not have."""

from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.cli.cluster.config_quotas import credential, number
from barnabas.cli.cluster.configs import parse_pairs
from barnabas.cli.frame.parsing import ToolError

from .conftest import RunTool


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("a=1", {"a": "1"}),
        ("a=1,b=2", {"a": "1", "b": "2"}),
        ("a=[1,2],b=3", {"a": "1,2", "b": "3"}),
        (" a = 1 , b= ", {"a": "1", "b": ""}),
        ("SCRAM-SHA-256=[iterations=8192,password=a=b]", {"SCRAM-SHA-256": "iterations=8192,password=a=b"}),
    ],
)
def test_pairs_are_split_outside_of_brackets(text: str, pairs: dict[str, str]) -> None:
    assert parse_pairs(text) == pairs


@pytest.mark.parametrize("text", ["a", "a=1,b", "a=b=c", ""])
def test_a_text_that_is_no_pair_is_refused(text: str) -> None:
    with pytest.raises(ToolError, match="must be in the format"):
        parse_pairs(text)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0.0"),
        (2.5, "2.5"),
        (1024.0, "1024.0"),
        (9999999.0, "9999999.0"),
        (10000000.0, "1.0E7"),
        (123456789.5, "1.234567895E8"),
        (1e21, "1.0E21"),
        (0.001, "0.001"),
        (0.00012, "1.2E-4"),
        (-20000000.0, "-2.0E7"),
        (float("inf"), "Infinity"),
    ],
)
def test_numbers_are_shown_as_java_shows_doubles(value: float, shown: str) -> None:
    assert number(value) == shown


def test_credentials_have_a_default_of_iterations() -> None:
    assert credential("SCRAM-SHA-256", "password=x,y").iterations == 4096
    assert credential("SCRAM-SHA-512", "iterations=5000,password=x").password == "x"


def test_a_password_is_not_repeated_in_an_error(run_tool: RunTool, broker: str) -> None:
    ran = run_tool(
        "kafka-configs",
        *("--bootstrap-server", broker, "--alter", "--user", "ann"),
        *("--add-config", "SCRAM-SHA-256=[iterations=1,password=hush]"),
    )
    assert (ran.status, "hush" in ran.errors) == (1, False)


def test_a_change_is_visible_at_once(
    broker: str, run_tool: RunTool, fresh_name: Callable[[], str], tmp_path: Path
) -> None:
    topic = fresh_name()
    server = ("--bootstrap-server", broker)
    run_tool("kafka-topics", *server, "--create", "--topic", topic)
    configs = ("kafka-configs", *server, "--topic", topic)
    for value in ("1000", "2000", "3000"):
        assert run_tool(*configs, "--alter", "--add-config", f"retention.ms={value}").status == 0
        assert f"  retention.ms={value} " in run_tool(*configs, "--describe").output
        assert run_tool(*configs, "--alter", "--delete-config", "retention.ms").status == 0
        assert "retention.ms" not in run_tool(*configs, "--describe").output


def test_the_level_of_a_logger_is_changed_and_described(broker: str, run_tool: RunTool) -> None:
    loggers = ("kafka-configs", "--bootstrap-server", broker, "--broker-logger", "1")
    described = run_tool(*loggers, "--describe")
    assert described.lines[0] == "Dynamic configs for broker-logger 1 are:"
    name = described.lines[1].strip().partition("=")[0]
    before = described.lines[1].partition("=")[2].partition(" ")[0]
    try:
        changed = run_tool(*loggers, "--alter", "--add-config", f"{name}=WARN")
        assert changed.output == "Completed updating config for broker-logger 1.\n"
        assert f"  {name}=WARN sensitive=false synonyms={{}}" in run_tool(*loggers, "--describe").lines
    finally:
        run_tool(*loggers, "--alter", "--add-config", f"{name}={before}")


def test_a_missing_broker_is_reported(broker: str, run_tool: RunTool) -> None:
    ran = run_tool("kafka-configs", "--bootstrap-server", broker, "--describe", "--broker", "77", "--all")
    assert (ran.status, ran.errors.splitlines()[-1]) == (1, "broker 77 is not there")
