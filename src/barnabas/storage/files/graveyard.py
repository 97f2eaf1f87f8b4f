"""What is deleted but still on disk: files and folders under a dead name, removed when their time has come.

In: paths that nobody will open again (`.deleted` files, `-delete` folders) and when they are due
(`file.delete.delay.ms`). Out: their removal, by whoever calls `remove_due`, in a thread: unlinking a large
file takes long. Readers that still hold a descriptor are not disturbed. After a restart, opening a log or a
log dir finds what was left by its name.
Does not know: why something died, logs.
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
    order: int  # of the burial: equal times leave in the order they came
    path: str
    is_folder: bool


class Graveyard:
    """May be used from several threads at once."""

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
        """A partition's folder with all that is in it."""
        self._add(path, due_ms, is_folder=True)

    def _add(self, path: str, due_ms: int, *, is_folder: bool) -> None:
        with self._lock:
            self._added += 1
            heapq.heappush(self._paths, DeletedPath(due_ms, self._added, path, is_folder))

    def next_due_ms(self) -> int | None:
        with self._lock:
            return self._paths[0].due_ms if self._paths else None

    def remove_due(self, now_ms: int) -> int | None:
        """Remove everything whose time has come (slow: call it from a thread); when the next is due. What
        cannot be removed is left to the next start."""
        while (deleted := self._pop_due(now_ms)) is not None:
            try:
                if deleted.is_folder:
                    delete_folder(self._disk, deleted.path)
                else:
                    self._disk.unlink(deleted.path)
            except FileNotFoundError:
                pass  # with its folder, or renamed with it and removed there
            except OSError as error:
                logger.error("Could not remove %s: %s", deleted.path, error)
        return self.next_due_ms()

    def _pop_due(self, now_ms: int) -> DeletedPath | None:
        with self._lock:
            if self._paths and self._paths[0].due_ms <= now_ms:
                return heapq.heappop(self._paths)
            return None

    def forget_below(self, directory: str) -> None:
        """The disk below has failed: leave alone what is there."""
        with self._lock:
            kept = [deleted for deleted in self._paths if not deleted.path.startswith(f"{directory}/")]
            heapq.heapify(kept)
            self._paths = kept


def delete_folder(disk: Disk, directory: str) -> None:
    """A partition's folder with its files; it has no folders in it."""
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
