"""Rows become batches: whoever reads them finds the rows, whatever the codec makes of their bytes."""

from __future__ import annotations

import os
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pyarrow", reason="needs the extra `spark`")

import pyarrow as pa

from barnabas.records.compression import Compression, decompress
from barnabas.spark.batches import read_chunks
from barnabas.spark.columns import Table
from barnabas.spark.encoding import Encoder
from barnabas.spark.packing import BATCH_OVERHEAD, LZ4_BLOCK_BYTES, Packing
from barnabas.spark.unpacking import Room

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
        at = batch.place.partition
        sealed = bytearray(batch.sealed(7, 0, ends[at], transactional=False))
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


@pytest.mark.parametrize("codec", CODECS[1:])
@pytest.mark.parametrize("size", [0, 1, LZ4_BLOCK_BYTES - 1, LZ4_BLOCK_BYTES, 3 * LZ4_BLOCK_BYTES + 5])
@pytest.mark.parametrize("is_random", [True, False])
def test_bytes_of_any_kind_are_packed(codec: Compression, size: int, is_random: bool) -> None:
    import numpy as np

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
