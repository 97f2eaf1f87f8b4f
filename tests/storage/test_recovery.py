"""What comes back after a crash: a prefix of what was written, never less than what was durable."""

import shutil
import struct
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.records.batch import BatchHeader
from barnabas.storage import Log, LogSettings, StorageError

from .building import NOW_MS, SMALL, append, append_marker, batch_at, files, fill, read_all

Reopen = Callable[..., Log]
INDEX_FILES = (".index", ".timeindex", ".txnindex", ".log")


def contents(directory: str) -> dict[str, bytes]:
    """The files of all segments that have something in them."""
    found = files(directory)
    return {
        name: data for name, data in found.items() if name.endswith(INDEX_FILES) and found[f"{name[:20]}.log"]
    }


def test_recovery_rebuilds_the_files_that_closing_would_have_left(directory: str, tmp_path: Path) -> None:
    log = Log.create(directory, SMALL, now_ms=NOW_MS)
    fill(log, 100)
    crashed = str(tmp_path / "crashed-0")
    shutil.copytree(directory, crashed)
    log.close()

    Log.open(crashed, SMALL, recovery_point=0, now_ms=NOW_MS)
    assert contents(crashed) == contents(directory)


def test_a_torn_batch_is_cut_off(log: Log, reopen: Reopen) -> None:
    appended = fill(log, 5)
    path = Path(log.active.path)
    path.write_bytes(path.read_bytes()[:-3])

    again = reopen()
    assert again.end_offset == 4
    assert read_all(again) == appended[:4]
    assert again.active.size == path.stat().st_size == sum(map(len, appended[:4]))


def test_a_damaged_batch_ends_the_log_and_later_segments_go(log: Log, reopen: Reopen) -> None:
    appended = fill(log, 100)
    segment = log.segments[1]
    path = Path(segment.path)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)

    again = reopen()
    assert again.end_offset == log.segments[2].base_offset - 1
    assert read_all(again) == appended[: again.end_offset]
    assert [s.base_offset for s in again.segments] == [0, segment.base_offset]
    assert {int(name[:20]) for name in files(log.directory) if name[0] == "0"} == {
        0,
        segment.base_offset,
        again.end_offset,  # the snapshot
    }


def test_damage_below_the_recovery_point_is_not_looked_for(log: Log, reopen: Reopen) -> None:
    fill(log, 100)
    path = Path(log.segments[0].path)
    path.write_bytes(b"\x00" * len(path.read_bytes()))

    assert reopen(recovery_point=log.active.base_offset).end_offset == 100


def test_preallocated_zeros_are_no_batches(directory: str) -> None:
    settings = LogSettings(segment_bytes=5000, preallocate=True)
    log = Log.create(directory, settings, now_ms=NOW_MS)
    appended = fill(log, 10)

    again = Log.open(directory, settings, now_ms=NOW_MS)
    assert read_all(again) == appended
    assert again.end_offset == 10


def test_index_files_full_of_zeros_are_rebuilt(log: Log, reopen: Reopen) -> None:
    """Apache Kafka maps index files of their full size; a crash leaves them so."""
    appended = fill(log, 15)
    log.close()
    expected = contents(log.directory)
    for segment in log.segments:
        Path(segment.path_of(".index")).write_bytes(bytes(80 * 8))
        Path(segment.path_of(".timeindex")).write_bytes(bytes(80 * 12))

    assert read_all(reopen()) == appended
    assert contents(log.directory) == expected


@pytest.mark.parametrize(
    "damage",
    [b"", bytes(80 * 8), b"\xff" * 80, b"\x00\x00\x00\x01\x00\x00"],
    ids=["empty", "zeros", "ones", "odd length"],
)
def test_a_closed_log_with_a_wrong_index_is_still_read_right(log: Log, reopen: Reopen, damage: bytes) -> None:
    appended = fill(log, 100)
    log.close()
    for segment in log.segments:
        Path(segment.path_of(".index")).write_bytes(damage)
        Path(segment.path_of(".timeindex")).unlink()

    again = reopen(clean=True, recovery_point=100)
    assert again.offset_for_timestamp(NOW_MS + 50) == (NOW_MS + 50, 50, 0)
    assert read_all(again) == appended


def test_producers_come_back_from_snapshot_and_batches(log: Log, reopen: Reopen) -> None:
    for i in range(100):
        append(log, batch_at(i, producer_id=7, sequence=i))

    again = reopen(recovery_point=log.segments[3].base_offset)
    state = again.producers.get(7)
    assert state is not None
    assert (state.last_sequence, state.last_offset) == (99, 99)
    assert again.producers.end_offset == 100


def test_a_damaged_snapshot_is_replaced_by_the_one_before(log: Log, reopen: Reopen) -> None:
    for i in range(100):
        append(log, batch_at(i, producer_id=7, sequence=i))
    point = log.segments[3].base_offset
    Path(log.directory, f"{point:020d}.snapshot").write_bytes(b"nonsense")

    state = reopen(recovery_point=point).producers.get(7)
    assert state is not None
    assert state.last_sequence == 99


def test_producers_after_a_clean_close_need_no_batches(log: Log, reopen: Reopen) -> None:
    append(log, batch_at(0, producer_id=7, sequence=0))
    log.close()
    again = reopen(clean=True, recovery_point=1)

    assert again.producers.get(7) is not None
    assert again.active.file is None


def test_aborted_transactions_are_found_again(log: Log, reopen: Reopen) -> None:
    append(log, batch_at(0, producer_id=7, sequence=0, transactional=True))
    append_marker(log, 7, aborted=True)
    append(log, batch_at(2, producer_id=7, sequence=1, transactional=True))
    append_marker(log, 7, aborted=False)
    expected = log.aborted_transactions(0, 100)
    assert expected == [(7, 0, 1, 2)]
    Path(log.active.path_of(".txnindex")).unlink()

    again = reopen()
    assert again.aborted_transactions(0, 100) == expected
    assert (
        again.producers.first_unstable_offset() is not None
        or again.producers.first_undecided_offset() is None
    )


def test_an_open_transaction_is_open_after_a_crash(log: Log, reopen: Reopen) -> None:
    append(log, batch_at(0), batch_at(1, producer_id=7, sequence=0, transactional=True))

    assert reopen().producers.first_undecided_offset() == 1


def test_leader_epochs_of_lost_batches_are_removed(log: Log, reopen: Reopen) -> None:
    append(log, batch_at(0, epoch=1), batch_at(1, epoch=2))
    path = Path(log.active.path)
    path.write_bytes(path.read_bytes()[:-1])

    assert reopen().epochs.entries == [(1, 0)]


def test_leader_epochs_are_read_from_the_batches_when_their_file_is_lost(log: Log, reopen: Reopen) -> None:
    fill(log, 50, epoch=1)
    fill(log, 50, epoch=4)
    Path(log.directory, "leader-epoch-checkpoint").unlink()

    assert reopen(recovery_point=90).epochs.entries == [(1, 0), (4, 50)]


def test_a_log_that_ends_before_its_start_becomes_empty(log: Log, reopen: Reopen) -> None:
    fill(log, 5)

    again = reopen(log_start_offset=50)
    assert (again.log_start_offset, again.end_offset) == (50, 50)
    assert [s.base_offset for s in again.segments] == [50]


def test_a_folder_without_segments_gets_one(tmp_path: Path, directory: str, reopen: Reopen) -> None:
    Path(directory).mkdir()

    assert reopen(log_start_offset=9).end_offset == 9


def test_indexes_without_a_log_are_removed(log: Log, reopen: Reopen) -> None:
    fill(log, 3)
    Path(log.directory, f"{77:020d}.index").write_bytes(b"")
    reopen()

    assert f"{77:020d}.index" not in files(log.directory)


def test_files_marked_as_deleted_are_removed(log: Log, reopen: Reopen) -> None:
    fill(log, 3)
    Path(log.directory, f"{0:020d}.log.deleted").write_bytes(b"x")
    Path(log.directory, f"{0:020d}.log.cleaned").write_bytes(b"x")
    Path(log.directory, "leader-epoch-checkpoint.tmp").write_bytes(b"x")
    assert reopen().end_offset == 3

    assert not [name for name in files(log.directory) if name.endswith((".deleted", ".cleaned", ".tmp"))]


def test_a_complete_swap_is_finished(log: Log, reopen: Reopen) -> None:
    """Compaction had renamed its result to .swap; the segments that it replaces may still be there."""
    fill(log, 100)
    log.close()
    first, second = log.segments[:2]
    kept = bytes(batch_at(0)) + bytes(batch_at(second.base_offset + 1))
    for kind in (".index", ".timeindex"):
        Path(first.path_of(kind) + ".swap").write_bytes(b"")
    Path(first.path + ".swap").write_bytes(kept)

    again = reopen(clean=True, recovery_point=100)
    assert [s.base_offset for s in again.segments] == [0, *(s.base_offset for s in log.segments[2:])]
    assert read_all(again)[:2] == [batch_at(0), batch_at(second.base_offset + 1)]


def test_a_swap_that_was_not_complete_is_undone(log: Log, reopen: Reopen) -> None:
    appended = fill(log, 100)
    log.close()
    first, second = log.segments[:2]
    Path(first.path + ".cleaned").write_bytes(b"")
    Path(second.path + ".swap").write_bytes(b"")

    again = reopen(clean=True, recovery_point=100)
    assert read_all(again) == appended
    assert not [name for name in files(log.directory) if name.endswith((".cleaned", ".swap"))]


def test_records_of_an_old_format_are_refused_not_cut_off(log: Log, reopen: Reopen) -> None:
    """Message format v1: offset, size, crc32 of the rest, magic, attributes, timestamp, key, value."""
    import zlib

    fill(log, 1)
    rest = struct.pack(">bbqii", 1, 0, NOW_MS, -1, 3) + b"abc"
    message = struct.pack(">qiI", 1, 4 + len(rest), zlib.crc32(rest)) + rest + bytes(40)
    path = Path(log.active.path)
    before = path.read_bytes() + message[: 16 + len(rest)] + bytes(100)
    path.write_bytes(before)

    with pytest.raises(StorageError, match="message format v1"):
        reopen()
    assert path.read_bytes() == before


BATCHES = st.lists(
    st.tuples(st.integers(1, 3), st.integers(0, 150), st.sampled_from([-1, 5, 6])), min_size=1, max_size=40
)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    batches=BATCHES, synced=st.integers(0, 40), cut=st.integers(0, 10_000), flip=st.booleans(), data=st.data()
)
def test_any_damage_behind_the_recovery_point_leaves_a_prefix(
    batches: list[tuple[int, int, int]], synced: int, cut: int, flip: bool, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        directory = f"{folder}/t-0"
        setting = LogSettings(segment_bytes=600, index_interval_bytes=150)
        log = Log.create(directory, setting, now_ms=NOW_MS)
        appended: list[bytes] = []
        sequences: dict[int, int] = {}
        for number, (count, size, producer_id) in enumerate(batches):
            sequence = sequences.get(producer_id, 0)
            batch = batch_at(
                log.end_offset,
                count,
                value_bytes=size // count,
                epoch=number // 10,
                producer_id=producer_id,
                sequence=sequence if producer_id >= 0 else -1,
            )
            sequences[producer_id] = sequence + count
            append(log, batch)
            appended.append(bytes(batch))
            if number == synced:
                log.sync()
        safe = [batch for batch in appended if BatchHeader(batch).last_offset < log.recovery_point]
        damage(log, data, cut, flip)

        again = Log.open(directory, setting, recovery_point=log.recovery_point, now_ms=NOW_MS)
        found = read_all(again)
        assert found == appended[: len(found)]
        assert len(found) >= len(safe)
        assert again.end_offset == sum(count for count, _, _ in batches[: len(found)])

        # What is there now is what a log of just these batches would be.
        model = Log.create(f"{folder}/model-0", setting, now_ms=NOW_MS)
        for batch in found:
            append(model, bytearray(batch))
        model.close()
        again.close()
        assert again.epochs.entries == model.epochs.entries
        assert {p.producer_id: p.last_sequence for p in again.producers} == {
            p.producer_id: p.last_sequence for p in model.producers
        }
        assert contents(directory) == contents(f"{folder}/model-0")


def damage(log: Log, data: st.DataObject, cut: int, flip: bool) -> None:
    """Shorten or change the bytes behind the recovery point, somewhere."""
    unsafe = [
        segment
        for segment, following in zip(log.segments, [*log.segments[1:], None], strict=True)
        if following is None or following.base_offset > log.recovery_point
    ]
    segment = data.draw(st.sampled_from(unsafe), "segment")
    path = Path(segment.path)
    content = bytearray(path.read_bytes())
    start = 0
    boundaries = set()
    not_covered = (
        set()
    )  # offset and leader epoch: the checksum does not cover them, so that brokers can set them
    for position, header in segment.headers():
        boundaries.add(position)
        not_covered |= {*range(position, position + 8), *range(position + 12, position + 16)}
        if header.last_offset < log.recovery_point:
            start = position + header.size
    at = start + cut % (len(content) - start + 1)
    if flip and at < len(content) and at not in not_covered:
        content[at] ^= 0x40
        path.write_bytes(content)
    elif at < len(content):
        # A file that ends with a whole batch looks like one that was never longer: only the last one may.
        at += segment is not log.active and at in boundaries
        path.write_bytes(content[:at])
