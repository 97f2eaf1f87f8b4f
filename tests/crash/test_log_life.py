"""kill -9 while the log grows, ages, is cut and moves: what is promised is kept, what was given up stays
away."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.protocol import ApiKey
from barnabas.testing import Broker
from barnabas.testing.waiting import wait_until
from interop.frames import Closed, Wire
from interop.talk import decode, encode, request_header_version

from .progress import kill_and_start, wait_for
from .writers import RawWriter, stored

QUICK = {
    "log.retention.ms": "-1",
    "log.retention.check.interval.ms": "20",
    "log.segment.delete.delay.ms": "20",
    "log.flush.start.offset.checkpoint.interval.ms": "20",
    "log.flush.offset.checkpoint.interval.ms": "50",
    "log.index.interval.bytes": "512",
}
EARLIEST = -2

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def dirs(tmp_path: Path) -> list[Path]:
    return [tmp_path / "one", tmp_path / "two"]


@pytest.fixture
def broker(dirs: list[Path]) -> Iterator[Broker]:
    overrides = {**QUICK, "log.dirs": ",".join(map(str, dirs)), "metadata.log.dir": str(dirs[0])}
    with Broker(dirs[0], overrides=overrides, in_process=False) as made:
        yield made


def ask(port: int, api: ApiKey, version: int, **body: Any) -> dict[str, Any]:
    with Wire(port) as wire:
        sent = wire.send(api, version, request_header_version(api, version), encode(api, version, body))
        return decode(api, version, wire.receive(), sent)


def start_of(broker: Broker, topic: str) -> int:
    partitions = [{"partition_index": 0, "timestamp": EARLIEST}]
    answer = ask(
        broker.port,
        ApiKey.LIST_OFFSETS,
        8,
        replica_id=-1,
        topics=[{"name": topic, "partitions": partitions}],
    )
    found = answer["topics"][0]["partitions"][0]
    assert found["error_code"] == "NONE", found
    return int(found["offset"])


def check_from(writer: RawWriter, records: list[tuple[int, int]], start: int) -> None:
    """The promises of a log that starts at an offset: everything acknowledged from there on, in order,
    without gaps."""
    assert not writer.errors
    assert [offset for offset, _ in records] == list(range(start, start + len(records))), (
        "offsets are not dense"
    )
    at = dict(records)
    lost = [
        offset
        for offset, number in writer.acknowledged.items()
        if offset >= start and at.get(offset) != number
    ]
    assert not lost, f"{len(lost)} acknowledged records are not at their offsets, the first at {min(lost)}"
    strangers = set(at.values()) - set(writer.acknowledged.values()) - writer.uncertain
    assert not strangers, "records are there that nobody sent"


def test_retention_and_kills(broker: Broker, kills: int) -> None:
    """The log starts later and later, never earlier than what was kept, and has no gap behind its start."""
    retention_bytes = 3 << 20
    broker.create_topic("aging", configs={"segment.bytes": 1 << 20, "retention.bytes": retention_bytes})
    writer = RawWriter(broker.port, "aging", 0, acks=-1)
    writer.start()
    rng = random.Random(kills)
    for _ in range(kills):
        wait_for(lambda: len(writer.acknowledged), rng.randrange(400, 900))
        kill_and_start(broker)
    wait_for(lambda: len(writer.acknowledged), 2_000)
    writer.stop()

    def sizes() -> list[int]:
        found = []
        for path in sorted(broker.data.parent.glob("*/aging-0/*.log")):
            with contextlib.suppress(FileNotFoundError):  # retention deletes it at this moment
                found.append(path.stat().st_size)
        return found

    wait_until(lambda: sum(sizes()[1:]) < retention_bytes, what="retention has nothing to delete any more")
    start = start_of(broker, "aging")
    records = stored(broker.port, "aging", 0, start)
    check_from(writer, records, start)
    assert start > 0
    assert sum(sizes()) >= retention_bytes


def test_deleted_records_and_kills(broker: Broker, kills: int) -> None:
    """Records before the last start that was in the checkpoint do not come back; the others are all there."""
    broker.create_topic("cut", configs={"segment.bytes": 1 << 20})
    writer = RawWriter(broker.port, "cut", 0, acks=-1)
    writer.start()
    rng = random.Random(kills)
    least = most = 0
    for _ in range(kills):
        wait_for(lambda: len(writer.acknowledged), rng.randrange(100, 400))
        most = max(most, max(writer.acknowledged) - 50)
        partitions = [{"partition_index": 0, "offset": most}]
        answer = ask(
            broker.port,
            ApiKey.DELETE_RECORDS,
            2,
            topics=[{"name": "cut", "partitions": partitions}],
            timeout_ms=5_000,
        )
        assert answer["topics"][0]["partitions"][0] == {
            "partition_index": 0,
            "low_watermark": most,
            "error_code": "NONE",
        }
        if rng.random() < 0.5:
            wait_until(lambda offset=most: in_checkpoint(broker, offset))
            least = most
        kill_and_start(broker)
        assert least <= start_of(broker, "cut") <= most
    wait_for(lambda: len(writer.acknowledged), 20)
    writer.stop()
    start = start_of(broker, "cut")
    check_from(writer, stored(broker.port, "cut", 0, start), start)


def folders(broker: Broker, name: str) -> list[Path]:
    return list(broker.data.parent.glob(f"*/{name}"))


def in_checkpoint(broker: Broker, offset: int) -> bool:
    """Whether the next start knows it; or needs not, since the log's first file begins there."""
    found = broker.data.parent.glob("*/log-start-offset-checkpoint")
    if any(f"cut 0 {offset}\n" in path.read_text() for path in found):
        return True
    return (
        min(path.stem for each in folders(broker, "cut-0") for path in each.glob("*.log")) == f"{offset:020d}"
    )


def test_moves_and_kills(broker: Broker, dirs: list[Path], kills: int) -> None:
    """To and fro between two dirs while it is written to, killed anywhere in between."""
    broker.create_topic("moving", configs={"segment.bytes": 1 << 20})
    writer = RawWriter(broker.port, "moving", 0, acks=-1)
    writer.start()
    rng = random.Random(kills)
    for number in range(2 * kills):
        wait_for(lambda: len(writer.acknowledged), rng.randrange(50, 300))
        try:
            ask(
                broker.port,
                ApiKey.ALTER_REPLICA_LOG_DIRS,
                2,
                dirs=[{"path": str(dirs[number % 2]), "topics": [{"name": "moving", "partitions": [0]}]}],
            )
        except (Closed, OSError):
            pass
        wait_for(lambda: len(writer.acknowledged), rng.randrange(1, 60))
        if number % 2:
            kill_and_start(broker)
    target = dirs[0] if folders(broker, "moving-0") == [dirs[1] / "moving-0"] else dirs[1]
    ask(
        broker.port,
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        2,
        dirs=[{"path": str(target), "topics": [{"name": "moving", "partitions": [0]}]}],
    )
    wait_until(lambda: folders(broker, "moving-0") == [target / "moving-0"], 60)
    wait_for(lambda: len(writer.acknowledged), 20)
    writer.stop()
    check_from(writer, stored(broker.port, "moving", 0), 0)
