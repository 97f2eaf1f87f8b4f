"""Sums of contents by columns are those of single records."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from barnabas.audit.core.buckets import bucket_of
from barnabas.audit.core.contents import MODULUS_MASK, content_of
from barnabas.audit.core.messages import Tally
from barnabas.audit.core.window import Window
from barnabas.audit.lake.contents import by_bucket, contents_of
from barnabas.audit.lake.topics import add_table

WIDTH = 1_000
parts = st.none() | st.binary(max_size=5)
Row = tuple[bytes | None, bytes | None, int]
rows = st.lists(st.tuples(parts, parts, st.integers(-1, 5_000) | st.integers(2**40, 2**62)), max_size=30)


@given(rows)
def test_columns_have_the_numbers_of_their_records(
    records: list[tuple[bytes | None, bytes | None, int]],
) -> None:
    columns = tuple(pa.array([each[at] for each in records], pa.binary()) for at in (0, 1))
    stamps = np.array([each[2] for each in records], np.int64)
    expected = [content_of(*each) for each in records]
    contents = contents_of((columns[0], columns[1]), stamps)
    assert contents.tolist() == expected
    sums: dict[int, list[int]] = {}
    for (_, _, stamp), content in zip(records, expected, strict=True):
        sums.setdefault(bucket_of(stamp, WIDTH), []).append(content)
    assert {
        bucket_of(stamp, WIDTH): (count, content)
        for stamp, count, content in by_bucket(stamps, WIDTH, contents)
    } == {bucket: (len(some), sum(some) & MODULUS_MASK) for bucket, some in sums.items()}


def test_rows_that_are_written_have_the_contents_of_their_records() -> None:
    table = pa.table(
        {
            "topic": ["a", "b", "a"],
            "value": pa.array([b"1", None, "é".encode()], pa.binary()),
            "timestamp": pa.array([5, None, 7], pa.timestamp("ms")),
        }
    )
    window = Window(WIDTH)
    add_table(window, table, None, 9, has_sums=True)
    found = {topic: entry.tally for topic, [entry] in window.entries()}
    both = (content_of(None, b"1", 5) + content_of(None, "é".encode(), 7)) & MODULUS_MASK
    assert found == {
        "a": Tally(2, summed=2, content=both),
        "b": Tally(1, summed=1, content=content_of(None, None, 9)),
    }
