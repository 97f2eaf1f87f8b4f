"""Bytes of batches become columns: whatever was written is there, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pyarrow", reason="needs the extra `spark`")

from barnabas.client.core.fetching import Aborted
from barnabas.protocol import KafkaError
from barnabas.records.batch import BatchHeader
from barnabas.records.compression import Compression
from barnabas.records.control import EndMarker, build_end_marker
from barnabas.records.record import Record, build_batch
from barnabas.spark.reading.batches import Chunk, Unreadable, next_offset_of, read_chunks
from barnabas.spark.reading.columns import COLUMNS, HEADERS, Table
from barnabas.spark.reading.unpacking import ROOM_BYTES, Room
from poisoned_batches import UNCOMPRESSED, compressed

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
    if "timestamp" in batch.schema.names:
        batch = batch.set_column(5, "timestamp", batch.column("timestamp").cast("int64"))
    return list(batch.to_pylist())


def decoded(
    fetched: bytes | bytearray,
    first: int,
    stop: int,
    table: Table,
    *,
    aborted: Aborted | None = None,
    room: Room | None = None,
    checks_crc: bool = True,
) -> list[Any]:
    """All rows, read chunk by chunk."""
    chunks: Iterator[Chunk] = read_chunks(
        memoryview(fetched), first, stop, aborted, room or Room(), checks_crc=checks_crc
    )
    return [row for chunk in chunks for row in rows(table.batch(chunk, first, stop))]


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(records, st.sampled_from(list(Compression)), st.integers(0, 3)), max_size=4),
    st.integers(0, 25),
    st.integers(0, 25),
    st.sampled_from([1, 50, 10_000]),
)
def test_columns_are_what_the_records_are(
    batches: list[tuple[Any, Compression, int]], first: int, stop: int, room: int
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
    found = decoded(fetched, first, stop, Table("t", 7, ALL), room=Room(room))
    assert found == plain("t", 7, [each for each in written if first <= each.offset < stop])
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
        decoded(fetched, 0, 100, Table("t", 0, ALL), checks_crc=False)
    except (KafkaError, UnicodeDecodeError):
        return


def test_a_wrong_checksum_is_named() -> None:
    fetched = bytearray(build_batch([Record(offset=5, timestamp=0, key=None, value=b"x")], base_offset=5))
    fetched[-2] ^= 1
    with pytest.raises(KafkaError, match=r"the batch at offset 5 of .*: its checksum is wrong"):
        decoded(fetched, 0, 100, Table("t", 0, ALL))


POISONS = UNCOMPRESSED | compressed(Compression.LZ4) | compressed(Compression.SNAPPY)
NULLS = ("a key of size -2", "a value of size -2", "a header value of size -2")  # Kafka takes them for null
GARBAGE = (
    "text instead of a record",
    "a million records declared",
    "plain records under a codec",
    "compressed bytes cut off",
    "a value larger than its record",
    "a null header key",
    "a billion headers",
)


def between_sound_ones(poison: bytes) -> tuple[bytes, list[bytes]]:
    """Bytes as a fetch brings them: the poison at offset 1, and the values of the batches around it."""
    batch = bytearray(poison)
    header = BatchHeader(batch)
    header.assign(batch, 1, 0)
    offsets = 0, header.next_offset, header.next_offset + 1
    before, *after = (
        bytes(build_batch([Record(each, 1, b"k", b"%d" % each)], base_offset=each)) for each in offsets
    )
    return before + bytes(batch) + b"".join(after), [b"%d" % each for each in offsets]


@pytest.mark.parametrize("name", [name for name in POISONS if name != "a header key that is not UTF-8"])
def test_what_is_around_a_batch_that_cannot_be_read_is_read(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    fetched, expected = between_sound_ones(POISONS[name])
    unreadable = Unreadable("t-0", fails=False)
    table = Table("t", 0, ("value", HEADERS), unreadable)
    chunks = read_chunks(memoryview(fetched), 0, 2**40, None, Room(), unreadable=unreadable)
    found = [row["value"] for chunk in chunks for row in table.batch(chunk, 0, 2**40).to_pylist()]
    assert [value for value in found if value in expected] == expected
    is_named = "the batch at offset 1 of t-0 cannot be read" in caplog.text
    assert is_named or name not in GARBAGE
    assert not (is_named and name in NULLS)


@pytest.mark.parametrize("name", GARBAGE)
def test_a_batch_that_cannot_be_read_is_an_error_with_its_offset(name: str) -> None:
    fetched, _ = between_sound_ones(POISONS[name])
    with pytest.raises(KafkaError, match=r"the batch at offset 1 of .* failOnCorruptRecords"):
        decoded(fetched, 0, 2**40, Table("t", 0, ALL))


def test_a_batch_that_is_cut_off_waits_for_the_next_fetch() -> None:
    whole = bytes(build_batch([Record(offset=0, timestamp=0, key=None, value=b"x")], base_offset=0))
    cut = bytes(build_batch([Record(offset=1, timestamp=0, key=None, value=b"y")], base_offset=1))[:-1]
    assert next_offset_of(memoryview(whole + cut), 0) == 1
    assert decoded(whole + cut, 0, 100, Table("t", 0, ("value",))) == [{"value": b"x"}]


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


def test_a_fetch_that_begins_at_an_abort_marker_shows_the_next_transaction() -> None:
    fetched = ends(1, 2, aborted=True) + of_producer(1, 3, b"committed") + ends(1, 4, aborted=False)
    found = decoded(fetched, 2, 100, Table("t", 0, ("value",)), aborted=Aborted([(0, 1)]))
    assert found == [{"value": b"committed"}]


def test_aborted_records_and_markers_are_left_out() -> None:
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
    found = decoded(fetched, 0, 100, Table("t", 0, ("offset", "value")), aborted=Aborted([(0, 1)]))
    assert found == [
        {"offset": 1, "value": b"committed"},
        {"offset": 3, "value": b"of the next transaction"},
    ]
    assert next_offset_of(memoryview(fetched), 0) == 6


def test_without_a_compiler_the_same_functions_run_as_they_are() -> None:
    from barnabas.spark.reading import kernel

    plain_scan = getattr(kernel.scan, "py_func", None)
    if plain_scan is None:
        pytest.skip("numba is not installed: nothing is compiled")
    assert kernel.varint.py_func(bytes([0x96, 0x01]), 0, 2) == (75, 2)


@given(st.lists(data, max_size=20))
def test_values_are_copied_together_as_plain_python_does_it(values: list[bytes | None]) -> None:
    import numpy as np
    import pyarrow as pa

    from barnabas.spark.reading import kernel
    from barnabas.spark.reading.columns import binary

    sizes = np.array([-1 if each is None else len(each) for each in values], np.int64)
    at = np.concatenate([[0], np.cumsum(np.maximum(sizes, 0))])[:-1].astype(np.int64)
    together = np.frombuffer(b"".join(each or b"" for each in values) + b"behind", np.uint8)
    assert binary(together, at, sizes, pa.binary()).to_pylist() == values
    plain_gather = getattr(kernel.gather, "py_func", kernel.gather)
    offsets, out = np.empty(len(values) + 1, np.int32), np.empty(int(np.maximum(sizes, 0).sum()), np.uint8)
    plain_gather(together, at, sizes, offsets, out)
    assert out.tobytes() == b"".join(each or b"" for each in values)
    assert offsets[-1] == len(out)


def test_batches_that_expand_are_cut_into_chunks() -> None:
    contents = [Record(offset=n, timestamp=0, key=None, value=b"x" * 1_000_000) for n in range(12)]
    fetched = b"".join(
        build_batch(contents[n : n + 3], base_offset=n, compression=Compression.ZSTD) for n in range(0, 12, 3)
    )
    room = Room()
    counts = [chunk.record_count for chunk in read_chunks(memoryview(fetched), 0, 12, None, room)]
    assert counts == [3, 3, 3, 3]
    assert len(room.data) == ROOM_BYTES
