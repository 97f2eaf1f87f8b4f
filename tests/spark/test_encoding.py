"""Rows become batches: whoever reads them finds the rows, whatever the codec makes of their bytes."""

from __future__ import annotations

import os
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pyarrow", reason="needs the extra `spark`")

import numpy as np
import pyarrow as pa

from barnabas.client.partitioner import partition_for_key
from barnabas.records.compression import Compression, decompress
from barnabas.spark.reading.batches import read_chunks
from barnabas.spark.reading.columns import Table
from barnabas.spark.reading.unpacking import Room
from barnabas.spark.writing import writing_kernel as kernel
from barnabas.spark.writing.encoding import Encoder
from barnabas.spark.writing.packing import BATCH_OVERHEAD, LZ4_BLOCK_BYTES, Packing
from barnabas.spark.writing.rows import Rows

CODECS = list(Compression)
data = st.none() | st.binary(max_size=60)
headers = st.none() | st.lists(st.fixed_dictionaries({"key": st.text(max_size=4), "value": data}), max_size=3)
ROW = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ]
)


def read_back(table: pa.Table, codec: int, batch_bytes: int, level: int | None = None) -> list[Any]:
    """Rows by partition, in the order of their batches."""
    encoder = Encoder({"t": 3}, compression=codec, batch_bytes=batch_bytes, rng=random.Random(1), level=level)
    found, ends = [], [0, 0, 0]
    for batch in encoder.batches(table, "t", 1000):
        at = batch.where.partition
        batch.base_sequence = ends[at]
        sealed = bytearray(batch.sealed(7, 0, False))
        sealed[:8] = ends[at].to_bytes(8, "big")
        ends[at] += batch.count
        columns = Table("t", at, ("key", "value", "headers", "partition", "offset"))
        for chunk in read_chunks(memoryview(sealed), 0, 2**40, None, Room()):
            found += columns.batch(chunk, 0, 2**40).to_pylist()
    return found


def plain(row: Any) -> str:
    """No headers and an empty list of them are the same record."""
    return repr((row["key"], row["value"], [(each["key"], each["value"]) for each in row["headers"] or ()]))


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(data, data, headers), min_size=1, max_size=12),
    st.sampled_from(CODECS),
    st.sampled_from([1, 100, 100_000]),
)
def test_what_is_written_is_read(rows: list[Any], codec: Compression, batch_bytes: int) -> None:
    given_rows = [{"key": key, "value": value, "headers": some} for key, value, some in rows]
    found = read_back(pa.Table.from_pylist(given_rows, ROW), codec, batch_bytes)
    assert sorted(map(plain, found)) == sorted(map(plain, given_rows))
    for partition in range(3):
        offsets = [each["offset"] for each in found if each["partition"] == partition]
        assert offsets == list(range(len(offsets)))


@given(
    st.lists(st.tuples(data, st.text(max_size=5) | st.none()), min_size=1, max_size=20),
    st.integers(0, 3),
    st.integers(1, 9),
    st.integers(1, 400),
)
def test_rows_are_sorted_and_cut_as_plain_python_does_it(
    given_rows: list[Any], skipped: int, partitions: int, bytes_max: int
) -> None:
    keys, values = ([row[side] for row in given_rows] for side in (0, 1))
    table = pa.table({"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.string())})
    rows = Rows(table.slice(min(skipped, len(keys) - 1)), 1000)
    keys, values = keys[-rows.count :], values[-rows.count :]
    assert [rows.keys.value(row) for row in range(rows.count)] == keys
    assert [rows.values.value(row) for row in range(rows.count)] == [
        None if each is None else each.encode() for each in values
    ]
    some = np.arange(rows.count)
    chosen = np.full(rows.count, -1, np.int64)
    found = kernel.hash_keys(rows.keys.data, rows.keys.at, rows.keys.sizes, some, partitions, chosen)
    expected = [-1 if key is None else partition_for_key(key, partitions) for key in keys]
    assert (chosen.tolist(), found) == (expected, keys.count(None))

    chosen[chosen < 0] = 0
    bounds, order = np.empty(partitions + 1, np.int64), np.empty(rows.count, np.int64)
    kernel.group_rows(some, chosen, bounds, order)
    for partition in range(partitions):
        part = order[bounds[partition] : bounds[partition + 1]].tolist()
        assert part == [row for row in range(rows.count) if chosen[row] == partition]

    pieces = list(rows.pieces(order, bytes_max))
    assert [row for piece, _ in pieces for row in piece.tolist()] == order.tolist()
    for piece, total in pieces:
        assert total == sum(rows.sizes[piece])
        assert len(piece) == 1 or total <= bytes_max


def test_pieces_are_about_equal() -> None:
    rows = Rows(pa.table({"value": [b"x" * 68] * 110}), 0)  # 100 bytes each with what a record adds
    assert [len(piece) for piece, _ in rows.pieces(np.arange(110), 10_000)] == [55, 55]


def test_batches_of_a_topic_become_smaller_when_one_was_too_large() -> None:
    table = pa.table({"key": [b"k"] * 64, "value": [b"x" * 100] * 64})
    encoder = Encoder({"t": 1, "u": 1}, compression=0, batch_bytes=100_000, rng=random.Random(1))
    [whole] = encoder.batches(table, "t", 1000)
    assert [half.count for half in encoder.halves(whole)] == [32, 32]
    assert [batch.count for batch in encoder.batches(table, "t", 1000)] == [32, 32]
    assert [batch.count for batch in encoder.batches(table, "u", 1000)] == [64]


@pytest.mark.parametrize("codec", CODECS[1:])
@pytest.mark.parametrize("size", [0, 1, LZ4_BLOCK_BYTES - 1, LZ4_BLOCK_BYTES, 3 * LZ4_BLOCK_BYTES + 5])
@pytest.mark.parametrize("is_random", [True, False])
def test_bytes_of_any_kind_are_packed(codec: Compression, size: int, is_random: bool) -> None:
    raw = os.urandom(size) if is_random else b"abc" * size
    packed = Packing(codec).packed(np.frombuffer(raw, np.uint8))
    assert decompress(codec, packed[BATCH_OVERHEAD:]) == raw


@pytest.mark.parametrize(
    ("codec", "level"), [(Compression.GZIP, 1), (Compression.LZ4, 12), (Compression.ZSTD, 19)]
)
def test_a_level_is_taken(codec: Compression, level: int) -> None:
    table = pa.table({"key": [b"k"] * 50, "value": [b"value %d" % n for n in range(50)]})
    found = read_back(table, codec, 10_000, level)
    assert [each["value"] for each in found] == table["value"].to_pylist()
