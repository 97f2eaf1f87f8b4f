from hypothesis import given
from hypothesis import strategies as st

from barnabas.records import batch
from barnabas.records.batch import DELETE_HORIZON_FLAG
from barnabas.records.compression import Compression
from barnabas.records.recompress import recompress, reframe, retain
from barnabas.records.record import Record, build_batch, payload, read_records, scan
from records.samples import record, records, two_records

codecs = st.sampled_from(list(Compression))


@given(records, codecs, codecs)
def test_another_codec_changes_nothing_else(
    sent: list[Record], source: Compression, target: Compression
) -> None:
    before = build_batch(
        sent, base_offset=5, compression=source, producer_id=1, producer_epoch=2, base_sequence=3
    )
    after = recompress(before, target)
    header, old = batch.validate(after), batch.peek(before)
    assert read_records(after) == read_records(before)
    assert header.compression == target
    for field in set(batch.FIELDS) - {"batch_length", "crc", "attributes"}:
        assert getattr(header, field) == getattr(old, field)


@given(records, codecs, st.data())
def test_a_batch_keeps_its_offsets_when_records_are_taken_out(
    sent: list[Record], codec: Compression, data: st.DataObject
) -> None:
    before = build_batch(sent, base_offset=100, compression=codec)
    header = batch.peek(before)
    content = payload(before, header)
    keep = data.draw(st.lists(st.booleans(), min_size=len(sent), max_size=len(sent)))
    kept = [raw for raw, wanted in zip(scan(content, header.record_count), keep, strict=True) if wanted]
    after = retain(header, content, kept)
    found = batch.validate(after)
    assert (found.base_offset, found.last_offset) == (header.base_offset, header.last_offset)
    expected = [one for one, wanted in zip(read_records(before), keep, strict=True) if wanted]
    assert read_records(after) == expected


def test_a_delete_horizon_takes_the_place_of_the_base_timestamp() -> None:
    before = two_records()
    header = batch.peek(before)
    after = reframe(
        header,
        before[batch.BATCH_OVERHEAD :],
        attributes=header.attributes | DELETE_HORIZON_FLAG,
        base_timestamp=12345,
    )
    assert batch.validate(after).delete_horizon_ms == 12345


def test_recompressing_to_none_equals_building_uncompressed() -> None:
    sent = [record(value=b"v" * 50)] * 30
    assert recompress(build_batch(sent, compression=Compression.LZ4), Compression.NONE) == build_batch(sent)
