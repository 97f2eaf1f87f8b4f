"""Snapshots of the metadata log over time: when one is due, writing it in a thread, deleting old ones.

In: the committed image, how much was written since the last snapshot. Out: `.checkpoint` files.
Does not know: what is committed, appending. `metadata_replica` uses it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from barnabas.metadata.image import MetadataImage
from barnabas.quorum import snapshot_files
from barnabas.raft.snapshot_ids import SnapshotFile, SnapshotId, snapshots_to_delete
from barnabas.runtime.disk import Disk

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SnapshotPolicy:
    """`metadata.log.max.record.bytes.between.snapshots` and the settings beside it; an interval of 0 means
    never."""

    bytes_between: int = 20 << 20
    interval_ms: int = 3_600_000
    retention_bytes: int = 100 << 20
    retention_ms: int = 7 * 24 * 3_600_000


@dataclass(frozen=True, slots=True)
class Written:
    snapshot: SnapshotId
    file: SnapshotFile
    deleted: tuple[SnapshotId, ...]


class MetadataSnapshots:
    """The snapshots in one folder. `write` may run in a thread and changes no state; `written` does, on the
    loop."""

    def __init__(
        self, disk: Disk, directory: str, policy: SnapshotPolicy, found: Mapping[SnapshotId, int], now_ms: int
    ) -> None:
        self._disk = disk
        self._directory = directory
        self._policy = policy
        # The creation time of existing snapshots is unknown until they are read: they count from now.
        self._files = {snapshot: SnapshotFile(size, now_ms) for snapshot, size in found.items()}
        self._last_ms = now_ms

    def is_due(self, bytes_since: int, now_ms: int) -> bool:
        by_time = 0 < self._policy.interval_ms <= now_ms - self._last_ms
        return bytes_since >= self._policy.bytes_between or (by_time and bytes_since > 0)

    def begin(self, image: MetadataImage, now_ms: int) -> SnapshotId | None:
        """The snapshot to write now; None when the image has not changed since the last one."""
        self._last_ms = now_ms
        snapshot = SnapshotId(image.provenance.offset + 1, image.provenance.epoch)
        return None if image.is_empty or snapshot in self._files else snapshot

    @property
    def ids(self) -> list[SnapshotId]:
        """The oldest first."""
        return sorted(self._files)

    def add(self, snapshot: SnapshotId, size_bytes: int, last_timestamp_ms: int) -> None:
        """Add a snapshot that was fetched from the leader."""
        self._files = {**self._files, snapshot: SnapshotFile(size_bytes, last_timestamp_ms)}

    @property
    def latest_bytes(self) -> int:
        return self._files[max(self._files)].size_bytes if self._files else 0

    @property
    def latest_ms(self) -> int:
        """When the latest was begun, or the node started."""
        return self._last_ms

    @property
    def first_end_offset(self) -> int:
        """The offset at which the log may start: every snapshot covers older records."""
        return min(self._files).end_offset

    def write(
        self,
        snapshot: SnapshotId,
        data: bytes,
        last_timestamp_ms: int,
        log_bytes_from: Callable[[int], int],
        now_ms: int,
    ) -> Written:
        """Write a snapshot and delete those past retention."""
        snapshot_files.store(self._disk, self._directory, snapshot, data)
        size = len(data)
        file = SnapshotFile(size, last_timestamp_ms)
        files = {**self._files, snapshot: file}
        policy = self._policy
        deleted = snapshots_to_delete(
            files, log_bytes_from, now_ms, policy.retention_bytes, policy.retention_ms
        )
        for old in deleted:
            self._disk.unlink(f"{self._directory}/{old.file_name}")
        logger.debug("wrote %s/%s, %d bytes", self._directory, snapshot.file_name, size)
        return Written(snapshot, file, tuple(deleted))

    def written(self, what: Written) -> bool:
        """Record a written snapshot; returns whether older ones were deleted."""
        files = {**self._files, what.snapshot: what.file}
        self._files = {known: file for known, file in files.items() if known not in what.deleted}
        return bool(what.deleted)
