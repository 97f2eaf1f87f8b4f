"""Formatting and inspecting data folders, and a broker's life from start to stop."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.testing.ports import free_ports

from .conftest import RunTool

CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
START_TIMEOUT_S = 30.0


@pytest.fixture
def properties(tmp_path: Path) -> Path:
    file = tmp_path / "server.properties"
    file.write_text(
        "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
        "listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093\n"
        f"controller.quorum.voters=1@127.0.0.1:9093\nlog.dirs={tmp_path}/data\n"
    )
    return file


def test_a_folder_is_formatted_once(properties: Path, tmp_path: Path, run_tool: RunTool) -> None:
    format_it = ("kafka-storage", "format", "-t", CLUSTER_ID, "-c", str(properties))
    first = run_tool(*format_it)
    assert first.lines == [f"Formatting metadata directory {tmp_path}/data with metadata.version 4.3-IV0."]
    again = run_tool(*format_it)
    assert again.status == 1
    assert again.errors == (
        f"Log directory {tmp_path}/data is already formatted. Use --ignore-formatted to ignore this "
        "directory and format the others.\n"
    )
    ignored = run_tool(*format_it, "--ignore-formatted")
    assert ignored.lines == ["All of the log directories are already formatted."]


def test_info_shows_the_dirs_and_their_problems(properties: Path, tmp_path: Path, run_tool: RunTool) -> None:
    info = ("kafka-storage", "info", "-c", str(properties))
    missing = run_tool(*info)
    assert (missing.status, missing.output) == (1, f"Found problem:\n  {tmp_path}/data does not exist\n\n")
    run_tool("kafka-storage", "format", "-t", CLUSTER_ID, "-c", str(properties))
    found = run_tool(*info)
    shown = re.sub(r"directory\.id=\S{22}", "directory.id=<id>", found.output)
    assert (found.status, shown) == (
        0,
        f"Found log directory:\n  {tmp_path}/data\n\n"
        f"Found metadata: {{cluster.id={CLUSTER_ID}, directory.id=<id>, node.id=1, version=1}}\n\n",
    )


def test_a_folder_of_another_cluster_is_not_formatted(properties: Path, run_tool: RunTool) -> None:
    run_tool("kafka-storage", "format", "-t", CLUSTER_ID, "-c", str(properties))
    ran = run_tool("kafka-storage", "format", "-g", "-t", "AAAAAAAAAAAAAAAAAAAAAg", "-c", str(properties))
    assert ran.status == 1
    assert "Expected AAAAAAAAAAAAAAAAAAAAAg, but read AAAAAAAAAAAAAAAAAAAAAQ" in ran.errors


def test_random_uuid_prints_a_new_id(run_tool: RunTool) -> None:
    one, other = (run_tool("kafka-storage", "random-uuid").output for _ in range(2))
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{21}\n", one)
    assert one != other


def test_releases_have_their_features(run_tool: RunTool) -> None:
    assert run_tool("kafka-storage", "version-mapping").lines == [
        "metadata.version=30 (4.3-IV0)",
        "kraft.version=1",
        "transaction.version=2",
        "group.version=1",
        "eligible.leader.replicas.version=1",
        "share.version=1",
        "streams.version=1",
    ]
    unknown = run_tool("kafka-storage", "version-mapping", "--release-version", "9")
    assert (unknown.status, unknown.errors[:27]) == (1, "Unknown metadata.version '9")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "usage: kafka-storage"),
        (("format", "-c", "x"), "the following arguments are required: -t/--cluster-id"),
        (("info", "-c", "/no/such"), "cannot read /no/such: no such file or directory"),
        (("feature-dependencies", "-f", "foo=1"), "Unknown feature: foo"),
    ],
)
def test_an_error_is_one_line(arguments: tuple[str, ...], problem: str, run_tool: RunTool) -> None:
    ran = run_tool("kafka-storage", *arguments)
    assert ran.status == 1
    assert ran.errors.startswith(problem)


def test_a_broker_starts_and_stops_from_the_command_line(tmp_path: Path, run_tool: RunTool) -> None:
    port = free_ports(1)[0]
    command = [sys.executable, "-m", "barnabas", "start", "--data", f"{tmp_path}/data", "--port", str(port)]
    with (tmp_path / "errors").open("wb") as errors:
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors)
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == b"Barnabas is ready: bootstrap.servers=127.0.0.1:%d\n" % port
        listed = run_tool("kafka-topics", "--bootstrap-server", f"127.0.0.1:{port}", "--list")
        assert listed.status == 0
        # The broker is our child: it stays a zombie until we wait for it, and a zombie counts as ended.
        stopped = run_tool("kafka-server-stop", "--data", f"{tmp_path}/data")
        assert stopped.output == f"Stopped the broker with process id {child.pid}.\n"
        assert child.wait(START_TIMEOUT_S) == 0
    finally:
        child.kill()
        child.communicate()
    again = run_tool("kafka-server-stop", "--data", f"{tmp_path}/data")
    assert (again.status, again.errors.startswith(f"no broker runs in {tmp_path}/data")) == (1, True)
