"""One sync of a log: planned and finished by the thread that owns the log, run by any thread.

In: the segments and files that `Log.begin_sync` found not durable yet. `run` syncs them and stores an OSError
in `error`. It neither reads nor writes fields of the log that change. `Log.end_sync`, on the owner's thread
again, advances the recovery point, unless the log was truncated meanwhile.
Does not know: why a sync is due.
"""

from time import perf_counter_ns
from typing import TYPE_CHECKING

from barnabas.storage.files import names
from barnabas.storage.logs import producer_snapshots
from barnabas.storage.segments.segment import Segment

if TYPE_CHECKING:
    from barnabas.storage.logs.log import Log


class SyncWork:
    __slots__ = (
        "_log",
        "_segments",
        "_snapshots",
        "cleared_folder_dirty",
        "directory",
        "error",
        "includes_folder",
        "indexes_to",
        "is_done",
        "is_new",
        "now_ms",
        "target",
        "took_ns",
        "truncations",
    )

    def __init__(
        self,
        log: "Log",
        target: int,
        unsynced: list[Segment],
        *,
        only_folder: bool = False,
        now_ms: int | None = None,
    ) -> None:
        self._log = log
        first = log.segments[0]
        self._segments = [each for each in unsynced if each.base_offset < target or each is first]
        if only_folder:
            self._segments = []
        self._snapshots = [each.base_offset for each in unsynced]  # producer snapshots that may be new
        self.target = target  # records below it are durable afterwards
        # Final indexes of segments below it are durable, too. The indexes of the last segment are not final.
        count = min(len(self._segments), len(unsynced) - 1)
        self.indexes_to = unsynced[count].base_offset if self._segments else 0
        self.directory = log.directory
        self.is_new = log.is_new
        self.cleared_folder_dirty = log.folder_dirty
        # Sync the folder and its small files also while another sync does: if this one ended first without
        # them, it would report batches as durable whose file has no durable name yet.
        self.includes_folder = log.folder_dirty or log.folder_syncs > 0
        self.now_ms = now_ms
        self.truncations = log.truncations
        self.is_done = False
        self.took_ns = 0
        self.error: OSError | None = None

    def run(self) -> None:
        """Sync the files. Waits for the disk; any thread may call it."""
        started_ns = perf_counter_ns()
        try:
            for segment in self._segments:
                self._sync_segment(segment)
            if self.includes_folder:
                self._sync_folder()
        except OSError as error:
            self.error = error.with_traceback(None)  # the frames of a traceback would hold files open
        self.took_ns = perf_counter_ns() - started_ns
        self.is_done = True

    def _sync_segment(self, segment: Segment) -> None:
        try:
            segment.sync()
        except FileNotFoundError:
            if segment in self._log.segments:  # otherwise retention or compaction removed it meanwhile
                raise

    def _sync_folder(self) -> None:
        disk = self._log.context.disk
        for offset in self._snapshots:
            disk.sync_file(producer_snapshots.path_of(self.directory, offset))
        sync_folder(self._log, self.directory, is_new=self.is_new)


def sync_folder(log: "Log", directory: str, *, is_new: bool) -> None:
    """Sync a log's folder and its small files; for a new log also the parent folder."""
    disk = log.context.disk
    disk.sync_file(f"{directory}/{names.LEADER_EPOCH_CHECKPOINT}")
    disk.sync_file(f"{directory}/{names.PARTITION_METADATA}")
    disk.sync_directory(directory)
    if is_new:
        disk.sync_directory(directory.rpartition("/")[0])
