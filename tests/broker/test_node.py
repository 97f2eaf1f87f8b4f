"""A node starts, stops, comes back; it refuses to start where it would do harm: one line, nothing touched."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.broker.partitions.metadata_partition import open_metadata_log
from barnabas.metadata.partitions import RECOVERING
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.runtime.clock import SystemClock
from barnabas.runtime.disk import REAL_DISK
from barnabas.settings import BrokerSettings
from barnabas.storage.files import meta_properties
from barnabas.storage.logs.context import LogContext
from barnabas.testing import Broker
from barnabas.testing.waiting import wait_until

from .conversation import Conversation, batch, end_offset, produce


def start(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A start that is expected to fail."""
    return subprocess.run(
        [sys.executable, "-m", "barnabas", "start", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def one_line(found: subprocess.CompletedProcess[str]) -> str:
    assert found.returncode == 1
    [line] = found.stderr.strip().splitlines()
    return line


@pytest.fixture
def child(tmp_path: Path) -> Iterator[Broker]:
    broker = Broker(tmp_path / "data", in_process=False)
    with broker:
        yield broker


def everything_in(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        str(path.relative_to(folder)): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
    }


def test_records_are_there_after_a_restart(tmp_path: Path) -> None:
    broker = Broker(tmp_path / "data")
    with broker:
        broker.create_topic("kept", partitions=2)
        with Conversation(broker) as talk:
            talk.ask(*produce("kept", batch(b"1", b"2"), batch(b"3")))
        broker.stop()
        assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()
        broker.start()
        with Conversation(broker) as talk:
            assert end_offset(talk, "kept") == 2
            answer = talk.ask(*produce("kept", batch(b"4")))
            assert answer.responses[0].partition_responses[0].base_offset == 2


@pytest.mark.parametrize("in_order", [True, False], ids=["stopped", "killed"])
def test_a_broker_that_stopped_in_order_registers_with_its_previous_epoch(
    tmp_path: Path, in_order: bool
) -> None:
    """A broker that registers with the epoch it saved at its stop has lost no records and stays eligible."""
    broker = Broker(tmp_path / "data", in_process=False)
    with broker:
        broker.create_topic("kept")
        (broker.stop if in_order else broker.kill)()
        broker.start()
        broker.stop()
    settings = BrokerSettings.load(broker.properties)
    properties = meta_properties.load(REAL_DISK, settings.metadata_log_dir)
    assert properties is not None and properties.directory_id is not None
    metadata = open_metadata_log(settings, properties.directory_id, LogContext(), SystemClock())
    [topic] = metadata.image.topics.by_id.values()
    assert (topic.partitions[0].leader_recovery_state == RECOVERING) != in_order


def test_a_deleted_topic_is_gone_and_can_be_created_again(tmp_path: Path) -> None:
    with Broker(tmp_path / "data", overrides={"log.segment.delete.delay.ms": 0}) as broker:
        broker.create_topic("again")
        with Conversation(broker) as talk:
            talk.ask(*produce("again", batch(b"old")))
        broker.delete_topic("again")
        broker.create_topic("again")
        with Conversation(broker) as talk:
            assert end_offset(talk, "again") == 0
        wait_until(lambda: not [path for path in broker.data.iterdir() if path.name.endswith("-delete")])


def test_a_locked_folder_is_refused(child: Broker, tmp_path: Path) -> None:
    os.kill(child.pid, signal.SIGSTOP)  # it has the lock, and writes nothing meanwhile
    try:
        before = everything_in(child.data)
        line = one_line(start("--data", str(child.data), "--port", "0"))
        assert "in use" in line and str(child.data) in line
        assert everything_in(child.data) == before
    finally:
        os.kill(child.pid, signal.SIGCONT)
    with Conversation(child) as talk:
        assert talk.ask(MetadataRequest(topics=[]), 12).brokers


def test_a_busy_port_is_refused_and_the_folder_stays_untouched(child: Broker, tmp_path: Path) -> None:
    line = one_line(start("--data", str(tmp_path / "other"), "--port", str(child.port)))
    assert f"127.0.0.1:{child.port}" in line
    assert not (tmp_path / "other").exists()


def test_a_folder_of_another_cluster_is_refused(tmp_path: Path) -> None:
    with Broker(tmp_path / "first") as first, Broker(tmp_path / "second") as second:
        first.stop()
        second.stop()
    before = everything_in(tmp_path)
    line = one_line(start("--override", f"log.dirs={tmp_path}/first,{tmp_path}/second", "--port", "0"))
    assert "belongs to cluster" in line
    assert everything_in(tmp_path) == before


def test_a_folder_of_another_node_is_refused(tmp_path: Path) -> None:
    with Broker(tmp_path / "data"):
        pass
    line = one_line(
        start("--data", str(tmp_path / "data"), "--port", "0", "--override", "node.id=7",
              "--override", "controller.quorum.voters=7@127.0.0.1:9")
    )  # fmt: skip
    assert "belongs to node 1, not 7" in line


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_unwritable_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o500)
    assert "not writable" in one_line(start("--data", str(tmp_path / "data"), "--port", "0"))


def test_a_path_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("not a folder")
    assert "not a folder" in one_line(start("--data", str(tmp_path / "data"), "--port", "0"))


def test_a_folder_with_something_else_in_it_is_not_formatted(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "thesis.txt").write_text("three years of work")
    line = one_line(start("--data", str(tmp_path / "data"), "--port", "0"))
    assert "format" in line
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("log.segment.bytes=twelve", "twelve"),
        ("num.partitions=0", "num.partitions"),
        ("compression.type=rar", "rar"),
        ("process.roles=broker", "process.roles"),
        ("controller.quorum.voters=1@127.0.0.1:1,2@127.0.0.1:2", "not formatted"),
    ],
)
def test_a_wrong_setting_stops_the_start_with_its_name_and_value(
    tmp_path: Path, setting: str, said: str
) -> None:
    line = one_line(start("--data", str(tmp_path / "data"), "--port", "0", "--override", setting))
    assert said in line
    assert not (tmp_path / "data").exists()


def test_an_unknown_setting_is_warned_about(tmp_path: Path) -> None:
    found = start(
        "--data", str(tmp_path / "data"), "--port", "0", "--override", "log.segment.byte=1",
        "--override", "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "--override", "super.users=alice",
    )  # fmt: skip
    assert found.returncode == 1
    assert "WARNING" in found.stderr and "log.segment.byte" in found.stderr
    assert "super.users: expected principals of the form Type:name, not 'alice'" in found.stderr
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_node_in_order(tmp_path: Path, number: int) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "barnabas", "start", "--data", str(tmp_path / "data"), "--port", str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        assert "ready" in process.stdout.readline()
        process.send_signal(number)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 0, errors
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()
    assert not (tmp_path / "data" / ".barnabas.pid").exists()


def test_several_log_directories_share_the_partitions(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("a", "b", "c")]
    with Broker(folders[0], overrides={"log.dirs": ",".join(map(str, folders))}) as broker:
        broker.create_topic("spread", partitions=9)
        counts = [
            len([path for path in folder.iterdir() if path.name.startswith("spread-")]) for folder in folders
        ]
        assert counts == [3, 3, 3]
        broker.stop()
        broker.start()
        with Conversation(broker) as talk:
            talk.ask(*produce("spread", *[batch(b"x")] * 9))
            assert end_offset(talk, "spread") == 1


@pytest.mark.parametrize("slash", ["", "/"])
def test_the_metadata_log_may_have_a_disk_of_its_own(tmp_path: Path, slash: str) -> None:
    data, metadata = tmp_path / "data", tmp_path / "metadata"
    with Broker(data, overrides={"metadata.log.dir": f"{metadata}{slash}"}) as broker:
        broker.create_topic("kept")
        assert (metadata / "__cluster_metadata-0").is_dir()
        assert (metadata / "meta.properties").exists()
        assert not (data / "__cluster_metadata-0").exists()
        assert (data / "kept-0").is_dir()
        settings = ("--port", "0", "--override", f"metadata.log.dir={metadata}", "--override")
        assert f"{metadata} is in use" in one_line(start(*settings, f"log.dirs={tmp_path / 'other'}"))
        broker.stop()
        broker.start()
        with Conversation(broker) as talk:
            talk.ask(*produce("kept", batch(b"x")))
            assert end_offset(talk, "kept") == 1
        broker.stop()
        (metadata / "meta.properties").rename(tmp_path / "taken away")
        assert f"{metadata} is not formatted" in one_line(start(*settings, f"log.dirs={data}"))


def test_metrics_are_served_under_kafkas_names(tmp_path: Path) -> None:
    from urllib.request import urlopen

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with Broker(tmp_path / "data", overrides={"barnabas.metrics.port": port}) as broker:
        broker.create_topic("counted")
        with Conversation(broker) as talk:
            talk.ask(*produce("counted", batch(b"1", b"2", b"3")))
        with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            text = answer.read().decode()
    assert 'kafka_server_brokertopicmetrics_messagesin_total{topic="counted"} 3' in text
    assert 'kafka_log_log_logendoffset{topic="counted",partition="0"} 3' in text
    assert "kafka_server_replicamanager_partitioncount 1" in text
