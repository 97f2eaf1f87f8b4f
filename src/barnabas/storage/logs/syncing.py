"""One sync of a log: planned and noted by the thread that owns the log, done by any other.

In: what `Log.begin_sync` found to be not durable yet. Out, from `run`: the same on the disk, or the system's
error in `error`. `run` reads no field of the log that changes and writes none: `Log.end_sync`, on the owner's
thread again, raises the recovery point if the log is still the one that was planned for.
Does not know: why it is time to sync.
"""

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
        self._snapshots = [each.base_offset for each in unsynced]  # of producers: they may be new
        self.target = target  # everything below it is durable afterwards
        # Final indexes of segments below it, too. The last one's indexes are not final yet.
        count = min(len(self._segments), len(unsynced) - 1)
        self.indexes_to = unsynced[count].base_offset if self._segments else 0
        self.directory = log.directory
        self.is_new = log.is_new
        self.cleared_folder_dirty = log.folder_dirty
        # The folder and its small files, too: also while another sync is at it, since this one may end first,
        # and would call batches durable whose file has no durable name yet.
        self.includes_folder = log.folder_dirty or log.folder_syncs > 0
        self.now_ms = now_ms
        self.truncations = log.truncations
        self.is_done = False
        self.error: OSError | None = None

    def run(self) -> None:
        """Wait for the disk; in any thread."""
        try:
            for segment in self._segments:
                self._sync_segment(segment)
            if self.includes_folder:
                self._sync_folder()
        except OSError as error:
            self.error = error.with_traceback(None)  # whose frames hold files open
        self.is_done = True

    def _sync_segment(self, segment: Segment) -> None:
        try:
            segment.sync()
        except FileNotFoundError:
            if segment in self._log.segments:  # else retention or compaction took it away meanwhile
                raise

    def _sync_folder(self) -> None:
        disk = self._log.context.disk
        for offset in self._snapshots:
            disk.sync_file(producer_snapshots.path_of(self.directory, offset))
        sync_folder(self._log, self.directory, is_new=self.is_new)


def sync_folder(log: "Log", directory: str, *, is_new: bool) -> None:
    """Which files a folder has, and the small ones; a new folder's own name."""
    disk = log.context.disk
    disk.sync_file(f"{directory}/{names.LEADER_EPOCH_CHECKPOINT}")
    disk.sync_file(f"{directory}/{names.PARTITION_METADATA}")
    disk.sync_directory(directory)
    if is_new:
        disk.sync_directory(directory.rpartition("/")[0])
