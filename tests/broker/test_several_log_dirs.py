"""Several log dirs: placement, moves while partitions are in use, cordoned dirs, failed dirs."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.node import Node
from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from barnabas.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest
from barnabas.runtime.disk import Disk
from barnabas.testing import Broker
from barnabas.testing.waiting import wait_until

from .conversation import Conversation, batch, end_offset, fetch, produce, records_of, start_offset

Move = AlterReplicaLogDirsRequest.AlterReplicaLogDir


@pytest.fixture
def dirs(tmp_path: Path) -> list[Path]:
    return [tmp_path / name for name in ("one", "two", "three")]


@pytest.fixture
def node(dirs: list[Path]) -> Iterator[Broker]:
    with made(dirs) as broker:
        yield broker


def made(dirs: list[Path], **overrides: Any) -> Broker:
    settings = {
        "log.dirs": ",".join(map(str, dirs)),
        "metadata.log.dir": str(dirs[0]),
        "log.segment.delete.delay.ms": 100,
        "offsets.topic.num.partitions": 1,
        **overrides,
    }
    return Broker(dirs[0], overrides=settings)


def folders(dirs: list[Path], topic: str) -> dict[str, str]:
    """The dir of each partition, with future logs."""
    return {path.name: each.name for each in dirs for path in each.glob(f"{topic}-*")}


def move(talk: Conversation, topic: str, to: Path | str, *partitions: int) -> list[str]:
    moved = Move.AlterReplicaLogDirTopic(name=topic, partitions=list(partitions))
    request = AlterReplicaLogDirsRequest(dirs=[Move(path=str(to), topics=[moved])])
    [answer] = talk.ask(request, 2).results
    return [ErrorCode(each.error_code).name for each in answer.partitions]


def described(talk: Conversation) -> dict[str, Any]:
    answer = talk.ask(DescribeLogDirsRequest(topics=None), 5)
    return {Path(each.log_dir).name: each for each in answer.results}


def values(talk: Conversation, topic: str) -> list[bytes]:
    from barnabas.records.batch import headers
    from barnabas.records.record import iter_records

    found: list[bytes] = []
    offset, end = start_offset(talk, topic), end_offset(talk, topic)
    while offset < end:
        data = records_of(talk.ask(*fetch(topic, offset)))
        for position, header in headers(data):
            found += [record.value or b"" for record in iter_records(data, position=position)]
            offset = header.next_offset
    return found


def test_new_partitions_go_to_the_dir_with_the_fewest(node: Broker, dirs: list[Path]) -> None:
    node.create_topic("spread", partitions=6)

    placed = folders(dirs, "spread")
    assert sorted(placed) == [f"spread-{n}" for n in range(6)]
    assert sorted(placed.values()) == ["one", "one", "three", "three", "two", "two"]


def test_partitions_stay_in_their_dir_after_a_restart(node: Broker, dirs: list[Path]) -> None:
    node.create_topic("spread", partitions=5)
    before = folders(dirs, "spread")
    with Conversation(node) as talk:
        talk.ask(*produce("spread", *[batch(b"%d" % n) for n in range(5)]))
    node.stop()
    node.start()

    assert folders(dirs, "spread") == before
    with Conversation(node) as talk:
        assert values(talk, "spread") == [b"0"]


def test_a_partition_moves_while_it_is_written_to(node: Broker, dirs: list[Path]) -> None:
    node.create_topic("busy", configs={"segment.bytes": 1048576})
    [source] = folders(dirs, "busy").values()
    target = next(each for each in dirs if each.name != source)
    written: list[bytes] = []
    stopping = threading.Event()
    moved_at: list[int] = []

    def write() -> None:
        with Conversation(node) as talk:
            while not stopping.is_set():
                value = b"%06d" % len(written)
                answer = talk.ask(*produce("busy", batch(value + b"." * 2000), acks=-1))
                assert answer.responses[0].partition_responses[0].error_code == 0
                written.append(value)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        wait_until(lambda: len(written) > 300)
        with Conversation(node) as talk:
            assert move(talk, "busy", target, 0) == ["NONE"]
            wait_until(lambda: folders(dirs, "busy") == {"busy-0": target.name}, 30)
            moved_at.append(len(written))
            wait_until(lambda: len(written) > moved_at[0] + 100)
    finally:
        stopping.set()
        writer.join()
    with Conversation(node) as talk:
        assert [value[:6] for value in values(talk, "busy")] == written
        [topic] = described(talk)[target.name].topics
        assert (topic.partitions[0].is_future_key, topic.partitions[0].offset_lag) == (False, 0)
    node.stop()
    node.start()
    with Conversation(node) as talk:
        assert [value[:6] for value in values(talk, "busy")] == written
    wait_until(lambda: folders(dirs, "busy") == {"busy-0": target.name})


def test_a_slow_move_is_described_and_continues_after_a_restart(dirs: list[Path]) -> None:
    from confluent_kafka.admin import (
        AdminClient,
        AlterConfigOpType,
        ConfigEntry,
        ConfigResource,
        ResourceType,
    )

    def throttle(bytes_per_second: int) -> None:
        entry = ConfigEntry(
            "replica.alter.log.dirs.io.max.bytes.per.second",
            str(bytes_per_second),
            incremental_operation=AlterConfigOpType.SET,
        )
        resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
        admin = AdminClient({"bootstrap.servers": node.bootstrap})
        admin.incremental_alter_configs([resource])[resource].result(10)

    with made(dirs) as node:
        node.create_topic("slow")
        [source] = folders(dirs, "slow").values()
        target = next(each for each in dirs if each.name != source)
        with Conversation(node) as talk:
            for _ in range(20):
                talk.ask(*produce("slow", batch(b"x" * 1000)))
            throttle(2000)
            assert move(talk, "slow", target, 0) == ["NONE"]
            row = described(talk)[target.name].topics[0].partitions[0]
            assert row.is_future_key and 0 < row.offset_lag <= 20
            current = described(talk)[source].topics[0].partitions[0]
            assert (current.is_future_key, current.offset_lag) == (False, 0)
        [future] = target.glob("slow-0.*-future")
        node.stop()
        assert future.exists()
        node.start()
        throttle(2**62)
        wait_until(lambda: folders(dirs, "slow") == {"slow-0": target.name}, 30)
        with Conversation(node) as talk:
            assert len(values(talk, "slow")) == 20


def test_a_move_back_ends_the_move(dirs: list[Path]) -> None:
    with made(dirs, **{"replica.alter.log.dirs.io.max.bytes.per.second": 0}) as node:
        node.create_topic("kept")
        [source] = folders(dirs, "kept").values()
        target, other = [each for each in dirs if each.name != source]
        with Conversation(node) as talk:
            talk.ask(*produce("kept", batch(b"x")))
            assert move(talk, "kept", target, 0) == ["NONE"]
            assert list(target.glob("kept-0.*-future"))
            assert move(talk, "kept", other, 0) == ["NONE"]
            assert list(other.glob("kept-0.*-future")) and not list(target.glob("kept-0.*-future"))
            assert move(talk, "kept", dirs[[d.name for d in dirs].index(source)], 0) == ["NONE"]
        wait_until(lambda: folders(dirs, "kept") == {"kept-0": source})


def test_impossible_moves_have_an_error(node: Broker, dirs: list[Path]) -> None:
    node.create_topic("here")
    node.create_topic("n" * 215)
    [source] = folders(dirs, "here").values()
    target = next(each for each in dirs if each.name != source)
    with Conversation(node) as talk:
        assert move(talk, "here", "/nowhere", 0) == ["LOG_DIR_NOT_FOUND"]
        assert move(talk, "here", target, 5) == ["UNKNOWN_TOPIC_OR_PARTITION"]
        assert move(talk, "n" * 215, target, 0) == ["INVALID_TOPIC_EXCEPTION"]
        assert move(talk, "here", dirs[[d.name for d in dirs].index(source)], 0) == ["NONE"]


def test_a_later_partition_is_created_in_its_preferred_dir(node: Broker, dirs: list[Path]) -> None:
    with Conversation(node) as talk:
        assert move(talk, "later", dirs[2], 0, 1) == ["UNKNOWN_TOPIC_OR_PARTITION"] * 2
    node.create_topic("later", partitions=2)

    assert folders(dirs, "later") == {"later-0": "three", "later-1": "three"}


def test_cordoned_dirs_get_no_new_partitions(dirs: list[Path]) -> None:
    with made(dirs, **{"cordoned.log.dirs": f"{dirs[1]},{dirs[2]}"}) as node:
        node.create_topic("new", partitions=4)

        assert set(folders(dirs, "new").values()) == {"one"}
        with Conversation(node) as talk:
            assert [described(talk)[name].is_cordoned for name in ("one", "two", "three")] == [
                False,
                True,
                True,
            ]
            assert move(talk, "new", dirs[1], 0) == ["INVALID_REPLICA_ASSIGNMENT"]


def test_a_broker_whose_dirs_are_all_cordoned_gets_no_topics(node: Broker, dirs: list[Path]) -> None:
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import (
        AdminClient,
        AlterConfigOpType,
        ConfigEntry,
        ConfigResource,
        NewTopic,
        ResourceType,
    )  # fmt: skip

    entry = ConfigEntry("cordoned.log.dirs", "*", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    admin.incremental_alter_configs([resource])[resource].result(10)
    with Conversation(node) as talk:
        wait_until(lambda: described(talk)["one"].is_cordoned)
    tried = []

    def refused() -> bool:
        name = f"none-{len(tried)}"
        tried.append(name)
        try:
            admin.create_topics([NewTopic(name, 1, 1)])[name].result(10)
        except KafkaException as error:
            return error.args[0].name() == "INVALID_REPLICATION_FACTOR"
        return False

    wait_until(refused)


# -- dirs that fail ----------------------------------------------------------------------------------


class FailingDisk(Disk):
    """The real disk, with paths that raise an error."""

    def __init__(self) -> None:
        self.errors: dict[str, int] = {}
        self.paths: dict[int, str] = {}

    def check(self, path: str) -> None:
        for prefix, number in self.errors.items():
            if path.startswith(prefix):
                raise OSError(number, os.strerror(number), path)

    def open(self, path: str, flags: int, mode: int = 0o777) -> int:  # type: ignore[override]
        self.check(path)
        descriptor = os.open(path, flags, mode)
        self.paths[descriptor] = path
        return descriptor

    def pwritev(self, descriptor: int, buffers: Any, position: int) -> int:  # type: ignore[override]
        self.check(self.paths[descriptor])
        return os.pwritev(descriptor, buffers, position)

    def fsync(self, descriptor: int) -> None:  # type: ignore[override]
        self.check(self.paths[descriptor])
        os.fsync(descriptor)

    def replace(self, source: str, target: str) -> None:  # type: ignore[override]
        self.check(target)
        Path(source).replace(target)

    def mkdir(self, path: str, mode: int = 0o777) -> None:  # type: ignore[override]
        self.check(path)
        Path(path).mkdir(mode)


@pytest.fixture
def failing(dirs: list[Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Broker, FailingDisk]]:
    disk = FailingDisk()
    monkeypatch.setattr("barnabas.broker.node.Node", partial(Node, disk=disk))
    with made(dirs, **{"replica.high.watermark.checkpoint.interval.ms": 3_600_000}) as node:
        yield node, disk


def codes(talk: Conversation, topic: str, partitions: int) -> list[str]:
    """The error code of a produce request to each partition."""
    answer = talk.ask(*produce(topic, *[batch(b"x")] * partitions, acks=-1))
    found = answer.responses[0].partition_responses
    return [ErrorCode(each.error_code).name for each in sorted(found, key=lambda each: each.index)]


def by_dir(dirs: list[Path], topic: str, partitions: int) -> list[str]:
    placed = folders(dirs, topic)
    return [placed[f"{topic}-{n}"] for n in range(partitions)]


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EROFS])
def test_a_dir_that_fails_takes_only_its_partitions_offline(
    failing: tuple[Broker, FailingDisk], dirs: list[Path], number: int
) -> None:
    node, disk = failing
    node.create_topic("load", partitions=6)
    placed = by_dir(dirs, "load", 6)
    with Conversation(node) as talk:
        assert codes(talk, "load", 6) == ["NONE"] * 6
        disk.errors[str(dirs[1])] = number
        expected = ["KAFKA_STORAGE_ERROR" if name == "two" else "NONE" for name in placed]
        assert codes(talk, "load", 6) == expected
        wait_until(lambda: described(talk)["two"].error_code == ErrorCode.KAFKA_STORAGE_ERROR)

        assert codes(talk, "load", 6) == expected
        assert described(talk)["one"].error_code == described(talk)["three"].error_code == 0
        offline = placed.index("two")
        request = fetch("load", 0)
        request[0].topics[0].partitions[0].partition = offline
        answer = talk.ask(*request).responses[0].partitions[0]
        assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR

        def leaders() -> list[int]:
            metadata = talk.ask(
                MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="load")]), 12
            )
            found = sorted(metadata.topics[0].partitions, key=lambda each: each.partition_index)
            return [each.leader_id for each in found]

        wait_until(lambda: leaders() == [-1 if name == "two" else 1 for name in placed])
        node.create_topic("more", partitions=4)
        assert set(folders(dirs, "more").values()) == {"one", "three"}


def test_a_dir_that_is_back_after_a_restart_brings_its_partitions(
    failing: tuple[Broker, FailingDisk], dirs: list[Path]
) -> None:
    node, disk = failing
    node.create_topic("load", partitions=3)
    with Conversation(node) as talk:
        assert codes(talk, "load", 3) == ["NONE"] * 3
        disk.errors[str(dirs[1])] = errno.EIO
        codes(talk, "load", 3)
        wait_until(lambda: described(talk)["two"].error_code == ErrorCode.KAFKA_STORAGE_ERROR)
    disk.errors.clear()
    node.stop()
    node.start()
    with Conversation(node) as talk:
        wait_until(lambda: codes(talk, "load", 3) == ["NONE"] * 3)


def test_a_dir_that_is_missing_at_the_start_takes_its_partitions_offline(
    failing: tuple[Broker, FailingDisk], dirs: list[Path]
) -> None:
    node, disk = failing
    node.create_topic("load", partitions=3)
    placed = by_dir(dirs, "load", 3)
    with Conversation(node) as talk:
        assert codes(talk, "load", 3) == ["NONE"] * 3
    node.stop()
    disk.errors[str(dirs[1])] = errno.EIO
    node.start()
    with Conversation(node) as talk:
        expected = ["KAFKA_STORAGE_ERROR" if name == "two" else "NONE" for name in placed]
        wait_until(lambda: codes(talk, "load", 3) == expected)
    assert by_dir(dirs, "load", 3) == placed


def test_a_dir_that_fails_between_requests_is_noticed_by_the_next_checkpoint(
    dirs: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = FailingDisk()
    monkeypatch.setattr("barnabas.broker.node.Node", partial(Node, disk=disk))
    with (
        made(dirs, **{"replica.high.watermark.checkpoint.interval.ms": 20}) as node,
        Conversation(node) as talk,
    ):
        node.create_topic("load", partitions=3)
        disk.errors[str(dirs[2])] = errno.EROFS
        wait_until(lambda: described(talk)["three"].error_code == ErrorCode.KAFKA_STORAGE_ERROR)
        assert "KAFKA_STORAGE_ERROR" in codes(talk, "load", 3)


def test_a_dir_that_is_taken_away_is_noticed_by_the_next_checkpoint(dirs: list[Path]) -> None:
    """As an unmount does: an empty folder is in its place."""
    with (
        made(dirs, **{"replica.high.watermark.checkpoint.interval.ms": 20}) as node,
        Conversation(node) as talk,
    ):
        node.create_topic("load", partitions=3)
        dirs[1].rename(dirs[1].with_name("elsewhere"))
        dirs[1].mkdir()
        wait_until(lambda: described(talk)["two"].error_code == ErrorCode.KAFKA_STORAGE_ERROR)
        assert list(dirs[1].iterdir()) == []
        assert sorted(codes(talk, "load", 3)) == ["KAFKA_STORAGE_ERROR", "NONE", "NONE"]


def test_a_copy_whose_dir_fails_leaves_its_partition_where_it_is(
    failing: tuple[Broker, FailingDisk], dirs: list[Path]
) -> None:
    node, disk = failing
    node.create_topic("kept")
    [source] = folders(dirs, "kept").values()
    target = next(each for each in dirs[1:] if each.name != source)
    with Conversation(node) as talk:
        for _ in range(20):
            assert codes(talk, "kept", 1) == ["NONE"]
        disk.errors[str(target)] = errno.EIO
        move(talk, "kept", target, 0)
        wait_until(lambda: described(talk)[target.name].error_code == ErrorCode.KAFKA_STORAGE_ERROR)

        assert codes(talk, "kept", 1) == ["NONE"]
        assert len(values(talk, "kept")) == 21


def test_groups_of_a_dir_that_fails_have_no_coordinator(
    failing: tuple[Broker, FailingDisk], dirs: list[Path]
) -> None:
    node, disk = failing
    with Conversation(node) as talk:
        assert move(talk, "__consumer_offsets", dirs[1], 0) == ["UNKNOWN_TOPIC_OR_PARTITION"]

        def coordinator() -> str:
            answer = talk.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
            return ErrorCode(answer.coordinators[0].error_code).name

        def commit() -> str:
            topic = OffsetCommitRequest.OffsetCommitRequestTopic
            partition = topic.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
            request = OffsetCommitRequest(group_id="g", topics=[topic(name="t", partitions=[partition])])
            answer = talk.ask(request, 8)
            return ErrorCode(answer.topics[0].partitions[0].error_code).name

        node.create_topic("t")
        wait_until(lambda: coordinator() == "NONE" and commit() == "NONE")
        assert folders(dirs, "__consumer_offsets") == {"__consumer_offsets-0": "two"}
        disk.errors[str(dirs[1])] = errno.EIO
        wait_until(lambda: commit() == "NOT_COORDINATOR")
        wait_until(lambda: coordinator() == "COORDINATOR_NOT_AVAILABLE")


@pytest.mark.parametrize("which", ["metadata", "all"])
def test_without_metadata_or_any_dir_a_node_stops(tmp_path: Path, which: str) -> None:
    """As a process: the last dirs cannot be read any more, and it ends by itself with a line that says
    why."""
    dirs = [tmp_path / "one", tmp_path / "two"]
    script = f"""
import errno, os, sys, threading
from functools import partial
sys.path.insert(0, {str(Path(__file__).parent.parent)!r})
from broker.test_several_log_dirs import FailingDisk, made
from barnabas.broker import process
from pathlib import Path
disk = FailingDisk()
process.Node = partial(process.Node, disk=disk)
def ready(node):
    disk.errors[{str(dirs[0] if which == "metadata" else tmp_path)!r}] = errno.EIO
broker = made([Path({str(dirs[0])!r}), Path({str(dirs[1])!r})])
os._exit(process.main(broker.properties, format_empty=True, on_ready=ready))
"""
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert found.returncode == 1, found.stderr
    assert "barnabas: " in found.stderr.splitlines()[-1]
    assert "Input/output error" in found.stderr.splitlines()[-1]
