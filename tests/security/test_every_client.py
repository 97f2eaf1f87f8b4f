"""Every client connects in every way: TLS, mutual TLS, SASL with each mechanism, with and without TLS."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.testing import apache

from .kdc import missing as no_kdc
from .locked_broker import (
    EVERY_WAY,
    LOCKED_LOGINS,
    LOGINS,
    MUTUAL,
    TLS,
    Locked,
    Way,
)
from .round_trips import CLIENTS, cannot

JAVA = Path(__file__).with_name("JavaTls.java")
# The other pairs differ in nothing that these do not have: they run in the long lane.
SHORT = {
    "librdkafka": EVERY_WAY,
    "kafka-python": [MUTUAL, LOCKED_LOGINS[0], LOCKED_LOGINS[3], LOGINS[4]],
    "aiokafka": [MUTUAL, LOGINS[1], LOCKED_LOGINS[3], LOCKED_LOGINS[4]],
    "kcat": [TLS, LOCKED_LOGINS[0], LOCKED_LOGINS[4]],
    "ours": EVERY_WAY,
}
JAVA_SHORT = LOCKED_LOGINS[-2:]


def pairs() -> Iterator[object]:
    for client in CLIENTS:
        for way in EVERY_WAY:
            marks = [] if way in SHORT[client] else [pytest.mark.long]
            yield pytest.param(client, way, id=f"{client}-{way}", marks=marks)


def skip_if_impossible(locked: Locked, way: Way, client: str = "") -> None:
    if way.mechanism == "GSSAPI" and locked.kdc is None:
        pytest.skip(no_kdc() or "")
    reason = cannot(client, way)
    if reason is not None:
        pytest.skip(reason)


@pytest.mark.parametrize(("client", "way"), list(pairs()))
def test_a_client_writes_and_reads(running: Locked, client: str, way: Way) -> None:
    skip_if_impossible(running, way, client)
    CLIENTS[client](running, way, f"{client}-{way}")


@pytest.mark.java
@pytest.mark.usefixtures("java")
def test_java_clients_write_and_read(running: Locked, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    ways = EVERY_WAY if request.config.getoption("--long") else JAVA_SHORT
    ways = [way for way in ways if way.mechanism != "GSSAPI" or running.kdc is not None]
    files = []
    for way in ways:
        file = tmp_path / str(way)
        properties = running.java(way) | {"topic": f"java-{way}"}
        file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        files.append(str(file))
    command = apache.compiled(JAVA, tmp_path)
    command[1:1] = running.java_flags
    done = subprocess.run([*command, *files], capture_output=True, text=True, timeout=240)
    outcomes = dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
    assert {name: said[:3] for name, said in outcomes.items()} == {str(way): "ok " for way in ways}, (
        done.stdout + done.stderr[-3000:]
    )


@pytest.mark.java
@pytest.mark.long
@pytest.mark.usefixtures("java")
@pytest.mark.parametrize("way", [MUTUAL, *LOCKED_LOGINS], ids=str)
def test_console_tools_of_apache_kafka_write_and_read(running: Locked, tmp_path: Path, way: Way) -> None:
    skip_if_impossible(running, way)
    properties = running.java(way)
    bootstrap = properties.pop("bootstrap.servers")
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    common = ("--bootstrap-server", bootstrap, "--topic", f"console-{way}", "--command-config", str(file))
    done = apache.tool(
        "org.apache.kafka.tools.ConsoleProducer", *common, input="one\ntwo\n", java_flags=running.java_flags
    )
    assert done.returncode == 0, done.stdout + done.stderr
    reading = ("--from-beginning", "--max-messages", "2", "--timeout-ms", "20000")
    done = apache.tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer", *common, *reading, java_flags=running.java_flags
    )
    assert done.stdout.split() == ["one", "two"], done.stdout + done.stderr
