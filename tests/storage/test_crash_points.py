"""A crash at every write, sync and rename of a log dir: the recovered logs are consistent, and no durable
record is lost.

The life is played once to count its operations, then once for each of them, stopping there: as after kill -9
(what was written is there) and as after a loss of power (what was not synced may be there, in part or not at
all).
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random

import pytest

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.records.batch import headers, validate
from barnabas.records.control import EndMarker, build_end_marker
from barnabas.runtime.disk import Disk
from barnabas.simulation.world.disk import KINDS, SimulatedDisk, Stopped
from barnabas.storage import Log, LogContext, LogDirs, LogSettings, StorageError, TopicPartition
from barnabas.storage.dirs import future_logs
from barnabas.storage.dirs.formatting import format_log_dir
from barnabas.storage.encryption.encrypted_disk import EncryptedDisk
from barnabas.storage.encryption.frames import MAGIC
from barnabas.storage.encryption.key_ring import KeyRing
from barnabas.storage.files.meta_properties import MetaProperties
from barnabas.storage.logs.copying import complete, copy_some

from .building import NOW_MS, append, append_marker, batch_at, read_all

DAY_MS = 24 * 3600 * 1000
SETTINGS = LogSettings(
    segment_bytes=700, index_interval_bytes=100, retention_ms=7 * DAY_MS, segment_ms=1000 * DAY_MS
)
A0, B0 = TopicPartition("a", 0), TopicPartition("b", 0)
TOPIC_IDS = {"a": b"a" * 16, "b": b"b" * 16}
PATHS = ["/one", "/two"]


@dataclass
class Promises:
    """What this life has told others so far of partition a-0."""

    appended: dict[int, bytes] = field(default_factory=dict)  # by base offset, staged included
    written_to: int = 0  # a consumer may have read below it
    synced_to: int = 0  # durable below it
    start_least: int = 0  # records below are gone for good
    start_most: int = 0  # records from here on were never given up
    is_made: bool = False  # the partition's folder is durable
    b_deleted: bool = False


def settings_of(topic: str) -> LogSettings:
    return SETTINGS


def formatted() -> SimulatedDisk:
    disk = SimulatedDisk(now_ms=lambda: NOW_MS)
    context = LogContext(disk, rng=Random(7))
    known: MetaProperties | None = None
    for path in PATHS:
        known = format_log_dir(context, path, known.cluster_id if known else "cluster-of-this-test", 1)
    disk.sync_directory("/")
    return disk


class OneDirLeft(Exception):
    """A dir failed while it was loaded: this life has nothing to tell."""


def opened(disk: Disk, *, is_stray: Callable[[Log], bool] = lambda log: False) -> LogDirs:
    dirs = LogDirs.open(PATHS, node_id=1, context=LogContext(disk, rng=Random(11)))
    dirs.load(settings_of, now_ms=NOW_MS, is_stray=is_stray)
    if len(dirs.online()) < len(PATHS):
        dirs.abandon()
        raise OneDirLeft
    return dirs


def create(dirs: LogDirs, where: TopicPartition, directory: int = 0) -> Log:
    return dirs.create(
        where, SETTINGS, topic_id=TOPIC_IDS[where.topic], now_ms=NOW_MS, directory_id=dirs.dirs[directory].id
    )


# -- one life ----------------------------------------------------------------------------------------


def write(log: Log, promises: Promises, age_days: float, count: int = 3, epoch: int = 0) -> None:
    batches = []
    for _ in range(count):
        offset = log.end_offset + sum(2 for _ in batches)
        stamp = NOW_MS - int(age_days * DAY_MS)
        batch = batch_at(offset, 2, timestamp=stamp, epoch=epoch, producer_id=5, sequence=offset)
        promises.appended[offset] = bytes(batch)
        batches.append(batch)
    for batch in batches:
        append(log, batch)
    promises.written_to = log.written_offset


def sync(log: Log, promises: Promises) -> None:
    log.sync()
    promises.synced_to, promises.is_made = log.recovery_point, True


def checkpoint(dirs: LogDirs, promises: Promises) -> None:
    dirs.checkpoint_recovery_points()
    dirs.checkpoint_log_start_offsets()
    dirs.checkpoint_high_watermarks({A0: promises.written_to})


def delete_old(log: Log, promises: Promises, now_ms: int) -> None:
    from barnabas.storage.logs import retention

    count = retention.count_expired(log, now_ms, log.end_offset)
    segments = log.segments
    behind = segments[count].base_offset if count < len(segments) else log.end_offset
    promises.start_most = max(log.log_start_offset, behind)
    retention.delete_detached(log, retention.detach_oldest(log, count), now_ms)


def a_life(disk: Disk, promises: Promises) -> None:
    """Appends, rolls, syncs, checkpoints, retention, deleted records, a deleted partition, restarts."""
    dirs = opened(disk)
    try:
        log = create(dirs, A0)
        write(log, promises, 12)
        sync(log, promises)
        write(log, promises, 10, epoch=1)
        transaction(log, promises)
        write(log, promises, 6, epoch=2)
        checkpoint(dirs, promises)
        create(dirs, B0)
        sync(log, promises)
        write(log, promises, 2, epoch=3)
        delete_old(log, promises, NOW_MS)
        dirs.context.graveyard.remove_due(NOW_MS + DAY_MS)
        write(log, promises, 1, count=1, epoch=3)
        dirs.delete(B0, now_ms=NOW_MS)
        start = promises.start_most = log.log_start_offset + 3
        log.advance_log_start(start)
        checkpoint(dirs, promises)
        promises.start_least, promises.b_deleted = start, True
        dirs.context.graveyard.remove_due(NOW_MS + DAY_MS)
        sync(log, promises)
        dirs.close(broker_epoch=3)
        promises.synced_to = promises.written_to
    finally:
        dirs.abandon()
    dirs = opened(disk)
    try:
        log = dirs.logs[A0]
        write(log, promises, 0, epoch=4)
        delete_old(log, promises, NOW_MS)
        sync(log, promises)
    finally:
        dirs.abandon()


def transaction(log: Log, promises: Promises) -> None:
    offset = log.end_offset
    batch = batch_at(offset, producer_id=9, sequence=offset, transactional=True, epoch=1)
    promises.appended[offset] = bytes(batch)
    append(log, batch)
    marker_at = log.end_offset
    marker = build_end_marker(
        EndMarker(True, 0), 9, 0, NOW_MS, base_offset=marker_at, partition_leader_epoch=1
    )
    promises.appended[marker_at] = bytes(marker)
    append_marker(log, 9, aborted=True, epoch=1)
    promises.written_to = log.written_offset


def a_move(disk: Disk, promises: Promises) -> None:
    """A partition is copied to the other dir and takes its place there, while it is written to."""
    dirs = opened(disk)
    try:
        log = create(dirs, A0)
        write(log, promises, 1)
        sync(log, promises)
        checkpoint(dirs, promises)
        copy = future_logs.create(dirs, log, dirs.dirs[1], NOW_MS)
        copy_some(log, copy, 300, NOW_MS)
        write(log, promises, 1)
        sync(log, promises)
        while copy_some(log, copy, 300, NOW_MS):
            pass
        copy.sync()
        promises_of_metadata[A0] = dirs.dirs[1].id
        complete(log, copy)
        log = future_logs.promote(dirs, A0, NOW_MS)
        write(log, promises, 1)
        future_logs.sync_name(dirs, log)
        dirs.context.graveyard.remove_due(NOW_MS + DAY_MS)
        sync(log, promises)
        checkpoint(dirs, promises)
        dirs.close()
    finally:
        dirs.abandon()


promises_of_metadata: dict[TopicPartition, bytes] = {}
"""Where the metadata says that partitions lie; it survives everything."""


# -- what must be true afterwards --------------------------------------------------------------------


def come_back(disk: Disk) -> LogDirs:
    """A start as the broker makes it."""

    def is_stray(log: Log) -> bool:
        assigned = promises_of_metadata.get(log.topic_partition)
        if assigned is None or log.directory.endswith("-future"):
            return False
        there = dirs.dir_with_id(assigned)
        assert there is not None
        path = f"{there.path}/{log.topic_partition}"
        return path != log.directory and disk.exists(path)

    dirs = LogDirs.open(PATHS, node_id=1, context=LogContext(disk, rng=Random(13)))
    dirs.load(settings_of, now_ms=NOW_MS, is_stray=is_stray)
    future_logs.resolve_leftovers(dirs, promises_of_metadata.get, NOW_MS)
    return dirs


def check(disk: SimulatedDisk, promises: Promises, *, lost_power: bool, where: str) -> None:
    dirs = come_back(disk)
    try:
        assert not [each.failure for each in dirs.dirs if each.failure], where
        log = dirs.logs.get(A0)
        if log is None:
            assert not promises.is_made and (lost_power or promises.written_to == 0), where
            return
        check_log(log, promises, lost_power=lost_power, where=where)
        if promises.b_deleted:
            assert B0 not in dirs.logs, where
        before = read_all(log)
        log.configure(SETTINGS)
        append(log, batch_at(log.end_offset, 2, epoch=9))
        more = read_all(log)
        assert more[:-1] == before, where
        dirs.close()
    finally:
        dirs.abandon()
    dirs = come_back(disk)
    try:
        assert dirs.dirs[0].is_clean, where
        assert read_all(dirs.logs[A0]) == more, where
    finally:
        dirs.abandon()


def check_log(log: Log, promises: Promises, *, lost_power: bool, where: str) -> None:
    promised_to = promises.synced_to if lost_power else promises.written_to
    assert log.end_offset >= min(promised_to, max(promises.appended, default=0) + 2), where
    assert log.end_offset >= promised_to, f"{where}: ends at {log.end_offset}, {promised_to} was promised"
    assert promises.start_least <= log.log_start_offset <= promises.start_most, where
    expected = [
        data
        for offset, data in sorted(promises.appended.items())
        if offset < log.end_offset and end_of(data) > log.log_start_offset
    ]
    assert read_all(log) == expected, where
    for data in expected:
        validate(data)
    check_indexes(log, where)
    ends = [segment.base_offset for segment in log.segments]
    assert ends == sorted(set(ends)), where
    latest = max(
        (header.partition_leader_epoch for data in expected for _, header in headers(data)), default=-1
    )
    assert log.epochs.latest_epoch == latest, where
    sequences = [
        header.last_sequence
        for data in expected
        for _, header in headers(data)
        if header.producer_id == 5 and not header.is_control
    ]
    if sequences:
        state = log.producers.get(5)
        assert state is not None and state.last_sequence == sequences[-1], where
    assert (
        log.producers.first_undecided_offset() is None or lost_power or promises.written_to < log.end_offset
    ), where


def end_of(data: bytes) -> int:
    return max(header.next_offset for _, header in headers(data))


def check_indexes(log: Log, where: str) -> None:
    """Every offset is found, by index and by time."""
    for offset in range(log.log_start_offset, log.end_offset):
        data = log.read_cold(offset, 1).read()
        [(_, header)] = list(headers(data))
        assert header.base_offset <= offset <= header.last_offset, where
    for segment in log.segments:
        timestamp, _ = segment.largest_timestamp()
        stamps = [header.max_timestamp for _, header in segment.headers()]
        assert timestamp == max(stamps, default=-1), f"{where}: {segment} {timestamp} {stamps}"


# -- the tests ---------------------------------------------------------------------------------------

Life = Callable[[Disk, Promises], None]


def play(life: Life, stop_at: int) -> tuple[SimulatedDisk, Promises]:
    """A life that ends at an operation; 0 for one that does not."""
    promises_of_metadata.clear()
    disk, promises = formatted(), Promises()
    disk.operations = 0
    disk.stop_at(stop_at, torn=Random(stop_at))
    try:
        life(disk, promises)
    except Stopped:
        assert stop_at
    return disk, promises


def count_operations(life: Life) -> int:
    return play(life, 0)[0].operations


@pytest.mark.parametrize("life", [a_life, a_move])
@pytest.mark.parametrize("lost_power", [False, True], ids=["killed", "without power"])
def test_a_crash_at_every_operation_loses_nothing_that_was_promised(
    life: Life, lost_power: bool, request: pytest.FixtureRequest
) -> None:
    seeds = 3 if lost_power and request.config.getoption("--long") else 1
    for stop_at in range(1, count_operations(life) + 1):
        for seed in range(seeds):
            disk, promises = play(life, stop_at)
            after = disk.after_power_loss(Random(seed * 1000 + stop_at)) if lost_power else disk.after_kill()
            check(after, promises, lost_power=lost_power, where=f"stopped at {stop_at}, seed {seed}")


@pytest.mark.parametrize("life", [a_life, a_move])
def test_a_loss_of_power_on_an_encrypted_disk_loses_nothing_either(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    def encrypted_context(disk: Disk, rng: Random) -> LogContext:
        rings = {path: KeyRing(path, {1: path.encode().rjust(32)}, 1) for path in PATHS}
        return plain_context(EncryptedDisk(disk, rings), rng=rng)

    plain_context = LogContext
    monkeypatch.setattr(sys.modules[__name__], "LogContext", encrypted_context)
    for stop_at in range(1, count_operations(life) + 1, 2):
        disk, promises = play(life, stop_at)
        after = disk.after_power_loss(Random(stop_at))
        check(after, promises, lost_power=True, where=f"stopped at {stop_at}")
    whole, _ = play(life, 0)
    segments = [
        whole.read(f"{path}/{folder}/{name}")
        for path in PATHS
        for folder in whole.subdirectories(path)
        for name, size in whole.sizes(f"{path}/{folder}").items()
        if size and name.endswith(".log")
    ]
    assert segments
    assert all(content.startswith(MAGIC) for content in segments)


@pytest.mark.parametrize("lost_power", [False, True], ids=["killed", "without power"])
def test_a_crash_while_recovering_is_recovered_from(lost_power: bool) -> None:
    for stop_at in range(20, count_operations(a_life), 31):
        again_at = 0
        while True:
            again_at += 1
            disk, promises = play(a_life, stop_at)
            rng = Random(stop_at)
            recovering = disk.after_power_loss(rng) if lost_power else disk.after_kill()
            recovering.stop_at(again_at, torn=Random(again_at))
            dirs = None
            try:
                dirs = come_back(recovering)
                break  # recovery had fewer operations than that
            except Stopped:
                pass
            finally:
                if dirs is not None:
                    dirs.abandon()
            after = recovering.after_power_loss(rng) if lost_power else recovering.after_kill()
            where = f"stopped at {stop_at}, and at {again_at} of the recovery"
            check(after, promises, lost_power=lost_power, where=where)


class FlakyDisk(SimulatedDisk):
    """From an operation on, everything of its kind fails: reads and writes counted together."""

    fails_from = -1
    number = errno.EIO
    asked = 0
    kinds: frozenset[str] = frozenset()

    def _check(self, kind: str, path: str) -> None:
        super()._check(kind, path)
        self.asked += 1
        if self.asked == self.fails_from:
            self.kinds = KINDS if self.number == errno.EIO else KINDS - {"read"}
        if kind in self.kinds:
            raise OSError(self.number, "no luck", path)


@pytest.mark.parametrize("number", [errno.EIO, errno.EROFS, errno.ENOSPC])
@pytest.mark.parametrize("life", [a_life, a_move])
def test_a_disk_that_fails_at_any_operation_is_an_error_with_a_code_and_loses_nothing(
    life: Life, number: int
) -> None:
    def play_on(fails_from: int) -> tuple[FlakyDisk, Promises]:
        promises_of_metadata.clear()
        disk, promises = FlakyDisk(formatted().root, now_ms=lambda: NOW_MS), Promises()
        disk.fails_from, disk.number = fails_from, number
        try:
            life(disk, promises)
        except KafkaError as error:
            assert error.code == ErrorCode.KAFKA_STORAGE_ERROR
        except StorageError:
            pass  # nothing that can be used is left, or it cannot be used at all
        except OneDirLeft:
            pass
        return disk, promises

    last = play_on(0)[0].asked
    for fails_from in range(1, last + 1, 1 if number == errno.EIO else 7):
        disk, promises = play_on(fails_from)
        repaired = SimulatedDisk(disk.root, now_ms=lambda: NOW_MS)
        check(repaired, promises, lost_power=False, where=f"failed from {fails_from} on")


def test_a_full_disk_is_no_crash_and_loses_nothing() -> None:
    """Every operation in turn finds no room; the log says so, and after more room it goes on."""
    disk = formatted()
    dirs = opened(disk)
    log = create(dirs, A0)
    promises = Promises()
    write(log, promises, 1)
    log.sync()
    disk.capacity_bytes = disk.used_bytes() + 100
    with pytest.raises(KafkaError):
        write(log, replace(promises, appended={}), 1, count=5)
    disk.capacity_bytes = 1 << 40
    dirs.abandon()
    again = come_back(disk)
    assert read_all(again.logs[A0])[:3] == [promises.appended[offset] for offset in (0, 2, 4)]
    again.abandon()
