"""The row of `bench.stalls` about records that the broker must read: strict validation, another compression.

In: a stage. Out: a row, after a call of `register`. Apache Kafka knows no strict validation: it always reads
all records.
Does not know: how waits are measured.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING

import cramjam

from bench import frames
from bench.brokers import Barnabas, create_topics
from bench.generator import LoadError

if TYPE_CHECKING:
    from bench.stalls import Disturb, Stage

TOPIC = "validated"
RECORDS, VALUE_BYTES = 880, 1_000
REQUESTS = 40
ZSTD, ZSTD_LEVEL = 4, 3


def register(row: Callable[[str], Callable[[Disturb], Disturb]]) -> None:
    row("stall-validation")(validate)


def validate(stage: Stage) -> None:
    """One client sends large batches, one after the other, whose records are all read and compressed anew."""
    own = {"barnabas.produce.validation": "strict"} if isinstance(stage.broker, Barnabas) else {}
    create_topics(stage.broker, {TOPIC: 1}, {"compression.type": "lz4", **own})
    frame = frames.produce_frame(TOPIC, [(0, zstd_batch())])
    error_at = frames.error_at(TOPIC) - frames.SIZE_BYTES
    with stage.watched():
        for _ in range(REQUESTS):
            if error := struct.unpack_from(">h", stage.ask(frame), error_at)[0]:
                raise LoadError(f"a batch of 880 KB was refused with error {error}")


def zstd_batch() -> bytes:
    """A batch whose values compress to half of their size, as many do."""
    rng = random.Random(1)
    values = [rng.randbytes(VALUE_BYTES // 2) + bytes(VALUE_BYTES // 2) for _ in range(RECORDS)]
    return frames.batch_with(
        values, ZSTD, lambda body: bytes(cramjam.zstd.compress(body, ZSTD_LEVEL))
    ).content
