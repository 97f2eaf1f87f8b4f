"""Records and batches that the tests of this folder share."""

from hypothesis import strategies as st

from barnabas.records.batch import compute_crc
from barnabas.records.record import NEXT_OFFSET, Record, build_batch

NOW_MS = 1_800_000_000_000
INT63 = 2**62

blobs = st.none() | st.binary(max_size=300)
headers = st.lists(st.tuples(st.text(max_size=20), blobs), max_size=4).map(tuple)
records = st.lists(
    st.builds(
        Record,
        offset=st.just(NEXT_OFFSET),
        timestamp=st.integers(0, INT63),
        key=blobs,
        value=blobs,
        headers=headers,
    ),
    min_size=1,
    max_size=20,
)


def record(key: bytes | None = b"k", value: bytes | None = b"v", timestamp: int = NOW_MS) -> Record:
    return Record(timestamp=timestamp, key=key, value=value)


def two_records(**fields: object) -> bytearray:
    return build_batch([record(), record()], **fields)  # type: ignore[arg-type]


def patched(batch: bytearray, at: int, replacement: bytes) -> bytearray:
    """The batch with bytes replaced and the checksum made right again."""
    batch[at : at + len(replacement)] = replacement
    batch[17:21] = compute_crc(batch, 0, len(batch)).to_bytes(4, "big")
    return batch
