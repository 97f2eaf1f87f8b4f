"""Records packed in steps equal the batch that `build_batch` makes at once, byte for byte."""

from __future__ import annotations

import pytest

from barnabas.metadata import serde
from barnabas.metadata.steps import at_once
from barnabas.protocol.log_records.metadata import NoOpRecord, TopicRecord
from barnabas.quorum.metadata_packing import RECORDS_PER_STEP, pack
from barnabas.records.record import Record, build_batch

LEVEL = 30


@pytest.mark.parametrize("number", [1, RECORDS_PER_STEP, 1000])
def test_the_bytes_are_the_same(number: int) -> None:
    records = [TopicRecord(name=f"topic-{i}", topic_id=bytes([i % 256]) * 16) for i in range(number - 1)]
    values = [serde.encode(record, LEVEL) for record in [*records, NoOpRecord()]]
    expected = build_batch(
        [Record(timestamp=1234, value=value) for value in values], base_offset=77, partition_leader_epoch=5
    )
    steps = pack([*records, NoOpRecord()], LEVEL, 1234, base_offset=77, epoch=5)
    assert at_once(steps) == expected


def test_it_pauses_every_few_records() -> None:
    steps = pack([NoOpRecord()] * 1000, LEVEL, 0)
    assert sum(1 for _ in steps) >= 1000 // RECORDS_PER_STEP
