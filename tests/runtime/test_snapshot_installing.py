"""A node that was cut off for long installs the leader's snapshot while its loop serves others."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.partitions.metadata_partition import open_metadata_log
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.difference import compared, difference
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage, Provenance
from barnabas.metadata.steps import at_once
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.log_records.metadata import FeatureLevelRecord, PartitionRecord, TopicRecord
from barnabas.quorum import quorum_fetching, snapshot_files
from barnabas.quorum.metadata_log import MetadataLog
from barnabas.quorum.quorum_fetching import Fetching
from barnabas.quorum.snapshot_installing import prepare
from barnabas.raft.snapshot_ids import SnapshotId
from barnabas.raft.voters import Membership
from barnabas.runtime.disk import REAL_DISK, Disk
from barnabas.testing.waiting import until
from runtime.nodes import CLUSTER_ID, Node, run, settings_for

SNAPSHOT = SnapshotId(5_000, 7)
TOPICS, PARTITIONS = 100, 10
STEP_RECORDS_MAX = 16


def image_of(topics: range) -> MetadataImage:
    found: list[Message] = [FeatureLevelRecord(name="metadata.version", feature_level=30)]
    for number in topics:
        topic_id = (number + 1).to_bytes(16, "big")
        found.append(TopicRecord(name=f"t{number}", topic_id=topic_id))
        found += [
            PartitionRecord(partition_id=index, topic_id=topic_id, replicas=[1], isr=[1], leader=1)
            for index in range(PARTITIONS)
        ]
    delta = MetadataDelta(EMPTY_IMAGE)
    delta.replay_all(found)
    return delta.apply(Provenance(SNAPSHOT.end_offset - 1, SNAPSHOT.epoch, 0))


def encoded(image: MetadataImage) -> bytes:
    return at_once(snapshot_files.encode_image(image, Membership(), 0))


class GatedDisk(Disk):
    """Snapshots are written, and files synced, when the gate is open."""

    gate = threading.Event()

    def create(self, path: str, data: bytes = b"", **options: Any) -> None:  # type: ignore[override]
        if ".checkpoint" in path:
            GatedDisk.gate.wait(60)
        super().create(path, data, **options)

    def fsync(self, descriptor: int) -> None:  # type: ignore[override]
        GatedDisk.gate.wait(60)
        Disk.fsync(descriptor)


def follower(folder: Path, disk: Disk = REAL_DISK) -> MetadataLog:
    name = {"node_id": "2", "controller_quorum_voters": "1@127.0.0.1:9093,2@127.0.0.1:9094"}
    GatedDisk.gate.set()
    node = Node(settings_for(folder, **name), disk)
    node.format()
    return open_metadata_log(node.settings, bytes([2]) * 16, node.context, node.clock)


def test_the_loop_serves_others_while_the_disk_keeps_a_snapshot_waiting(tmp_path: Path) -> None:
    image, published = image_of(range(TOPICS)), list[MetadataDelta]()

    async def main() -> None:
        log = follower(tmp_path / "data", GatedDisk())
        log.add_listener(lambda delta, _: published.append(delta))
        in_thread = 0

        async def run_in_thread(work: Any) -> None:
            nonlocal in_thread
            in_thread += 1
            await asyncio.to_thread(work)

        log.run_slow_work_with(run_in_thread)
        GatedDisk.gate.clear()
        installing = asyncio.create_task(log.install(SNAPSHOT, encoded(image), lambda: True))
        await until(lambda: in_thread == 1)  # it could not get here if the loop waited for the disk
        assert not published
        assert log.end_offset < SNAPSHOT.end_offset
        assert log.snapshot_ids == []
        GatedDisk.gate.set()
        assert await installing
        assert in_thread == 2  # the file, then the log
        assert log.image == image
        assert [len(delta.topics.changed) for delta in published if delta.topics is not None] == [TOPICS]
        assert (log.start_offset, log.end_offset, log.last_epoch) == (5_000, 5_000, SNAPSHOT.epoch)
        assert log.high_watermark == SNAPSHOT.end_offset
        assert log.snapshot_ids == [SNAPSHOT]
        await log.close()

    run(main)


def test_a_snapshot_of_a_leader_that_was_left_meanwhile_changes_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        log = follower(tmp_path / "data")
        before = log.image
        for followed_turns in (0, 1):  # it leaves the leader while the snapshot is decoded, and while stored
            turns = iter([True] * followed_turns)
            assert not await log.install(
                SNAPSHOT, encoded(image_of(range(TOPICS))), lambda turns=turns: next(turns, False)
            )
            assert log.image is before
            assert log.end_offset < SNAPSHOT.end_offset
        assert log.snapshot_ids == []
        await log.close()

    run(main)


def test_a_damaged_snapshot_is_refused_and_not_stored(tmp_path: Path) -> None:
    async def main() -> None:
        log = follower(tmp_path / "data")
        whole = encoded(image_of(range(3)))
        for damaged in (whole[:-20], whole[:200] + b"?" + whole[201:]):
            with pytest.raises(KafkaError) as refused:
                await log.install(SNAPSHOT, damaged, lambda: True)
            assert refused.value.code is ErrorCode.CORRUPT_MESSAGE
        assert not list(tmp_path.rglob(SNAPSHOT.file_name))
        assert log.error is None
        await log.close()

    run(main)


@pytest.mark.parametrize("known", [range(0), range(TOPICS), range(TOPICS // 2, 2 * TOPICS)])
def test_decoding_and_comparing_pause_after_a_few_records(known: range) -> None:
    image, before = image_of(range(TOPICS)), image_of(known)
    looked_at = TOPICS * (PARTITIONS + 1) + sum(1 for _ in compared(before, image))
    steps, pauses = prepare(SNAPSHOT, encoded(image), Membership(), before), 0
    while True:
        try:
            next(steps)
        except StopIteration as done:
            prepared = done.value
            break
        pauses += 1
    assert pauses >= looked_at // STEP_RECORDS_MAX - 1
    assert prepared.image == image
    assert prepared.delta.apply(image.provenance) == image


def test_nothing_is_compared_for_long_without_a_pause() -> None:
    """Also where nothing changed, and where everything was removed."""
    whole, nothing = image_of(range(TOPICS)), image_of(range(0))
    for before, after in ((whole, whole), (whole, nothing), (nothing, whole)):
        assert sum(1 for _ in compared(before, after)) >= TOPICS
    assert [type(record) for record in difference(whole, whole)] == [FeatureLevelRecord]


def test_a_voter_hears_its_leader_while_it_installs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise it would stand for election, and begin again with the same snapshot after that."""
    monkeypatch.setattr(quorum_fetching, "WAIT_MS", 1)
    heard: list[int] = []

    class Log:
        done: asyncio.Future[bool]

        async def install(self, snapshot: SnapshotId, data: bytes, is_current: Any) -> bool:
            return await self.done

    async def main() -> None:
        log: Any = Log()
        log.done = asyncio.get_running_loop().create_future()
        nothing: Any = None
        fetching = Fetching(log, CLUSTER_ID, nothing, settings_for(tmp_path), nothing, heard.append)
        installing = asyncio.create_task(fetching._install(3, SNAPSHOT, b""))
        await until(lambda: len(heard) > 3)
        assert not installing.done()
        log.done.set_result(True)
        await installing
        assert set(heard) == {3}

    run(main)
