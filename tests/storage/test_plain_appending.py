"""Plain batches, staged in one step, leave the same files as batches that are staged with their headers."""

import random
from pathlib import Path

import pytest

from barnabas.records.batch import BatchHeader
from barnabas.records.plain_batch import plain_batch
from barnabas.records.record import Record, build_batch
from barnabas.records.validation import AppendRules
from barnabas.storage.logs.log import Log
from barnabas.storage.segments.settings import LogSettings

NOW_MS = 1_700_000_000_000
SETTINGS = LogSettings(segment_bytes=6000, segment_ms=400, segment_index_bytes=48, index_interval_bytes=300)


def files(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in folder.iterdir()}


@pytest.mark.parametrize("seed", range(3))
def test_both_ways_of_staging_leave_the_same_files(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    folders = [tmp_path / "plain-0", tmp_path / "other-0"]
    plain_log, other_log = [Log.create(str(each), SETTINGS, now_ms=NOW_MS) for each in folders]
    now_ms, epoch, at_once = NOW_MS, 0, 0
    for _ in range(400):
        now_ms += rng.randrange(4)
        epoch += rng.random() < 0.01
        count = rng.choice((1, 1, 3, 20))
        built = build_batch(
            [Record(offset=index, timestamp=now_ms, value=b"v" * 30) for index in range(count)]
        )
        first, second = (memoryview(bytearray(built)) for _ in range(2))
        plain = plain_batch(first, AppendRules(), now_ms)
        assert plain is not None
        header = BatchHeader(second)
        header.assign(second, other_log.end_offset, epoch)
        base_offset = plain_log.stage_plain(first, plain, epoch, now_ms)
        if base_offset < 0:
            same = BatchHeader(first)
            assert same.base_offset == 0  # nothing was done to it
            same.assign(first, plain_log.end_offset, epoch)
            plain_log.stage(first, same, now_ms)
        else:
            at_once += 1
            assert base_offset == other_log.end_offset
        other_log.stage(second, header, now_ms)
        assert first == second and plain_log.end_offset == other_log.end_offset
        if rng.random() < 0.3:
            plain_log.write_staged()
            other_log.write_staged()
    for log in (plain_log, other_log):
        log.close()
    assert files(folders[0]) == files(folders[1])
    assert len(plain_log.segments) > 10 and at_once > 100
