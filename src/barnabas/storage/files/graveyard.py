"""The graveyard: deleted files and folders that are still on disk, and when to remove them.

In: paths that no code opens again (`.deleted` files, `-delete` folders) and when they are due
(`file.delete.delay.ms`). Out: `remove_due` removes them; it runs in a thread, because unlinking a large file
takes long. Readers that hold a descriptor can still read. After a restart, opening a log or log dir finds
leftovers by their suffix.
Does not know: logs, why something was deleted.
"""

import heapq
import logging
from collections.abc import Iterable
from threading import Lock
from typing import NamedTuple

from barnabas.runtime.disk import Disk

logger = logging.getLogger(__name__)


class DeletedPath(NamedTuple):
    due_ms: int
    order: int  # paths with equal times are removed in the order in which they were added
    path: str
    is_folder: bool


class Graveyard:
    """Paths to remove, by due time. Thread-safe."""

    __slots__ = ("_added", "_disk", "_lock", "_paths")

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._paths: list[DeletedPath] = []  # a heap, the next due first
        self._added = 0
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._paths)

    def add_files(self, paths: Iterable[str], due_ms: int) -> None:
        for path in paths:
            self._add(path, due_ms, is_folder=False)

    def add_folder(self, path: str, due_ms: int) -> None:
        """Add a partition's folder with all its files."""
        self._add(path, due_ms, is_folder=True)

    def _add(self, path: str, due_ms: int, *, is_folder: bool) -> None:
        with self._lock:
            self._added += 1
            heapq.heappush(self._paths, DeletedPath(due_ms, self._added, path, is_folder))

    def next_due_ms(self) -> int | None:
        with self._lock:
            return self._paths[0].due_ms if self._paths else None

    def remove_due(self, now_ms: int) -> int | None:
        """Remove all paths that are due. Slow: call it in a thread. Returns when the next path is due. A path
        that cannot be removed is left on disk until the next start."""
        while (deleted := self._pop_due(now_ms)) is not None:
            try:
                if deleted.is_folder:
                    delete_folder(self._disk, deleted.path)
                else:
                    self._disk.unlink(deleted.path)
            except FileNotFoundError:
                pass  # its folder was renamed or removed
            except OSError as error:
                logger.error("Could not remove %s: %s", deleted.path, error)
        return self.next_due_ms()

    def _pop_due(self, now_ms: int) -> DeletedPath | None:
        with self._lock:
            if self._paths and self._paths[0].due_ms <= now_ms:
                return heapq.heappop(self._paths)
            return None

    def forget_below(self, directory: str) -> None:
        """Forget the paths in a log dir whose disk has failed."""
        with self._lock:
            kept = [deleted for deleted in self._paths if not deleted.path.startswith(f"{directory}/")]
            heapq.heapify(kept)
            self._paths = kept


def delete_folder(disk: Disk, directory: str) -> None:
    """Delete a partition's folder with its files. It has no subfolders."""
    try:
        found = disk.listdir(directory)
    except FileNotFoundError:
        return
    for name in found:
        try:
            disk.unlink(f"{directory}/{name}")
        except FileNotFoundError:
            pass
    disk.rmdir(directory)
