"""Bytes of batches become columns: whatever was written is there, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pyarrow", reason="needs the extra `spark`")

from barnabas.protocol import KafkaError
from barnabas.records.compression import Compression
from barnabas.records.control import EndMarker, build_end_marker
from barnabas.records.record import Record, build_batch
from barnabas.spark.batches import Aborted, next_offset_of, read_chunk
from barnabas.spark.columns import COLUMNS, HEADERS, Table

ALL = (*COLUMNS, HEADERS)
data = st.none() | st.binary(max_size=40)
headers = st.lists(st.tuples(st.text(max_size=5), data), max_size=3)
records = st.lists(st.tuples(data, data, headers, st.integers(0, 10**12)), min_size=1, max_size=6)


def plain(topic: str, partition: int, found: list[Record], *, append_time: int | None = None) -> list[Any]:
    """The rows that Spark's own connector would show."""
    return [
        {
            "key": each.key,
            "value": each.value,
            "topic": topic,
            "partition": partition,
            "offset": each.offset,
            "timestamp": (each.timestamp if append_time is None else append_time) * 1000,
            "timestampType": 0 if append_time is None else 1,
            HEADERS: [{"key": name, "value": value} for name, value in each.headers] or None,
        }
        for each in found
    ]


def rows(batch: Any) -> list[Any]:
    found = batch.set_column(5, "timestamp", batch.column("timestamp").cast("int64")).to_pylist()
    return list(found)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(records, st.sampled_from(list(Compression)), st.integers(0, 3)), max_size=4),
    st.integers(0, 25),
    st.integers(0, 25),
)
def test_columns_are_what_the_records_are(
    batches: list[tuple[Any, Compression, int]], first: int, stop: int
) -> None:
    fetched, written, offset = bytearray(), [], 0
    for contents, compression, gap in batches:
        offset += gap  # compaction leaves gaps
        some = [
            Record(offset=offset + index, timestamp=time, key=key, value=value, headers=headers)
            for index, (key, value, headers, time) in enumerate(contents)
        ]
        fetched += build_batch(some, base_offset=offset, compression=compression)
        written += some
        offset += len(some)
    chunk = read_chunk(memoryview(fetched), first, stop, None)
    batch = Table("t", 7, ALL).batch(chunk, first, stop)
    assert rows(batch) == plain("t", 7, [each for each in written if first <= each.offset < stop])
    assert chunk.next_offset == max(first, offset)
    assert next_offset_of(memoryview(fetched), 0) == offset


@given(records, st.integers(0, 400), st.integers(0, 255))
@settings(max_examples=150, deadline=None)
def test_a_lying_batch_is_an_error_not_a_crash(contents: Any, at: int, byte: int) -> None:
    some = [
        Record(offset=index, timestamp=time, key=key, value=value, headers=headers)
        for index, (key, value, headers, time) in enumerate(contents)
    ]
    fetched = bytearray(build_batch(some, base_offset=0))
    position = 61 + at % (len(fetched) - 61)
    fetched[position] = byte
    try:
        chunk = read_chunk(memoryview(fetched), 0, 100, None, checks_crc=False)
        Table("t", 0, ALL).batch(chunk, 0, 100).to_pylist()
    except (KafkaError, UnicodeDecodeError):
        return


def test_a_wrong_checksum_is_named() -> None:
    fetched = bytearray(build_batch([Record(offset=5, timestamp=0, key=None, value=b"x")], base_offset=5))
    fetched[-2] ^= 1
    with pytest.raises(KafkaError, match="checksum of the batch at offset 5"):
        read_chunk(memoryview(fetched), 0, 100, None)


def test_a_batch_that_is_cut_off_waits_for_the_next_fetch() -> None:
    whole = bytes(build_batch([Record(offset=0, timestamp=0, key=None, value=b"x")], base_offset=0))
    cut = bytes(build_batch([Record(offset=1, timestamp=0, key=None, value=b"y")], base_offset=1))[:-1]
    chunk = read_chunk(memoryview(whole + cut), 0, 100, None)
    assert chunk.next_offset == 1 == next_offset_of(memoryview(whole + cut), 0)
    assert Table("t", 0, ("value",)).batch(chunk, 0, 100).to_pylist() == [{"value": b"x"}]


def test_aborted_records_and_markers_are_left_out() -> None:
    def of_producer(producer: int, offset: int, value: bytes) -> bytes:
        record = Record(offset=offset, timestamp=0, key=None, value=value)
        return bytes(
            build_batch(
                [record],
                base_offset=offset,
                producer_id=producer,
                producer_epoch=0,
                base_sequence=0,
                transactional=True,
            )
        )

    def ends(producer: int, offset: int, *, aborted: bool) -> bytes:
        return bytes(build_end_marker(EndMarker(aborted, 0), producer, 0, 0, base_offset=offset))

    fetched = b"".join(
        [
            of_producer(1, 0, b"aborted"),
            of_producer(2, 1, b"committed"),
            ends(1, 2, aborted=True),
            of_producer(1, 3, b"of the next transaction"),
            ends(2, 4, aborted=False),
            ends(1, 5, aborted=False),
        ]
    )
    chunk = read_chunk(memoryview(fetched), 0, 100, Aborted([(0, 1)]))
    found = Table("t", 0, ("offset", "value")).batch(chunk, 0, 100).to_pylist()
    assert found == [
        {"offset": 1, "value": b"committed"},
        {"offset": 3, "value": b"of the next transaction"},
    ]
    assert chunk.next_offset == 6


def test_without_a_compiler_the_same_functions_run_as_they_are() -> None:
    from barnabas.spark import kernel

    plain_scan = getattr(kernel.scan, "py_func", None)
    if plain_scan is None:
        pytest.skip("numba is not installed: nothing is compiled")
    assert kernel.varint.py_func(bytes([0x96, 0x01]), 0, 2) == (75, 2)
