"""A tiny round of the rows about the log cleaner on our broker alone, and its batches read back."""

from __future__ import annotations

import pytest
from bench.rounds import Comparison, Result
from bench.rows import ROWS

from barnabas.records.batch import validate
from barnabas.records.record import read_records
from bench import cleaner, loads, report


@pytest.mark.long
def test_every_row_has_a_value() -> None:
    names = ["cleaner", "cleaner-p99"]
    found = Comparison(loads.TINY, 1, lambda _: None, alone="barnabas").run(names)

    assert [result.row.name for result in found] == names
    assert all(len(result.ours) == 1 and result.ours[0] > 0 for result in found)


def test_the_load_has_keys_that_repeat() -> None:
    frame = cleaner.keyed_frames(1)
    start = frame.index(b"\xff\xff\xff\xff\x02") - 12  # the leader epoch and the format of a batch
    header = validate(frame[start:-3])
    keys = [record.key for record in read_records(frame[start:-3])]
    assert header.record_count == len(keys) == cleaner.BATCH_RECORDS
    assert len(set(keys)) < len(keys)


def test_a_floor_of_our_own_applies_to_our_value_alone() -> None:
    good = Result(ROWS["cleaner-p99"], [1.5, 1.6, 9.0], [1.1, 1.1, 1.1])
    bad = Result(ROWS["cleaner-p99"], [2.5], [100.0])
    assert (good.holds, bad.holds) == (True, False)
    assert report.cells(bad)[-2:] == ("≤ 2 of its own", "FAIL")
