from hypothesis import given
from hypothesis import strategies as st

from barnabas.raft.snapshot_ids import SnapshotFile, SnapshotId, parse_name, snapshots_to_delete

DAY_MS = 86_400_000


def test_a_snapshot_is_named_by_offset_and_epoch() -> None:
    name = "00000000000000000094-0000000001.checkpoint"
    assert parse_name(name) == SnapshotId(94, 1)
    assert SnapshotId(94, 1).file_name == name


@given(st.text(max_size=50))
def test_other_files_are_no_snapshots(name: str) -> None:
    found = parse_name(name)
    assert found is None or found.file_name == name


def files(*sizes_and_ages: tuple[int, int]) -> dict[SnapshotId, SnapshotFile]:
    return {
        SnapshotId(10 * index, 1): SnapshotFile(size, 100 * DAY_MS - age)
        for index, (size, age) in enumerate(sizes_and_ages)
    }


def deleted(found: dict[SnapshotId, SnapshotFile], log_bytes: int = 0, bytes_a_record: int = 0) -> list[int]:
    def log_bytes_from(offset: int) -> int:
        return log_bytes - offset * bytes_a_record

    return [
        each.end_offset for each in snapshots_to_delete(found, log_bytes_from, 100 * DAY_MS, 1000, 7 * DAY_MS)
    ]


def test_snapshots_stay_while_they_are_young_and_small() -> None:
    assert deleted(files((10, DAY_MS), (10, 0))) == []


def test_the_oldest_are_deleted_first_when_the_total_is_too_large() -> None:
    assert deleted(files((400, 0), (400, 0), (400, 0))) == [0]
    assert deleted(files((400, 0), (400, 0), (400, 0)), log_bytes=500) == [0, 10]


def test_the_log_shrinks_with_its_snapshots() -> None:
    assert deleted(files((10, 0), (10, 0), (10, 0)), log_bytes=1500) == [0, 10]
    assert deleted(files((10, 0), (10, 0), (10, 0)), log_bytes=1500, bytes_a_record=60) == [0]


def test_old_snapshots_are_deleted() -> None:
    assert deleted(files((10, 9 * DAY_MS), (10, 8 * DAY_MS), (10, 0))) == [0, 10]


def test_the_newest_stays_whatever_its_age_and_size() -> None:
    assert deleted(files((9999, 99 * DAY_MS))) == []
