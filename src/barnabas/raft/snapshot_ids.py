"""Snapshots by name: the offset and epoch that one ends at, and which of several may be deleted.

In: file names, sizes, times. Out: `SnapshotId`s, and those that retention lets go, the oldest first; the
newest stays.
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
    """A snapshot replaces all records below `end_offset`, the last of them of `epoch`."""

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


def to_delete(
    snapshots: Mapping[SnapshotId, SnapshotFile],
    log_bytes_from: Callable[[int], int],
    now_ms: int,
    retention_bytes: int,
    retention_ms: int,
) -> list[SnapshotId]:
    """Old snapshots beyond `metadata.max.retention.bytes` or `.ms`; negative means without limit. The log
    goes with them: it starts at the first snapshot that stays, and `log_bytes_from` says how large it is
    then."""
    ordered = sorted(snapshots)
    snapshot_bytes = sum(file.size_bytes for file in snapshots.values())
    log_bytes = log_bytes_from(0)
    gone: list[SnapshotId] = []
    for snapshot, following in pairwise(ordered):
        file = snapshots[snapshot]
        too_large = 0 <= retention_bytes < log_bytes + snapshot_bytes
        too_old = retention_ms >= 0 and now_ms - file.last_timestamp_ms > retention_ms
        if not too_large and not too_old:
            break
        gone.append(snapshot)
        snapshot_bytes -= file.size_bytes
        log_bytes = log_bytes_from(following.end_offset)
    return gone
