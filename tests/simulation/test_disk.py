"""The simulated disk keeps synced data, may lose the rest, and stops at a given operation."""

import errno
from collections.abc import Callable
from random import Random

import pytest

from barnabas.runtime.disk import CREATE, READ_ONLY
from barnabas.simulation.world.disk import Failure, SimulatedDisk, Stopped
from barnabas.storage import Log, LogContext, LogSettings

SEEDS = 200
SMALL = LogSettings(segment_bytes=2000, index_interval_bytes=200)


@pytest.fixture
def disk() -> SimulatedDisk:
    disk = SimulatedDisk()
    disk.makedirs("/data")
    disk.sync_directory("/")
    return disk


def after_each_power_loss(make: Callable[[SimulatedDisk], None]) -> list[SimulatedDisk]:
    """What is left of the same history, over many losses."""
    left = []
    for seed in range(SEEDS):
        disk = SimulatedDisk()
        disk.makedirs("/data")
        disk.sync_directory("/")
        make(disk)
        left.append(disk.after_power_loss(Random(seed)))
    return left


def write(disk: SimulatedDisk, path: str, data: bytes, position: int = 0, *, sync: bool = False) -> None:
    descriptor = disk.open(path, CREATE, 0o644)
    disk.pwritev(descriptor, [data], position)
    if sync:
        disk.fsync(descriptor)
    disk.close(descriptor)


def test_a_file_synced_with_its_name_survives_every_power_loss() -> None:
    def make(disk: SimulatedDisk) -> None:
        write(disk, "/data/a", b"kept", sync=True)
        disk.sync_directory("/data")
        write(disk, "/data/a", b"maybe", 4)

    for disk in after_each_power_loss(make):
        assert disk.read("/data/a").startswith(b"kept")


def test_unsynced_data_may_be_lost_kept_or_torn_by_a_power_loss() -> None:
    def make(disk: SimulatedDisk) -> None:
        write(disk, "/data/a", b"", sync=True)
        disk.sync_directory("/data")
        write(disk, "/data/a", b"0123456789")

    found = {disk.read("/data/a") for disk in after_each_power_loss(make)}

    assert {b"", b"0123456789"} < found
    assert found <= {b"0123456789"[:length] for length in range(11)}


def test_pages_reach_the_device_in_any_order() -> None:
    def make(disk: SimulatedDisk) -> None:
        write(disk, "/data/a", b"", sync=True)
        disk.sync_directory("/data")
        write(disk, "/data/a", b"x" * 8192)

    found = [disk.read("/data/a") for disk in after_each_power_loss(make)]

    assert bytes(4096) + b"x" * 4096 in found


def test_a_name_is_durable_when_its_folder_is_synced_and_not_when_the_file_is() -> None:
    def make(disk: SimulatedDisk) -> None:
        write(disk, "/data/a", b"synced", sync=True)

    found = {disk.exists("/data/a") for disk in after_each_power_loss(make)}

    assert found == {True, False}


def test_a_file_is_replaced_as_a_whole_or_not_at_all() -> None:
    def make(disk: SimulatedDisk) -> None:
        disk.replace_file("/data/checkpoint", b"old")
        disk.create("/data/checkpoint.tmp", b"newer", sync=True)
        disk.replace("/data/checkpoint.tmp", "/data/checkpoint")

    assert {disk.read("/data/checkpoint") for disk in after_each_power_loss(make)} == {b"old", b"newer"}


def test_written_data_survives_a_kill(disk: SimulatedDisk) -> None:
    write(disk, "/data/a", b"written")

    assert disk.after_kill().read("/data/a") == b"written"


def test_a_stopped_process_cannot_change_the_disk(disk: SimulatedDisk) -> None:
    descriptor = disk.open("/data/a", CREATE, 0o644)
    after = disk.after_kill()

    with pytest.raises(Stopped):
        disk.pwritev(descriptor, [b"late"], 0)
    disk.close(descriptor)  # of a destructor: nobody is there to hear of it

    assert after.read("/data/a") == b""


def test_a_process_is_stopped_in_place_of_the_operation_that_was_named(disk: SimulatedDisk) -> None:
    heard: list[str] = []
    disk.on_stop = lambda: heard.append("stopped")
    disk.stop_at(disk.operations + 2)

    disk.mkdir("/data/first")
    with pytest.raises(Stopped):
        disk.mkdir("/data/second")

    assert disk.after_kill().listdir("/data") == ["first"]
    assert heard == ["stopped"]


def test_a_write_that_is_stopped_may_arrive_in_part() -> None:
    found = set()
    for seed in range(50):
        disk = SimulatedDisk()
        descriptor = disk.open("/a", CREATE, 0o644)
        disk.stop_at(disk.operations + 1, Random(seed))
        with pytest.raises(Stopped):
            disk.pwritev(descriptor, [b"012", b"345"], 0)
        found.add(disk.after_kill().read("/a"))

    assert found == {b"012345"[:length] for length in range(7)}


def test_a_full_disk_accepts_only_bytes_that_fit(disk: SimulatedDisk) -> None:
    disk.capacity_bytes = 6
    descriptor = disk.open("/data/a", CREATE, 0o644)

    assert disk.pwritev(descriptor, [b"0123", b"4567"], 0) == 6
    with pytest.raises(OSError, match="No space") as refused:
        disk.pwritev(descriptor, [b"67"], 6)

    assert refused.value.errno == errno.ENOSPC


def test_operations_fail_with_the_configured_error(disk: SimulatedDisk) -> None:
    write(disk, "/data/a", b"there")
    disk.failures.append(Failure(frozenset({"read"}), errno.EIO, "/data/"))
    descriptor = disk.open("/", READ_ONLY)
    disk.fsync(descriptor)

    with pytest.raises(OSError) as refused:
        disk.read("/data/a")

    assert refused.value.errno == errno.EIO


def test_a_log_lives_on_a_simulated_disk(disk: SimulatedDisk) -> None:
    log = Log.create("/data/topic-0", SMALL, now_ms=0, context=LogContext(disk))
    log.close()

    opened = Log.open("/data/topic-0", SMALL, now_ms=0, clean=True, context=LogContext(disk.after_kill()))

    assert opened.end_offset == 0
