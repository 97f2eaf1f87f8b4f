"""A crash at every step of cleaning: what is there after is the log before, the log after, or between."""

from random import Random

import pytest

from barnabas.records.compression import Compression
from barnabas.records.record import Record
from barnabas.simulation.world.disk import SimulatedDisk, Stopped
from barnabas.storage import Log
from barnabas.storage.logs.context import LogContext

from ..building import NOW_MS
from .histories import (
    DAY_MS,
    SETTINGS,
    Batch,
    End,
    Roll,
    Step,
    all_records,
    clean,
    committed_records,
    last_stable_offset,
    write,
)

NONE, ZSTD = Compression.NONE, Compression.ZSTD


def full_segment(first_key: int) -> list[Step]:
    """More than half of what fits into a segment: two of them are not merged."""
    values = tuple(((first_key + index) % 7, 330) for index in range(5))
    return [Batch(None, False, NONE, values), Batch(None, False, NONE, values), Roll()]


# Three small segments that become one (a transaction is aborted across two of them), two large ones that stay
# alone and lose most of what they have, idempotent producers.
HISTORY: list[Step] = [
    Batch(0, True, NONE, ((1, 10), (2, None))),
    Batch(None, False, ZSTD, ((1, 10), (3, 10), (4, None))),
    Roll(),
    Batch(1, False, NONE, ((5, 10),)),
    End(0, True),
    Roll(),
    Batch(0, True, NONE, ((6, 10),)),
    Batch(2, False, ZSTD, ((3, 10), (6, 1))),
    End(0, False),
    Roll(),
    *full_segment(0),
    *full_segment(1),
    Batch(None, False, NONE, ((1, 10),)),
]
DIRECTORY = "/data/topic-0"


def a_log(disk: SimulatedDisk) -> Log:
    disk.makedirs("/data")
    disk.sync_directory("/")
    log = Log.create(DIRECTORY, SETTINGS, now_ms=NOW_MS, context=LogContext(disk))
    write(log, HISTORY)
    log.sync()
    disk.sync_directory("/data")
    return log


def last_values(records: list[Record]) -> dict[bytes | None, Record]:
    """What the log says, key by key: a tombstone says the same as no record."""
    last = {record.key: record for record in records}
    return {key: record for key, record in last.items() if record.value is not None}


def operations_of_cleaning() -> int:
    disk = SimulatedDisk()
    log = a_log(disk)
    before = disk.operations
    clean(log)
    return disk.operations - before


OPERATIONS = operations_of_cleaning()


def test_there_is_something_to_interrupt() -> None:
    disk = SimulatedDisk()
    log = a_log(disk)
    segments = len(log.segments)
    clean(log)
    assert OPERATIONS > 50
    assert len(log.segments) == segments - 2


@pytest.mark.parametrize("ending", ["killed", "power loss"])
@pytest.mark.parametrize("operation", range(1, OPERATIONS + 1))
def test_nothing_is_lost_whenever_cleaning_stops(operation: int, ending: str) -> None:
    disk = SimulatedDisk()
    log = a_log(disk)
    end_offset, recovery_point, stable = log.end_offset, log.recovery_point, last_stable_offset(log)
    before = committed_records(log)
    producers = {p.producer_id: p.last_sequence for p in log.producers}

    disk.stop_at(disk.operations + operation, Random(operation))
    with pytest.raises(Stopped):
        clean(log)
    disk = disk.after_kill() if ending == "killed" else disk.after_power_loss(Random(operation))

    found = Log.open(
        DIRECTORY,
        SETTINGS,
        recovery_point=recovery_point,
        clean=False,
        now_ms=NOW_MS,
        context=LogContext(disk),
    )
    assert not [name for name in disk.listdir(DIRECTORY) if name.endswith((".cleaned", ".swap", ".deleted"))]
    bases = [segment.base_offset for segment in found.segments]
    assert bases == sorted(set(bases))
    assert (found.end_offset, last_stable_offset(found)) == (end_offset, stable)
    left = committed_records(found)
    assert last_values(left) == last_values(before)
    assert [record for record in left if record not in before] == []
    assert {p.producer_id: p.last_sequence for p in found.producers} == producers

    # And it can be cleaned as if nothing had been.
    clean(found)
    clean(found, now_ms=NOW_MS + 2 * DAY_MS)
    assert last_values(all_records(found)) == last_values(before)
