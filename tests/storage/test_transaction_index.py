"""The aborted transactions of a segment: found by offset, kept in the file, cut with the log."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.runtime.disk import Disk
from barnabas.storage.segments.transaction_index import (
    ENTRY_BYTES,
    AbortedTransaction,
    TransactionIndex,
    encode,
)


def entries_of(lengths: list[tuple[int, int]]) -> list[AbortedTransaction]:
    """Transactions that end one after the other, `gap` apart, and began `length` before."""
    spans = []
    last = 0
    for gap, length in lengths:
        last += gap
        spans.append((max(last - length, 0), last))
    return [
        AbortedTransaction(
            number % 3, first, last, min([last + 1, *(start for start, _ in spans[number:][1:])])
        )
        for number, (first, last) in enumerate(spans)
    ]


@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(1, 20)), max_size=20),
    st.integers(0, 60),
    st.integers(1, 40),
)
def test_transactions_that_overlap_a_range_are_found(
    lengths: list[tuple[int, int]], start: int, size: int
) -> None:
    entries = entries_of(lengths)
    found, is_complete = TransactionIndex(b"".join(map(encode, entries))).collect(start, start + size)
    assert found == [
        each for each in entries if each.last_offset >= start and each.first_offset < start + size
    ]
    if is_complete:
        assert any(each.last_stable_offset >= start + size for each in entries)


def test_entries_are_appended_once_and_cut(tmp_path: Path) -> None:
    disk, path = Disk(), str(tmp_path / "0.txnindex")
    index = TransactionIndex()
    entries = entries_of([(5, 2), (5, 2), (5, 2)])
    for entry in [*entries, entries[1]]:
        index.append(disk, path, entry)
    assert Path(path).read_bytes() == b"".join(map(encode, entries))
    index.truncate(disk, path, 15)
    assert index.entries == entries[:2]
    assert Path(path).read_bytes() == b"".join(map(encode, entries[:2]))


def test_half_an_entry_at_the_end_is_nothing() -> None:
    data = b"".join(map(encode, entries_of([(5, 2), (5, 2)])))
    assert len(TransactionIndex(data[:-1])) == 1


def test_a_version_of_the_future_is_refused() -> None:
    data = bytearray(b"".join(map(encode, entries_of([(5, 2), (5, 2)]))))
    data[ENTRY_BYTES + 1] = 9
    with pytest.raises(ValueError, match="at byte 34: version 9 is not supported"):
        TransactionIndex(bytes(data))
