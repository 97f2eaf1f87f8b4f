"""Records behind a right header: those that are sound, and every way not to be."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.records import varint
from barnabas.records.batch import BATCH_OVERHEAD, BatchHeader
from barnabas.records.compression import DECOMPRESSED_BYTES_MAX, Compression, compress
from barnabas.records.record import Record, build_batch, payload, scan
from barnabas.records.record_checks import (
    RecordsSummary,
    is_one_plain_record,
    looks_valid,
    plain_prefix_of,
    walk,
)
from barnabas.records.validation import (
    AppendRules,
    NeedsThread,
    RecordsRejected,
    Validation,
    validate_produce,
)
from poisoned_batches import BODIES, CODECS, UNCOMPRESSED, batch_around, compressed, good, record, sized
from records.samples import NOW_MS, records

STRICT = AppendRules(validation=Validation.STRICT)
RELAXED = AppendRules(validation=Validation.RELAXED)
NONE = AppendRules(validation=Validation.NONE)

# What Apache Kafka 4.3.1 stores although it looks odd: uncompressed, and the same compressed.
STORED = {
    "a key of size -2",
    "a value of size -2",
    "a header value of size -2",
    "a header key that is not UTF-8",
    "a null header value",
    "attributes in a record",
    "a timestamp before 1970",
}
STORED_UNCOMPRESSED = STORED | {
    "offset deltas that start at one",
    "offset deltas with a gap",
    "offset deltas that do not move",
    "offset deltas backwards",
    "a negative offset delta",
}
STORED_COMPRESSED = {
    Compression.GZIP: STORED | {"two frames"},
    Compression.SNAPPY: STORED | {"two frames"},
    Compression.LZ4: STORED,  # Java's reader stops behind the first frame
    Compression.ZSTD: STORED | {"two frames"},
}
TIMES = {"a timestamp delta of ten bytes", "a timestamp in the far future"}


def never() -> None:
    """The pause of a thread that has nobody to wait for."""


def problem(batch: bytes, rules: AppendRules) -> KafkaError | None:
    try:
        validate_produce(memoryview(bytearray(batch)), rules, 9, NOW_MS, "topic-0", never)
    except KafkaError as error:
        return error
    return None


@pytest.mark.parametrize("name", UNCOMPRESSED)
def test_strict_validation_refuses_what_apache_kafka_refuses(name: str) -> None:
    found = problem(UNCOMPRESSED[name], STRICT)
    if name in STORED_UNCOMPRESSED:
        assert found is None
    else:
        assert isinstance(found, RecordsRejected)
        assert found.code == (ErrorCode.INVALID_TIMESTAMP if name in TIMES else ErrorCode.INVALID_RECORD)
        assert [index for index, _ in found.record_errors] == ([0] if name in TIMES else [])


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
def test_strict_validation_refuses_the_same_behind_a_codec(codec: Compression) -> None:
    stored = {name for name, batch in compressed(codec).items() if problem(batch, STRICT) is None}
    assert stored == STORED_COMPRESSED[codec]


@pytest.mark.parametrize("name", UNCOMPRESSED)
def test_relaxed_validation_refuses_small_batches_that_are_unsound(name: str) -> None:
    strict, relaxed = problem(UNCOMPRESSED[name], STRICT), problem(UNCOMPRESSED[name], RELAXED)
    if name in TIMES:  # the header does not say so, and nobody looks
        assert relaxed is None
    else:
        assert str(relaxed) == str(strict)


@pytest.mark.parametrize(
    "name", ["plain records under a codec", "no compressed bytes", "another codec's bytes"]
)
@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
def test_relaxed_validation_looks_at_the_first_compressed_bytes(codec: Compression, name: str) -> None:
    found = problem(compressed(codec)[name], RELAXED)
    assert found is not None and found.code == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("count", [5, 64, 65, 300, 9000])
@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda body, count: (body, count + 1), id="one more declared"),
        pytest.param(lambda body, count: (body, count - 1), id="one less declared"),
        pytest.param(lambda body, count: (body + b"\0", count), id="a byte behind"),
        pytest.param(lambda body, count: (body[:-1], count), id="a byte missing"),
        pytest.param(lambda body, count: (body, count * 1000), id="far more declared"),
        pytest.param(lambda body, count: (b"\x01" + body, count), id="a negative size first"),
        pytest.param(lambda body, count: (b"\xff\xff\xff\xff\x0f" + body, count), id="a huge size first"),
        pytest.param(lambda body, count: (bytes(len(body)), count), id="zeros"),
        pytest.param(lambda body, count: (b"text" * (len(body) // 4), count), id="text"),
    ],
)
def test_relaxed_validation_looks_at_both_ends_of_large_batches(count: int, spoil) -> None:
    sound = batch_around(good(count), count)
    assert problem(sound, RELAXED) is None
    assert looks_valid(memoryview(sound), len(sound), count, 0)
    found = problem(batch_around(*spoil(good(count), count)), RELAXED)
    assert found is not None and found.code == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("name", UNCOMPRESSED)
def test_without_validation_everything_is_stored(name: str) -> None:
    assert problem(UNCOMPRESSED[name], NONE) is None


@given(records)
def test_sound_records_pass_every_look(sent: list[Record]) -> None:
    batch = bytes(build_batch(sent))
    assert problem(batch, replace(RELAXED, timestamp_after_max_ms=2**63 - 1)) is None
    data = batch[BATCH_OVERHEAD:]
    deltas = [raw.timestamp_delta for raw in scan(data, len(sent))]
    has_null_key = any(each.key is None for each in sent)
    assert walk(data, len(sent)) == RecordsSummary(min(deltas), max(deltas), True, has_null_key)


@given(records, st.sampled_from(CODECS))
def test_sound_records_begin_as_their_codec_does(sent: list[Record], codec: Compression) -> None:
    batch = bytes(build_batch(sent, compression=codec))
    assert looks_valid(memoryview(batch), len(batch), len(sent), codec)


@given(records, st.lists(st.tuples(st.integers(0, 400), st.binary(min_size=1, max_size=3)), max_size=3))
def test_the_walk_and_the_scan_agree(sent: list[Record], changes: list[tuple[int, bytes]]) -> None:
    data = bytearray(build_batch(sent)[BATCH_OVERHEAD:])
    for at, replacement in changes:
        data[at % len(data) :][: len(replacement)] = replacement
        start = at % len(data)
        data[start : start + len(replacement)] = replacement[: len(data) - start]
    try:
        found = list(scan(bytes(data), len(sent)))
    except KafkaError:
        assert walk(bytes(data), len(sent)) is None
        return
    walked = walk(bytes(data), len(sent))
    if walked is None:  # sizes below -1, which Kafka takes for null
        assert any(raw.key_size < -1 or raw.value_size < -1 or raw.header_count for raw in found)
    else:
        assert walked.offsets_in_order == ([raw.offset_delta for raw in found] == list(range(len(found))))
        assert walked.timestamp_delta_max == max(raw.timestamp_delta for raw in found)
        assert walked.timestamp_delta_min == min(raw.timestamp_delta for raw in found)
        assert walked.has_null_key == any(raw.key_size < 0 for raw in found)


@given(st.none() | st.binary(max_size=200), st.none() | st.binary(max_size=9000), st.integers(0, 3))
def test_one_record_is_looked_at_as_a_whole(key: bytes | None, value: bytes | None, more: int) -> None:
    body = record(0, key=sized(key), value=sized(value))
    batch = batch_around(body, 1)
    is_plain = is_one_plain_record(batch, len(batch))
    assert is_plain or (key is not None and len(key) > 63) or (value is not None and len(value) > 8000)
    assert looks_valid(memoryview(batch), len(batch), 1, 0)
    for wrong in (body + bytes(more + 1), body[: -1 - more], body[:-1] + b"\x02"):
        batch = batch_around(wrong, 1)
        assert not is_one_plain_record(batch, len(batch))
        assert not looks_valid(memoryview(batch), len(batch), 1, 0)


def test_the_shape_of_one_record_is_that_of_a_real_one() -> None:
    seen = 0
    for size in range(9000):
        batch = build_batch([Record(value=bytes(size))])
        shape = plain_prefix_of(len(batch))
        assert shape is None or batch[BATCH_OVERHEAD:].startswith(shape)
        seen += shape is not None
    assert seen > 8000


def test_a_declared_count_does_not_keep_the_walk_busy() -> None:
    """Nor does a size that leads backwards."""
    for body in (bytes(40), record(0) + varint.encode(-20_000_000) + record(1)):
        batch = batch_around(body, 2**31 - 1)
        assert problem(batch, STRICT) is not None
        with pytest.raises(KafkaError):
            list(scan(payload(batch, BatchHeader(batch)), 2**31 - 1))


# Where the work is done


@pytest.mark.parametrize(
    ("batch", "rules"),
    [
        pytest.param(batch_around(good(600), 600), STRICT, id="many records"),
        pytest.param(batch_around(record(0, value=sized(bytes(70_000))), 1), STRICT, id="many bytes"),
        pytest.param(
            batch_around(record(0, value=sized(bytes(70_000))), 1, Compression.ZSTD), STRICT, id="unpacked"
        ),
        pytest.param(
            batch_around(record(0, value=sized(bytes(20_000))), 1),
            AppendRules(compression=Compression.GZIP),
            id="compressed anew",
        ),
        pytest.param(batch_around(good(600) + b"x", 600), RELAXED, id="suspicious"),
    ],
)
def test_long_work_is_not_done_on_the_loop(batch: bytes, rules: AppendRules) -> None:
    view = memoryview(bytearray(batch))
    with pytest.raises(NeedsThread):
        validate_produce(view, rules, 9, NOW_MS, "topic-0")
    assert view == batch  # it can be asked for again


def test_a_thread_pauses_on_its_way() -> None:
    pauses: list[int] = []
    batch = memoryview(bytearray(batch_around(good(5000), 5000)))
    validate_produce(batch, STRICT, 9, NOW_MS, "topic-0", lambda: pauses.append(1))
    assert len(pauses) >= 10


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
def test_a_small_batch_that_unpacks_to_far_more_is_too_large(codec: Compression) -> None:
    size = DECOMPRESSED_BYTES_MAX // 4
    bomb = compress(codec, bytes(size)) * 5
    batch = batch_around(bomb, 1, codec, is_packed=True)
    assert len(batch) < DECOMPRESSED_BYTES_MAX // 16
    rules = AppendRules(max_message_bytes=len(batch), validation=Validation.STRICT)
    found = problem(batch, rules)
    assert found is not None
    if codec in (Compression.GZIP, Compression.ZSTD):
        assert found.code == ErrorCode.MESSAGE_TOO_LARGE
        assert f"more than {DECOMPRESSED_BYTES_MAX} bytes" in found.message


def test_every_way_to_be_wrong_is_told_apart() -> None:
    assert len(set(UNCOMPRESSED.values())) == len(BODIES)
