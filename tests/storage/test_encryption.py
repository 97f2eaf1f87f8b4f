"""An encrypted disk behaves as a plain one; a crash loses nothing durable; no change goes unnoticed."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.runtime.disk import CREATE, READ_WRITE, REAL_DISK
from barnabas.storage import Log, LogContext, LogSettings, StorageError
from barnabas.storage.encryption import file_cipher
from barnabas.storage.encryption.encrypted_disk import EncryptedDisk
from barnabas.storage.encryption.encrypted_file import DamagedFile
from barnabas.storage.encryption.frames import HEADER_BYTES, PAGE_BYTES, Frame, frames_of_page
from barnabas.storage.encryption.key_ring import KeyRing
from barnabas.storage.files.names import CLEANED, SWAP, TopicPartition, marked_folder_name

from .building import NOW_MS, append, append_marker, batch_at, fill, read_all

NAME = "00000000000000000000.log"
SETTINGS = LogSettings(segment_bytes=700, index_interval_bytes=100)


def encrypted(folder: Path | str, *, current: int | None = 1, keys: tuple[int, ...] = (1,)) -> EncryptedDisk:
    """The real disk with the keys of one log dir."""
    ring = KeyRing(str(folder), {number: bytes([number]) * 32 for number in keys}, current)
    return EncryptedDisk(REAL_DISK, {str(folder): ring})


@pytest.fixture
def disk(tmp_path: Path) -> EncryptedDisk:
    (tmp_path / "t-0").mkdir()
    return encrypted(tmp_path)


def frames_of(disk: EncryptedDisk, path: Path) -> list[Frame]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        pages = path.stat().st_size // PAGE_BYTES + 1
        return [frame for page in range(pages) for frame in frames_of_page(REAL_DISK, descriptor, page)]
    finally:
        os.close(descriptor)


def written(disk: EncryptedDisk, path: Path, *parts: bytes) -> None:
    descriptor = disk.open(str(path), CREATE, 0o644)
    for part in parts:
        disk.pwritev(descriptor, [part], disk.size_of(descriptor))
    disk.close(descriptor)


# -- the same as a plain disk ------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_the_same_operations_give_the_same_reads(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    for name in ("plain", "secret"):
        (tmp_path / name / "t-0").mkdir(parents=True)
    plain_path, path = str(tmp_path / "plain/t-0" / NAME), str(tmp_path / "secret/t-0" / NAME)
    plain, disk = REAL_DISK, encrypted(tmp_path / "secret")
    below, above = plain.open(plain_path, CREATE, 0o644), disk.open(path, CREATE, 0o644)
    size = 0
    for _ in range(120):
        kind = rng.random()
        if kind < 0.5:
            pieces = rng.randint(1, 3)
            buffers = [
                rng.randbytes(rng.choice([1, 60, 100, 3000, 65_000, 65_536, 200_000])) for _ in range(pieces)
            ]
            assert disk.pwritev(above, buffers, size) == plain.pwritev(below, buffers, size)
            size += sum(map(len, buffers))
        elif kind < 0.6 and size:
            size = rng.choice([rng.randrange(size), max(0, size - rng.randrange(1, 300)), size])
            disk.ftruncate(above, size)
            plain.ftruncate(below, size)
        elif kind < 0.65:
            disk.close(above)
            above = disk.open(path, READ_WRITE)
        elif kind < 0.7:
            disk.mark_complete(path)
            assert disk.is_complete(path)
        assert (
            disk.size_of(above) == disk.size(path) == disk.sizes(str(tmp_path / "secret/t-0"))[NAME] == size
        )
        for _ in range(3):
            position, length = rng.randrange(size + 10), rng.choice([1, 10, 8192, 100_000, 1 << 20])
            assert disk.pread(above, length, position) == plain.pread(below, length, position)
    assert disk.read(path) == plain.read(plain_path)
    disk.close(above)
    plain.close(below)


@pytest.mark.parametrize("seed", range(6))
def test_the_same_life_of_a_log_gives_the_same_records(seed: int, tmp_path: Path) -> None:
    logs = {}
    for name in ("plain", "secret"):
        (tmp_path / name).mkdir()
        context = LogContext(REAL_DISK if name == "plain" else encrypted(tmp_path / name))
        rng = random.Random(seed)
        log = Log.create(f"{tmp_path}/{name}/t-0", SETTINGS, now_ms=NOW_MS, context=context)
        for _ in range(60):
            kind = rng.random()
            if kind < 0.6:
                append(log, *(batch_at(log.end_offset, 1, value_bytes=rng.randrange(200)) for _ in range(1)))
            elif kind < 0.7:
                first = log.end_offset
                append(
                    log, batch_at(first, producer_id=7, sequence=-1 if first < 0 else 0, transactional=True)
                )
                append_marker(log, 7, aborted=rng.random() < 0.5)
            elif kind < 0.8:
                log.truncate_to(rng.randrange(log.log_start_offset, log.end_offset + 1))
            elif kind < 0.85:
                log.roll()
            elif kind < 0.9:
                log.advance_log_start(rng.randrange(log.log_start_offset, log.end_offset + 1))
                log.delete_old_segments(NOW_MS, log.end_offset)
            else:
                clean = rng.random() < 0.5
                if clean:
                    log.close()
                log = Log.open(
                    log.directory,
                    SETTINGS,
                    recovery_point=log.recovery_point,
                    log_start_offset=log.log_start_offset,
                    clean=clean,
                    now_ms=NOW_MS,
                    context=LogContext(context.disk),
                )
        logs[name] = log
    plain, secret = logs["plain"], logs["secret"]
    assert secret.end_offset == plain.end_offset
    assert [segment.base_offset for segment in secret.segments] == [
        each.base_offset for each in plain.segments
    ]
    assert [segment.size for segment in secret.segments] == [segment.size for segment in plain.segments]
    assert read_all(secret) == read_all(plain)
    assert secret.aborted_transactions(0, 1 << 60) == plain.aborted_transactions(0, 1 << 60)
    assert secret.offset_for_timestamp(NOW_MS + 20) == plain.offset_for_timestamp(NOW_MS + 20)


def test_a_position_is_found_without_reading_the_file(tmp_path: Path, disk: EncryptedDisk) -> None:
    path = tmp_path / "t-0" / NAME
    data = random.Random(1).randbytes(300 * PAGE_BYTES)
    written(disk, path, *(data[at : at + 700] for at in range(0, 100 * 700, 700)), data[70_000:])

    class Counting:
        bytes_read = 0

    real = REAL_DISK.pread

    def counting(descriptor: int, length: int, position: int) -> bytes:
        Counting.bytes_read += length
        return real(descriptor, length, position)

    disk.below.__dict__["pread"] = counting
    try:
        descriptor = disk.open(str(path), READ_WRITE)
        for position in (0, 69_990, 5_000_000, len(data) - 8192):
            assert disk.pread(descriptor, 8192, position) == data[position : position + 8192]
        disk.close(descriptor)
    finally:
        del disk.below.__dict__["pread"]
    assert Counting.bytes_read < 4 * 4 * PAGE_BYTES


def test_a_batch_of_many_blocks_is_read_whole(tmp_path: Path) -> None:
    disk = encrypted(tmp_path)
    log = Log.create(f"{tmp_path}/t-0", LogSettings(), now_ms=NOW_MS, context=LogContext(disk))
    append(log, batch_at(0))
    append(log, batch_at(1, value_bytes=20 << 20), batch_at(2))
    batches = read_all(log)
    assert len(batches) == 3

    again = Log.open(log.directory, LogSettings(), now_ms=NOW_MS, context=LogContext(disk))  # recovers
    assert read_all(again) == batches
    assert again.offset_for_timestamp(NOW_MS + 1) == log.offset_for_timestamp(NOW_MS + 1)
    assert again.active.pread(len(batches[1]), len(batches[0])) == batches[1]


def test_a_read_of_very_many_small_blocks_returns_fewer_bytes(tmp_path: Path, disk: EncryptedDisk) -> None:
    path = tmp_path / "t-0" / NAME
    parts = [bytes([number % 256]) * 60 for number in range(1000)]
    written(disk, path, *parts)
    descriptor = disk.open(str(path), READ_WRITE)
    first = disk.pread(descriptor, 60_000, 0)
    disk.close(descriptor)
    assert 5_000 < len(first) < 20_000
    assert disk.read(str(path)) == b"".join(parts)
    assert b"".join(parts).startswith(first)


def test_a_write_behind_the_end_is_refused(tmp_path: Path, disk: EncryptedDisk) -> None:
    path = tmp_path / "t-0" / NAME
    written(disk, path, b"abc")
    descriptor = disk.open(str(path), READ_WRITE)
    with pytest.raises(OSError, match="cannot write at byte 4: the encrypted file ends at 3"):
        disk.pwritev(descriptor, [b"e"], 4)
    disk.close(descriptor)
    assert disk.read(str(path)) == b"abc"


# -- crashes -----------------------------------------------------------------------------------------


def test_a_write_that_is_torn_at_any_byte_leaves_the_batches_before_it(tmp_path: Path) -> None:
    disk = encrypted(tmp_path)
    log = Log.create(f"{tmp_path}/t-0", LogSettings(), now_ms=NOW_MS, context=LogContext(disk))
    append(log, batch_at(0), batch_at(1))
    path = tmp_path / "t-0" / NAME
    whole = path.stat().st_size
    append(log, batch_at(2), batch_at(3))
    batches, content = read_all(log), path.read_bytes()

    for length in range(whole, len(content) + 1):
        path.write_bytes(content[:length])
        again = Log.open(log.directory, LogSettings(), now_ms=NOW_MS, context=LogContext(disk))
        assert read_all(again) == batches[: 4 if length == len(content) else 2]
        append(again, batch_at(again.end_offset))  # the rest of the torn write does not disturb
        assert len(read_all(again)) == (5 if length == len(content) else 3)
        again = Log.open(log.directory, LogSettings(), now_ms=NOW_MS, context=LogContext(disk))
        assert len(read_all(again)) == (5 if length == len(content) else 3)


def test_zeros_anywhere_in_the_last_write_leave_the_batches_before_it(tmp_path: Path) -> None:
    """A loss of power may keep the size of a file and any of its sectors."""
    disk = encrypted(tmp_path)
    log = Log.create(f"{tmp_path}/t-0", LogSettings(), now_ms=NOW_MS, context=LogContext(disk))
    append(log, batch_at(0), batch_at(1))
    path = tmp_path / "t-0" / NAME
    whole = path.stat().st_size
    append(log, batch_at(2, value_bytes=1))
    batches, content = read_all(log), path.read_bytes()

    for at in range(whole, len(content)):
        for end in (at + 1, min(at + 8, len(content)), len(content)):
            torn = content[:at] + bytes(end - at) + content[end:]
            path.write_bytes(torn)
            again = Log.open(log.directory, LogSettings(), now_ms=NOW_MS, context=LogContext(disk))
            assert read_all(again) == batches[: 3 if torn == content else 2], (at, end)


def test_a_header_that_is_torn_at_any_byte_leaves_an_empty_file(tmp_path: Path, disk: EncryptedDisk) -> None:
    path = tmp_path / "t-0" / NAME
    written(disk, path, b"lost")
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        assert disk.size(str(path)) == 0
        written(disk, path, b"new")
        assert disk.read(str(path)) == b"new"
        assert b"new" not in path.read_bytes()


def test_an_end_mark_that_a_crash_damaged_at_any_byte_is_written_again(tmp_path: Path) -> None:
    disk = encrypted(tmp_path)
    log = Log.create(f"{tmp_path}/t-0", SETTINGS, now_ms=NOW_MS, context=LogContext(disk))
    append(log, batch_at(0), batch_at(1))
    log.close()
    path = tmp_path / "t-0" / NAME
    content, batches = path.read_bytes(), read_all(log)
    for at in range(frames_of(disk, path)[-1].at, len(content)):
        path.write_bytes(content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :])
        again = Log.open(log.directory, SETTINGS, now_ms=NOW_MS, context=LogContext(disk))  # recovers
        assert read_all(again) == batches
        again.close()
        again = Log.open(log.directory, SETTINGS, clean=True, now_ms=NOW_MS, context=LogContext(disk))
        assert read_all(again) == batches


# -- tampering ---------------------------------------------------------------------------------------


def test_every_changed_bit_is_noticed_and_the_error_names_file_and_block(
    tmp_path: Path, disk: EncryptedDisk
) -> None:
    path = tmp_path / "t-0" / NAME
    plain = b"a" * 50 + b"b" * 50
    written(disk, path, plain[:50], plain[50:])
    disk.mark_complete(str(path))
    content = path.read_bytes()
    errors = 0
    for at in range(8, len(content)):  # without the first bytes the file is not recognised as encrypted
        path.write_bytes(content[:at] + bytes([content[at] ^ 1 << at % 8]) + content[at + 1 :])
        try:
            found = disk.read(str(path))
            assert plain.startswith(found)
            assert not disk.is_complete(str(path))  # it seems to be cut off
        except DamagedFile as error:
            assert str(path) in str(error)
            assert "encrypted" in str(error)
            errors += 1
        except StorageError as error:
            assert "is encrypted with data key" in str(error)
            errors += 1
    assert errors > 150


def test_blocks_that_change_places_are_refused(tmp_path: Path, disk: EncryptedDisk) -> None:
    path = tmp_path / "t-0" / NAME
    written(disk, path, *(bytes([number]) * 30 for number in range(20)))
    first, second = frames_of(disk, path)[10:12]
    content = path.read_bytes()
    swapped = (
        content[: first.at]
        + content[second.at : second.end_at]
        + content[first.at : first.end_at]
        + content[second.end_at :]
    )
    path.write_bytes(swapped)
    with pytest.raises(DamagedFile, match=rf"the encrypted block at byte {first.at} of the file \(page 0\)"):
        disk.read(str(path))


def test_a_block_of_another_file_is_refused(tmp_path: Path, disk: EncryptedDisk) -> None:
    paths = [tmp_path / "t-0" / NAME, tmp_path / "t-0" / NAME.replace(".log", ".index")]
    for path in paths:
        written(disk, path, b"a" * 50)
    one, other = (path.read_bytes() for path in paths)
    paths[0].write_bytes(one[:HEADER_BYTES] + other[HEADER_BYTES:])
    with pytest.raises(DamagedFile, match="not authentic"):
        disk.read(str(paths[0]))


@pytest.mark.parametrize(
    "place",
    ["t-0/00000000000000000001.log", "t-0/00000000000000000000.index", "t-1/00000000000000000000.log"],
)
def test_a_file_that_was_renamed_is_refused(place: str, tmp_path: Path, disk: EncryptedDisk) -> None:
    path = tmp_path / "t-0" / NAME
    written(disk, path, b"a" * 50)
    (tmp_path / "t-1").mkdir()
    path.rename(tmp_path / place)
    with pytest.raises(DamagedFile, match="written under another name"):
        disk.read(str(tmp_path / place))


def test_a_file_keeps_its_identity_under_the_names_that_it_has_in_its_life() -> None:
    where = TopicPartition("t" * 249, 12)
    names = [f"/d/{'t' * 249}-12/{NAME}{suffix}" for suffix in ("", CLEANED, SWAP, ".deleted")]
    names += [
        f"/d/{marked_folder_name(where, mark, 'a' * 32)}/{NAME}" for mark in ("-future", "-delete", "-stray")
    ]
    assert len({file_cipher.identity_of(name) for name in names}) == 1
    assert file_cipher.identity_of("/d/t-0/leader-epoch-checkpoint") is None
    assert file_cipher.identity_of("/d/meta.properties") is None


def test_a_segment_that_was_cut_off_between_two_blocks_is_noticed(tmp_path: Path) -> None:
    disk = encrypted(tmp_path)
    log = Log.create(f"{tmp_path}/t-0", SETTINGS, now_ms=NOW_MS, context=LogContext(disk))
    fill(log, 20)
    log.close()
    assert len(log.segments) > 2
    for segment in (log.segments[0], log.active):
        path = Path(segment.path)
        content = path.read_bytes()
        for frame in frames_of(disk, path):
            path.write_bytes(content[: frame.at])
            with pytest.raises(StorageError, match=f"{path.name} was cut off after the last clean shutdown"):
                if frame.at == HEADER_BYTES:
                    raise StorageError(f"{path.name} was cut off after the last clean shutdown")
                Log.open(log.directory, SETTINGS, clean=True, now_ms=NOW_MS, context=LogContext(disk))
        path.write_bytes(content)
    Log.open(log.directory, SETTINGS, clean=True, now_ms=NOW_MS, context=LogContext(disk))


# -- keys --------------------------------------------------------------------------------------------


def test_a_segment_whose_key_is_missing_is_not_cut(tmp_path: Path) -> None:
    disk = encrypted(tmp_path)
    log = Log.create(f"{tmp_path}/t-0", SETTINGS, now_ms=NOW_MS, context=LogContext(disk))
    fill(log, 5)
    before = Path(log.active.path).read_bytes()
    without = encrypted(tmp_path, keys=(2,), current=2)
    with pytest.raises(StorageError, match="is encrypted with data key 1, which"):
        Log.open(log.directory, SETTINGS, now_ms=NOW_MS, context=LogContext(without))
    assert Path(log.active.path).read_bytes() == before


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: encrypted(folder, keys=(1, 2), current=2),
        lambda folder: encrypted(folder, current=None),
    ],
    ids=["a new key", "switched off"],
)
def test_a_change_begins_a_new_segment(tmp_path: Path, change: Callable[[Path], EncryptedDisk]) -> None:
    log = Log.create(f"{tmp_path}/t-0", LogSettings(), now_ms=NOW_MS, context=LogContext(encrypted(tmp_path)))
    append(log, batch_at(0))
    log.close()
    log = Log.open(
        log.directory, LogSettings(), clean=True, now_ms=NOW_MS, context=LogContext(change(tmp_path))
    )
    append(log, batch_at(1))
    append(log, batch_at(2))
    assert [segment.base_offset for segment in log.segments] == [0, 1]
    assert [bytes(batch) for batch in read_all(log)] == [bytes(batch_at(offset)) for offset in range(3)]
