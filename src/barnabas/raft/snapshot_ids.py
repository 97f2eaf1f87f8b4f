"""Names of snapshots: the end offset and epoch of each, and which of several may be deleted.

In: file names, sizes, times. Out: `SnapshotId`s, and those past retention, oldest first. The newest is never
among them.
Does not know: files themselves, what a snapshot holds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

_NAME = re.compile(r"(\d{20})-(\d{10})\.checkpoint")


class SnapshotId(NamedTuple):
    """A snapshot replaces all records below `end_offset`; the last of them has `epoch`."""

    end_offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        return f"{self.end_offset:020d}-{self.epoch:010d}.checkpoint"


BOOTSTRAP_SNAPSHOT = SnapshotId(0, 0)  # written by formatting: the first voters, no records


def parse_name(name: str) -> SnapshotId | None:
    found = _NAME.fullmatch(name)
    return SnapshotId(int(found[1]), int(found[2])) if found else None


@dataclass(frozen=True, slots=True)
class SnapshotFile:
    size_bytes: int
    last_timestamp_ms: int


def snapshots_to_delete(
    snapshots: Mapping[SnapshotId, SnapshotFile],
    log_bytes_from: Callable[[int], int],
    now_ms: int,
    retention_bytes: int,
    retention_ms: int,
) -> list[SnapshotId]:
    """The old snapshots beyond `metadata.max.retention.bytes` or `.ms`; a negative limit means none.
    Deleting snapshots shortens the log too: it starts at the first snapshot that remains, and
    `log_bytes_from` returns its size then."""
    ordered = sorted(snapshots)
    snapshot_bytes = sum(file.size_bytes for file in snapshots.values())
    log_bytes = log_bytes_from(0)
    deleted: list[SnapshotId] = []
    for snapshot, following in pairwise(ordered):
        file = snapshots[snapshot]
        too_large = 0 <= retention_bytes < log_bytes + snapshot_bytes
        too_old = retention_ms >= 0 and now_ms - file.last_timestamp_ms > retention_ms
        if not too_large and not too_old:
            break
        deleted.append(snapshot)
        snapshot_bytes -= file.size_bytes
        log_bytes = log_bytes_from(following.end_offset)
    return deleted
