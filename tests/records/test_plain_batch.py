"""A plain batch is accepted as it is by the ordinary validation too, and both tell the log the same of it."""

import random

import pytest

import poisoned_batches
from barnabas.protocol import KafkaError
from barnabas.records.batch import ATTRIBUTES_AT, BATCH_OVERHEAD, CRC_AT
from barnabas.records.compression import Compression
from barnabas.records.crc32c import crc32c
from barnabas.records.plain_batch import plain_batch
from barnabas.records.record import Record, build_batch
from barnabas.records.validation import AppendRules, Validation, validate_produce

NOW_MS = 1_700_000_000_000
VERSION = 12
RULES = (
    AppendRules(),
    AppendRules(validation=Validation.NONE),
    AppendRules(max_message_bytes=200),
    AppendRules(timestamp_after_max_ms=5),
    AppendRules(validation=Validation.STRICT),
    AppendRules(compacted=True),
    AppendRules(append_time=True),
    AppendRules(compression=Compression.GZIP),
)


def some_batch(rng: random.Random) -> bytearray:
    count = rng.choice((1, 1, 2, 5, 70, 200))
    latest_ms = NOW_MS + rng.choice((0, 0, 3, 10, 4_000_000))
    records = [
        Record(
            offset=index,
            timestamp=rng.choice((NOW_MS, latest_ms)),
            key=rng.choice((None, b"key")),
            value=rng.choice((None, bytes(rng.choice((0, 1, 30, 100))))),
        )
        for index in range(count)
    ]
    producer_id, epoch, sequence = rng.choice(((-1, -1, -1), (-1, -1, -1), (7, 0, 5), (7, 0, -1)))
    codec = rng.choice((Compression.NONE, Compression.NONE, Compression.GZIP))
    built = build_batch(
        records, compression=codec, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence
    )
    return bytearray(built)


def damage(rng: random.Random, batch: bytearray) -> None:
    if rng.random() < 0.2:
        batch += bytes(rng.randrange(1, 80))
    elif rng.random() < 0.2:
        del batch[-rng.randrange(1, len(batch) - BATCH_OVERHEAD) :]
    else:
        batch[rng.randrange(min(len(batch), BATCH_OVERHEAD + 10))] ^= 1 << rng.randrange(8)
    if rng.random() < 0.8:
        batch[CRC_AT:ATTRIBUTES_AT] = crc32c(bytes(batch[ATTRIBUTES_AT:])).to_bytes(4, "big")


def compare(batch: bytes | bytearray, rules: AppendRules) -> bool:
    """Whether the batch is plain; both ways of validating it must agree."""
    found = plain_batch(memoryview(bytearray(batch)), rules, NOW_MS)
    records = memoryview(bytearray(batch))
    try:
        accepted, header = validate_produce(records, rules, VERSION, NOW_MS)
    except KafkaError:
        assert found is None
        return False
    if found is not None:
        assert found == (header.size, header.last_offset_delta, header.max_timestamp, header.record_count)
        assert accepted is records and accepted == batch
    return found is not None


def test_every_plain_batch_is_one_that_is_accepted_as_it_is() -> None:
    rng = random.Random(1)
    plain = 0
    for _ in range(4000):
        batch = some_batch(rng)
        if rng.random() < 0.5:
            damage(rng, batch)
        plain += compare(batch, rng.choice(RULES))
    assert plain > 250


@pytest.mark.parametrize("count", [1, 2, 5, 70, 500])
def test_an_ordinary_uncompressed_batch_is_plain(count: int) -> None:
    records = [Record(offset=index, timestamp=NOW_MS, value=b"v" * 100) for index in range(count)]
    assert compare(build_batch(records), AppendRules())


@pytest.mark.parametrize("name", poisoned_batches.UNCOMPRESSED)
def test_poisoned_batches_are_plain_only_where_they_are_accepted(name: str) -> None:
    compare(poisoned_batches.UNCOMPRESSED[name], AppendRules())
