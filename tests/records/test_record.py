from pathlib import Path

import pytest
from aiokafka.record.default_records import DefaultRecordBatch as AioBatch
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AioBuilder
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch as PythonBatch
from kafka.record.default_records import DefaultRecordBatchBuilder as PythonBuilder

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.records import batch
from barnabas.records.compression import Compression
from barnabas.records.record import Record, build_batch, read_records
from records.samples import NOW_MS, patched, record, records, two_records

RECORDED = Path(__file__).parent / "recorded"
codecs = st.sampled_from(list(Compression))


def numbered(sent: list[Record], base_offset: int = 0) -> list[Record]:
    return [one._replace(offset=base_offset + index) for index, one in enumerate(sent)]


def as_records(found) -> list[Record]:
    return [Record(r.offset, r.timestamp, r.key, r.value, tuple((k, v) for k, v in r.headers)) for r in found]


@given(records, codecs, st.integers(0, 2**62))
def test_records_come_back_out_of_a_batch(sent: list[Record], codec: Compression, base_offset: int) -> None:
    built = build_batch(sent, base_offset=base_offset, compression=codec)
    assert batch.validate(built).compression == codec
    assert read_records(built) == numbered(sent, base_offset)


@given(records, codecs)
def test_other_clients_read_our_batches(sent: list[Record], codec: Compression) -> None:
    built = bytes(build_batch(sent, compression=codec))
    for theirs in (PythonBatch(built), AioBatch(built)):
        assert theirs.validate_crc()
        assert as_records(theirs) == numbered(sent)


@given(records, codecs)
@pytest.mark.parametrize("builder_class", [PythonBuilder, AioBuilder])
def test_batches_of_other_clients_are_read(builder_class, sent: list[Record], codec: Compression) -> None:
    theirs = builder_class(
        magic=2,
        compression_type=int(codec),
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=10_000_000,
    )
    for index, one in enumerate(sent):
        theirs.append(index, one.timestamp, one.key, one.value, list(one.headers))
    built = bytes(theirs.build())
    batch.validate(built)
    assert read_records(built) == numbered(sent)


def test_uncompressed_bytes_are_those_of_kafka_python() -> None:
    sent = [
        Record(timestamp=NOW_MS + i, key=b"k" * i, value=None, headers=(("h", None),)) for i in range(200)
    ]
    theirs = PythonBuilder(2, 0, 0, 5, 6, 7, 10_000_000)
    for index, one in enumerate(sent):
        theirs.append(index, one.timestamp, one.key, one.value, list(one.headers))
    expected = bytearray(theirs.build())
    batch.assign(expected, 0, 0, -1)
    assert build_batch(sent, producer_id=5, producer_epoch=6, base_sequence=7) == expected


def test_librdkafka_and_java_batches_of_every_codec_are_read() -> None:
    log = (RECORDED / "codecs.log").read_bytes()
    found = {}
    for position, header in batch.headers(log):
        batch.validate(log, position)
        values = [one.value for one in read_records(log, position=position)]
        found[values[0].split()[0], header.compression] = values
    assert set(found) == {(b"some", codec) for codec in Compression} | {
        (b"java", codec) for codec in Compression if codec
    }
    assert all(len(values) == (30 if who == b"java" else 20) for (who, _), values in found.items())
    assert found[b"java", Compression.LZ4][-1] == b"java lz4 value value value 30"


def test_append_time_is_the_time_of_every_record() -> None:
    built = build_batch([record(timestamp=1), record(timestamp=2)], append_time_ms=99)
    assert [one.timestamp for one in read_records(built)] == [99, 99]


def test_offsets_with_gaps_survive() -> None:
    sent = [record()._replace(offset=10), record()._replace(offset=15), record()]
    built = build_batch(sent, base_offset=8)
    assert [one.offset for one in read_records(built)] == [10, 15, 16]
    assert batch.peek(built).last_offset == 16


def test_offsets_must_grow() -> None:
    with pytest.raises(ValueError, match="cannot follow"):
        build_batch([record()._replace(offset=5), record()._replace(offset=5)])


def test_an_empty_batch_is_not_built() -> None:
    with pytest.raises(ValueError, match="at least one"):
        build_batch([])


def test_a_record_without_anything_is_small() -> None:
    built = build_batch([Record(timestamp=0)])
    assert len(built) - batch.BATCH_OVERHEAD == 7
    assert read_records(built) == [Record(0, 0, None, None, ())]


@pytest.mark.parametrize(
    ("at", "replacement", "problem"),
    [
        (57, (3).to_bytes(4, "big"), "ends within record 2"),
        (57, (1).to_bytes(4, "big"), "are left behind"),
        (57, (-1).to_bytes(4, "big", signed=True), "cannot hold -1"),
        (61, b"\x7e", "size is 63"),
        (61, b"\x01", "size is -1"),
        (61, b"\x0e", "size is 7"),
        (65, b"\x40", "ends within record 0"),
        (69, b"\x02", "1 headers in 0 bytes"),
        (69, b"\x01", "-1 headers"),
        (62, b"\xff\xff\xff\xff\xff\xff\xff\xff", "malformed"),
    ],
)
def test_records_that_do_not_fit_their_batch_are_invalid(at: int, replacement: bytes, problem: str) -> None:
    with pytest.raises(KafkaError, match=problem) as refusal:
        read_records(patched(two_records(), at, replacement))
    assert refusal.value.code == ErrorCode.INVALID_RECORD


def test_old_formats_and_cut_batches_are_not_read() -> None:
    for damaged in (two_records()[:-1], b"", patched(two_records(), 16, b"\x01")):
        with pytest.raises(KafkaError) as refusal:
            read_records(damaged)
        assert refusal.value.code == ErrorCode.CORRUPT_MESSAGE
