"""Whatever bytes arrive: an error of ours, never another exception."""

from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol import KafkaError
from barnabas.records import batch
from barnabas.records.compression import Compression
from barnabas.records.control import read_control
from barnabas.records.record import Record, build_batch, read_records
from barnabas.records.validation import AppendRules, validate_produce
from records.samples import NOW_MS, patched, records

RULES = [
    AppendRules(),
    AppendRules(compacted=True),
    AppendRules(append_time=True),
    AppendRules(compression=Compression.ZSTD, timestamp_before_max_ms=1000),
    AppendRules(compression=Compression.NONE, compacted=True, append_time=True),
]


def survive(data: bytes | bytearray) -> None:
    for call in (batch.validate, read_records, read_control):
        try:
            call(bytes(data))
        except KafkaError:
            pass
    try:
        assert all(header.size <= len(data) for _, header in batch.headers(data))
    except KafkaError:
        pass
    for rules in RULES:
        try:
            accepted, header = validate_produce(memoryview(bytearray(data)), rules, 9, NOW_MS, "t-0")
        except KafkaError:
            continue
        assert batch.validate(accepted) == header
        assert header.record_count == header.last_offset_delta + 1 > 0


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    survive(data)


@given(
    records,
    st.sampled_from(list(Compression)),
    st.lists(st.tuples(st.integers(0, 400), st.binary(min_size=1, max_size=5)), max_size=4),
)
def test_batches_with_bytes_changed_and_a_right_checksum(
    sent: list[Record], codec: Compression, changes: list[tuple[int, bytes]]
) -> None:
    built = build_batch(sent, compression=codec, producer_id=1, producer_epoch=0, base_sequence=0)
    for at, replacement in changes:
        position = at % len(built)
        built = patched(built, position, replacement[: len(built) - position])
    survive(built)


@given(st.binary(max_size=150), st.sampled_from(list(Compression)), st.integers(-5, 2**31 - 1))
def test_any_records_behind_a_right_header(data: bytes, codec: Compression, count: int) -> None:
    built = build_batch([Record(timestamp=NOW_MS)], compression=codec)
    built[batch.BATCH_OVERHEAD :] = data
    built[57:61] = count.to_bytes(4, "big", signed=True)
    built[23:27] = (count - 1).to_bytes(4, "big", signed=True)
    survive(batch.seal(built))


@given(records, st.integers(0, 400))
def test_batches_cut_anywhere(sent: list[Record], length: int) -> None:
    survive(build_batch(sent)[:length])
