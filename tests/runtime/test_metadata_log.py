"""The metadata log on a real disk: committed records are there after a stop, a kill and damage."""

from __future__ import annotations

import asyncio
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.partitions import metadata_partition
from barnabas.broker.partitions.metadata_partition import open_metadata_log
from barnabas.metadata.partitions import RECOVERING
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.log_records.metadata import BeginTransactionRecord, ProducerIdsRecord
from barnabas.quorum import metadata_log as driver
from barnabas.quorum.quorum_fetching import Fetching
from barnabas.raft import election_state
from barnabas.raft.election import elected
from barnabas.raft.log_ends import EpochEnd, compare
from barnabas.runtime.disk import Disk
from barnabas.storage.segments.settings import LogSettings
from barnabas.testing.waiting import until
from runtime.nodes import CLUSTER_ID, Node, run, settings_for

METADATA = "__cluster_metadata-0"


@pytest.fixture
def node(tmp_path: Path) -> Node:
    made = Node(settings_for(tmp_path / "data"))
    made.format()
    return made


def again(node: Node) -> Node:
    """The same folder in a new process."""
    return Node(node.settings)


def folder(node: Node) -> Path:
    return Path(node.settings.metadata_log_dir) / METADATA


def test_a_new_node_elects_itself_registers_and_is_unfenced(node: Node) -> None:
    async def main() -> None:
        await node.start()
        image = node.controller.image
        assert image.features.metadata_level == 30
        assert not image.cluster.brokers[1].fenced
        assert list(image.cluster.controllers) == [1]
        assert image.configs.cluster_default == {"min.insync.replicas": "1"}
        assert node.controller.leader_id == 1
        assert node.log.high_watermark == node.log.end_offset
        await node.stop()

    run(main)


def test_topics_configs_and_producer_ids_are_there_after_a_restart(node: Node) -> None:
    async def main() -> None:
        await node.start()
        await node.create("orders", 3, retention_ms="1000")
        before = node.controller.image
        epoch = await node.stop()
        second = await again(node).start(previous_epoch=epoch)
        after = second.controller.image
        assert after.configs == before.configs
        assert list(after.topics.by_name) == ["orders"]
        for partition in after.topics.by_name["orders"].partitions.values():
            assert (partition.leader, partition.isr, partition.leader_epoch) == (1, (1,), 2)
            assert partition.leader_recovery_state != RECOVERING
        assert after.provenance.epoch == 2
        await second.stop()

    run(main)


def test_records_that_got_a_response_are_there_after_a_kill(node: Node) -> None:
    async def main() -> None:
        await node.start()
        await node.create("orders", 2)
        await node.kill()
        second = await again(node).start()
        for partition in second.controller.image.topics.by_name["orders"].partitions.values():
            assert (partition.leader, partition.isr) == (1, (1,))
        await second.stop()

    run(main)


def test_a_torn_tail_is_cut_off(node: Node) -> None:
    async def main() -> None:
        await node.start()
        await node.create("orders")
        await node.kill()
        with (folder(node) / "00000000000000000000.log").open("ab") as log:
            log.write(b"\x00\x00\x00\x00\x00\x00\x00\x63\x00\x00\x01\x00 half a batch")
        second = await again(node).start()
        assert list(second.controller.image.topics.by_name) == ["orders"]
        assert (await second.create("more")).error_code == ErrorCode.NONE
        await second.stop()

    run(main)


def test_decisions_made_at_the_same_time_share_a_sync(tmp_path: Path) -> None:
    class CountingDisk(Disk):
        syncs = 0

        def fsync(self, descriptor: int) -> None:  # type: ignore[override]
            CountingDisk.syncs += 1
            Disk.fsync(descriptor)

    async def main() -> None:
        node = Node(settings_for(tmp_path / "data"), CountingDisk())
        node.format()
        await node.start()
        before = CountingDisk.syncs
        results = await asyncio.gather(*(node.create(f"t{number}") for number in range(20)))
        assert {result.error_code for result in results} == {ErrorCode.NONE}
        assert CountingDisk.syncs - before <= 2
        await node.stop()

    run(main)


def test_listeners_get_changes_in_order_and_only_when_they_are_committed(node: Node) -> None:
    async def main() -> None:
        await node.start()
        node.sync_in_threads()
        await asyncio.gather(*(node.create(f"t{number}") for number in range(5)))
        created = [
            topic.name for delta, _ in node.published if delta.topics for topic in delta.topics.created
        ]
        assert created == [f"t{number}" for number in range(5)]
        offsets = [image.provenance.offset for _, image in node.published]
        assert offsets == sorted(offsets)
        assert offsets[-1] < node.log.high_watermark
        await node.stop()

    run(main)


def test_a_failing_sync_refuses_everything_that_waits(tmp_path: Path) -> None:
    class FailingDisk(Disk):
        broken = False

        def fsync(self, descriptor: int) -> None:  # type: ignore[override]
            if FailingDisk.broken:
                raise OSError(5, "Input/output error")
            Disk.fsync(descriptor)

    async def main() -> None:
        node = Node(settings_for(tmp_path / "data"), FailingDisk())
        node.format()
        await node.start()
        FailingDisk.broken = True
        results = await asyncio.gather(node.create("a"), node.create("b"))
        assert {result.error_code for result in results} == {ErrorCode.KAFKA_STORAGE_ERROR}
        assert (await node.create("c")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert "a" not in node.controller.image.topics.by_name
        await node.kill()
        FailingDisk.broken = False

    run(main)


def test_the_vote_is_durable_before_anything_is_written_in_its_epoch(node: Node) -> None:
    async def main() -> None:
        for epoch in (1, 2, 3):
            started = await again(node).start()
            text = (folder(node) / "quorum-state").read_text()
            assert election_state.decode(text).epoch == epoch
            await started.kill()

    run(main)


def test_a_first_leader_that_lost_truncates_its_whole_log(tmp_path: Path) -> None:
    """Neither log has an epoch of the other: they agree only up to the empty log of formatting."""

    def first_of(node_id: int, epoch: int) -> driver.MetadataLog:
        voters = "1@127.0.0.1:9093,2@127.0.0.1:9094"
        name = {"node_id": str(node_id), "controller_quorum_voters": voters}
        node = Node(settings_for(tmp_path / str(node_id), **name))
        node.format()
        log = open_metadata_log(node.settings, bytes([node_id]) * 16, node.context, node.clock)
        log.lead(elected(epoch, log.local, log.membership, (1, 2)))
        return log

    async def main() -> None:
        loser, winner = first_of(1, epoch=1), first_of(2, epoch=2)
        await asyncio.gather(loser.sync(), winner.sync())
        loser.renounce(KafkaError(ErrorCode.NOT_CONTROLLER))
        agreed = compare(
            loser.end_offset, loser.last_epoch, winner.start_offset, winner.snapshot_ids, winner.end_of_epoch
        )
        assert agreed.diverging == EpochEnd(0, 0)
        nothing: Any = None
        fetching = Fetching(loser, CLUSTER_ID, nothing, settings_for(tmp_path), nothing, nothing)
        fetching._truncate(*agreed.diverging)
        assert (loser.end_offset, loser.last_epoch) == (0, 0)
        assert not compare(0, 0, winner.start_offset, winner.snapshot_ids, winner.end_of_epoch).diverging
        loser.replicate(winner.read(0, 1 << 20))
        assert (loser.end_offset, loser.last_epoch) == (winner.end_offset, 2)
        await asyncio.gather(loser.close(), winner.close())

    run(main)


def test_an_unfinished_bootstrap_begins_again(node: Node) -> None:
    """A crash between the first records of a cluster leaves an open transaction; it is aborted."""

    async def main() -> None:
        await node.start()
        await node.kill()
        shutil.rmtree(folder(node))
        second = again(node)
        # The log of a controller that died inside its first transaction.
        log = driver.MetadataLog.append
        written = []

        def append_begin_only(self: driver.MetadataLog, records: list[object]) -> int:
            written.extend(records)
            if isinstance(records[0], BeginTransactionRecord):
                return log(self, records[:3])  # type: ignore[arg-type]
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "died")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(driver.MetadataLog, "append", append_begin_only)
            with pytest.raises(KafkaError):
                await second.start()
            await asyncio.sleep(0)
        third = await again(node).start()
        assert third.controller.image.features.metadata_level == 30
        assert (await third.create("t")).error_code == ErrorCode.NONE
        await third.stop()

    run(main)


def test_a_snapshot_replaces_the_log_before_it(node: Node) -> None:
    async def main() -> None:
        await node.start()
        await node.create("orders", 3, retention_ms="1000")
        await node.log.snapshot()
        await node.create("later")
        before = node.controller.image
        await node.kill()
        [snapshot] = folder(node).glob("*.checkpoint")
        # With the snapshot alone the records after it are missing, the others are not.
        for segment in folder(node).glob("*.log"):
            segment.unlink()
        second = await again(node).start()
        assert list(second.controller.image.topics.by_name) == ["orders"]
        assert second.controller.image.configs == before.configs
        assert second.log.end_offset > int(snapshot.name[:20])
        await second.stop()

    run(main)


def test_a_damaged_snapshot_is_skipped(node: Node) -> None:
    async def main() -> None:
        await node.start()
        await node.create("orders")
        await node.log.snapshot()
        before = node.controller.image
        await node.kill()
        [snapshot] = folder(node).glob("*.checkpoint")
        snapshot.write_bytes(snapshot.read_bytes()[:-10])
        second = await again(node).start()
        assert list(second.controller.image.topics.by_name) == list(before.topics.by_name)
        await second.stop()

    run(main)


def test_an_unfinished_snapshot_is_removed(node: Node) -> None:
    async def main() -> None:
        await node.start()
        await node.kill()
        part = folder(node) / "00000000000000000005-0000000001.checkpoint.part"
        part.write_bytes(b"half")
        second = await again(node).start()
        assert not part.exists()
        await second.stop()

    run(main)


def test_snapshots_are_taken_when_enough_was_written(tmp_path: Path) -> None:
    async def main() -> None:
        settings = settings_for(tmp_path / "data", metadata_log_max_record_bytes_between_snapshots="2000")
        node = Node(settings)
        node.format()
        await node.start()
        node.sync_in_threads()
        await node.create("large", 50)
        await until(lambda: list(folder(node).glob("*.checkpoint")))
        await node.stop()

    run(main)


def test_an_idle_log_gets_no_op_records(tmp_path: Path) -> None:
    async def main() -> None:
        node = Node(settings_for(tmp_path / "data", metadata_max_idle_interval_ms="20"))
        node.format()
        await node.start()
        before = node.log.high_watermark
        published = len(node.published)
        await until(lambda: node.log.high_watermark >= before + 3)
        assert len(node.published) == published
        assert node.controller.image.provenance.offset > before
        await node.stop()
        second = await again(node).start()
        assert second.log.high_watermark > before + 3
        await second.stop()

    run(main)


def test_a_large_change_is_one_batch_up_to_what_a_request_may_write(node: Node) -> None:
    async def main() -> None:
        await node.start()
        leader = node.log.leader
        assert leader is not None
        first = node.log.end_offset
        node.log.append([ProducerIdsRecord(next_producer_id=number) for number in range(25_000)])
        assert node.log.end_offset == first + 25_000
        waiting = node.log.committed(node.log.end_offset)
        assert waiting is not None
        await waiting
        await node.kill()
        second = await again(node).start()
        assert second.controller.image.next_producer_id == 24_999
        await second.stop()

    run(main)


def test_a_dynamic_quorum_of_one_writes_its_voters_to_the_log_once(tmp_path: Path) -> None:
    async def main() -> None:
        node = Node(settings_for(tmp_path / "data", controller_quorum_bootstrap_servers="127.0.0.1:9093"))
        node.format(standalone=True)
        await node.start()
        assert node.controller.kraft_version == 1
        assert node.log.membership.offset == 2
        await node.stop()
        second = await again(node).start()
        assert second.log.membership.voters == node.log.membership.voters
        assert second.log.membership.offset < node.log.end_offset
        await second.stop()

    run(main)


def test_an_image_survives_any_number_of_restarts(node: Node) -> None:
    async def main() -> None:
        await node.start()
        await node.create("orders", 2, cleanup_policy="compact")
        epoch = await node.stop()
        before = node.controller.image
        for _ in range(3):
            next_node = await again(node).start(previous_epoch=epoch)
            epoch = await next_node.stop()
        after = next_node.controller.image
        assert after.configs == before.configs
        assert list(after.topics.by_name) == list(before.topics.by_name)

    run(main)


def test_a_long_idle_time_is_not_read_again_at_the_next_start(node: Node) -> None:
    async def main() -> None:
        await node.start()
        await node.create("orders", 2)
        for _ in range(1500):
            node.controller._write_no_op()
        await node.stop()
        segments = sorted(folder(node).glob("*.log"))
        snapshots = sorted(folder(node).glob("*.checkpoint"))
        assert len(segments) == 2
        assert segments[-1].stem == snapshots[-1].stem[:20]
        second = await again(node).start()
        assert second.log.loaded.bytes_since_snapshot == 0
        assert list(second.controller.image.topics.by_name) == ["orders"]
        await second.stop()

    run(main)


def test_a_log_of_many_segments_is_read_whole(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        metadata_partition, "LogSettings", lambda **_: LogSettings(segment_bytes=4096, segment_ms=10**12)
    )

    async def main() -> None:
        await node.start()
        for number in range(60):
            await node.create(f"t{number}")
        await node.kill()
        assert len(list(folder(node).glob("*.log"))) > 2
        second = await again(node).start()
        assert len(second.controller.image.topics.by_name) == 60
        await second.stop()

    run(main)


def test_nothing_gets_a_response_or_is_published_before_it_is_durable(tmp_path: Path) -> None:
    class SlowDisk(Disk):
        may_sync = threading.Event()

        def fsync(self, descriptor: int) -> None:  # type: ignore[override]
            SlowDisk.may_sync.wait(30)
            Disk.fsync(descriptor)

    async def main() -> None:
        SlowDisk.may_sync.set()
        node = Node(settings_for(tmp_path / "data"), SlowDisk())
        node.format()
        await node.start()
        node.sync_in_threads()
        published = len(node.published)
        SlowDisk.may_sync.clear()
        answers = [asyncio.create_task(node.create(f"t{number}")) for number in range(3)]
        done, _ = await asyncio.wait(answers, timeout=0.2)
        assert not done
        assert len(node.published) == published
        assert "t0" not in node.controller.image.topics.by_name
        SlowDisk.may_sync.set()
        assert {(await answer).error_code for answer in answers} == {ErrorCode.NONE}
        assert list(node.controller.image.topics.by_name) == ["t0", "t1", "t2"]
        await node.stop()

    run(main)


def test_segments_older_than_every_snapshot_are_deleted(tmp_path: Path) -> None:
    settings = settings_for(
        tmp_path / "data", metadata_max_retention_bytes="3000", metadata_log_segment_bytes="8388608"
    )
    node = Node(settings)
    node.format()

    async def main() -> None:
        await node.start()
        for number in range(6):
            await node.create(f"topic-{number}")
            node.log._log.roll()
            await node.log.snapshot()
        snapshots = sorted(folder(node).glob("*.checkpoint"))
        segments = sorted(folder(node).glob("*.log"))
        assert len(snapshots) == 1
        assert int(segments[0].stem) <= int(snapshots[0].name[:20])
        assert len(segments) <= 2
        assert list(folder(node).glob("*.log.deleted"))
        await node.stop()
        second = again(node)
        await second.start()
        assert set(second.controller.image.topics.by_name) == {f"topic-{number}" for number in range(6)}
        await second.stop()

    run(main)
