"""Prepares the snapshot of a leader for this node: decodes it, and finds what it changes.

In: the bytes of the snapshot, the image that this node has. Out: the image of the snapshot, and the delta
from the one to the other for listeners. All of it in steps: a snapshot may hold 100,000 partitions.
Does not know: files, the log, whether the snapshot is still wanted.
"""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.metadata.delta import RECORDS_PER_STEP, MetadataDelta
from barnabas.metadata.difference import compared
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage, Provenance
from barnabas.metadata.steps import Steps
from barnabas.quorum import snapshot_files
from barnabas.raft.snapshot_ids import SnapshotId
from barnabas.raft.voters import Membership


@dataclass(frozen=True, slots=True)
class Prepared:
    """A snapshot that can be installed."""

    snapshot: SnapshotId
    size_bytes: int
    content: snapshot_files.Content
    image: MetadataImage
    delta: MetadataDelta  # from the image that this node had when it began


def prepare(
    snapshot: SnapshotId, data: bytes, membership: Membership, before: MetadataImage
) -> Steps[Prepared]:
    """`membership` applies where the snapshot has no records of the quorum. Raises CorruptSnapshot."""
    loaded = MetadataDelta(EMPTY_IMAGE)
    name = f"the leader's snapshot {snapshot.file_name}"
    content = yield from snapshot_files.read_in_steps(data, name, membership, loaded.replay)
    image = loaded.apply(Provenance(snapshot.end_offset - 1, snapshot.epoch, content.last_timestamp_ms))
    delta = MetadataDelta(before)
    for count, record in enumerate(compared(before, image), 1):
        if record is not None:
            delta.replay(record)
        if not count % RECORDS_PER_STEP:
            yield
    return Prepared(snapshot, len(data), content, image, delta)
