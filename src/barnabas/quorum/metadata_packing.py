"""Packs metadata records into a batch in steps, since ten thousand records take a tenth of a second.

In: records, the cluster's `metadata.version`, a time. Out: a sealed batch. Its offset and epoch may be
written later: the checksum does not cover them.
Does not know: the log and the snapshots that use it.
"""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.metadata import serde
from barnabas.metadata.steps import Steps
from barnabas.protocol import Message
from barnabas.records.record import Record, batch_of_encoded, encode_record

RECORDS_PER_STEP = 16


def pack(
    records: Iterable[Message], level: int, now_ms: int, *, base_offset: int = 0, epoch: int = -1
) -> Steps[bytearray]:
    encoded: list[bytes] = []
    for delta, record in enumerate(records):
        encoded.append(encode_record(Record(value=serde.encode(record, level)), delta, 0))
        if not len(encoded) % RECORDS_PER_STEP:
            yield
    return batch_of_encoded(
        encoded, base_offset=base_offset, timestamp_ms=now_ms, partition_leader_epoch=epoch
    )
