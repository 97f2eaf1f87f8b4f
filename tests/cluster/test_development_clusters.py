"""A cluster on this machine in one command: up, status, down; and several brokers in the foreground."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Producer

from barnabas.cli.node.local_cluster import LocalCluster
from barnabas.testing.waiting import wait_until

NODES = 3


def barnabas(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "barnabas", *arguments], capture_output=True, text=True, timeout=120
    )


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "cluster"
    yield folder
    for node in LocalCluster(folder).nodes:
        if node.pid is not None:
            os.kill(node.pid, signal.SIGKILL)


def test_a_cluster_comes_up_is_mended_and_goes_in_one_command_each(folder: Path) -> None:
    data = ("--data", str(folder))

    up = barnabas("cluster", "up", "-n", str(NODES), "--port", "0", *data)

    assert up.returncode == 0, up.stderr
    cluster = LocalCluster(folder)
    assert f"bootstrap.servers={cluster.bootstrap}" in up.stdout
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    wait_until(lambda: len(producer.list_topics(timeout=10).brokers) == NODES, what="every broker is known")
    shown = barnabas("cluster", "status", *data)
    assert shown.returncode == 0
    assert shown.stdout.count("in service") == NODES
    assert shown.stdout.count("active controller") == 1

    last = cluster.nodes[-1]
    assert last.pid is not None
    os.kill(last.pid, signal.SIGKILL)
    wait_until(lambda: last.pid is None, what="the end of a killed node")
    shown = barnabas("cluster", "status", *data)
    assert shown.returncode == 1
    assert shown.stdout.count("down") == 1
    assert barnabas("cluster", "up", *data).returncode == 0  # starts whichever does not run
    assert barnabas("cluster", "status", *data).stdout.count("in service") == NODES

    down = barnabas("cluster", "down", "--wipe", *data)
    assert down.returncode == 0, down.stderr
    assert f"Stopped {NODES} of {NODES} nodes." in down.stdout
    assert not folder.exists()


def test_a_secure_cluster_comes_up_in_one_command_with_properties_for_its_clients(folder: Path) -> None:
    """Clients, brokers and controllers speak TLS and log in; replication works over it. A user without a
    rule may do nothing."""
    data = ("--data", str(folder))

    secured = ("--tls", "--sasl", "scram", "--acls")
    up = barnabas("cluster", "up", "-n", str(NODES), "--port", "0", *secured, *data)

    assert up.returncode == 0, up.stderr
    assert f"needs SASL_SSL: give tools and clients the properties in {folder}/client.properties" in up.stdout
    properties = LocalCluster(folder).client_properties
    password = properties["sasl.jaas.config"].rpartition('password="')[2].removesuffix('";')
    for path in folder.rglob("*"):
        if path.is_file() and password.encode() in path.read_bytes():
            assert path.suffix == ".properties" and path.stat().st_mode & 0o077 == 0, path
    assert produced_as("admin", password, properties) is None
    as_admin = (
        "--command-config", str(folder / "client.properties"),
        "--bootstrap-server", properties["bootstrap.servers"],
    )  # fmt: skip
    described = barnabas("topics", "--describe", "--topic", "replicated", *as_admin)
    assert "ReplicationFactor: 3" in described.stdout, described.stderr
    bob = ("--entity-type", "users", "--entity-name", "bob", "--add-config", "SCRAM-SHA-512=[password=b-pw]")
    assert barnabas("configs", "--alter", *bob, *as_admin).returncode == 0
    refused = produced_as("bob", "b-pw", properties)
    assert refused is not None and refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    shown = barnabas("cluster", "status", *data)
    assert shown.stdout.count("in service") == NODES, shown.stdout
    assert barnabas("cluster", "down", "--wipe", *data).returncode == 0
    assert not folder.exists()


def produced_as(user: str, password: str, properties: dict[str, str]) -> KafkaError | None:
    """Write a record; return the error that the producer reports."""
    producer = Producer(
        {
            "bootstrap.servers": properties["bootstrap.servers"],
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": user,
            "sasl.password": password,
            "ssl.ca.location": properties["ssl.truststore.location"],
            "acks": "all",
        }
    )
    reports: list[KafkaError | None] = []
    producer.produce("replicated", b"x", on_delivery=lambda error, _: reports.append(error))
    assert producer.flush(60) == 0
    return reports[0]


def test_a_cluster_with_acls_and_no_logins_is_refused(folder: Path) -> None:
    up = barnabas("cluster", "up", "--acls", "--data", str(folder))

    assert up.returncode == 1
    assert "--acls needs --sasl" in up.stderr
    assert not folder.exists()


def test_several_brokers_run_in_the_foreground_and_stop_together(folder: Path) -> None:
    command = [sys.executable, "-m", "barnabas", "start", "--brokers", str(NODES), "--port", "0"]
    with subprocess.Popen(
        [*command, "--data", str(folder)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("Barnabas is ready: bootstrap.servers="), line
            producer = Producer({"bootstrap.servers": line.strip().partition("=")[2]})
            wait_until(
                lambda: sorted(producer.list_topics(timeout=10).brokers) == list(range(1, NODES + 1)),
                what="every broker is known",
            )
        finally:
            process.terminate()
        process.stdout.read()
        assert process.wait(60) == 0
    assert [node.pid for node in LocalCluster(folder).nodes] == [None] * NODES


def test_a_folder_with_another_number_of_brokers_is_refused(folder: Path) -> None:
    LocalCluster(folder).make(2, 0, {})

    ran = barnabas("start", "--brokers", "3", "--data", str(folder))

    assert ran.returncode == 1
    assert ran.stderr.strip() == f"{folder} has 2 brokers, not 3"
