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


class Grave(NamedTuple):
    due_ms: int
    order: int  # of the burial: equal times leave in the order they came
    path: str
    is_folder: bool


class Graveyard:
    """May be used from several threads at once."""

    __slots__ = ("_burials", "_disk", "_graves", "_lock")

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._graves: list[Grave] = []  # a heap, the next due first
        self._burials = 0
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._graves)

    def bury_files(self, paths: Iterable[str], due_ms: int) -> None:
        for path in paths:
            self._bury(path, due_ms, is_folder=False)

    def bury_folder(self, path: str, due_ms: int) -> None:
        """A partition's folder with all that is in it."""
        self._bury(path, due_ms, is_folder=True)

    def _bury(self, path: str, due_ms: int, *, is_folder: bool) -> None:
        with self._lock:
            self._burials += 1
            heapq.heappush(self._graves, Grave(due_ms, self._burials, path, is_folder))

    def next_due_ms(self) -> int | None:
        with self._lock:
            return self._graves[0].due_ms if self._graves else None

    def remove_due(self, now_ms: int) -> int | None:
        """Remove everything whose time has come (slow: call it from a thread); when the next is due. What
        cannot be removed is left to the next start."""
        while (grave := self._take_due(now_ms)) is not None:
            try:
                if grave.is_folder:
                    delete_folder(self._disk, grave.path)
                else:
                    self._disk.unlink(grave.path)
            except FileNotFoundError:
                pass  # with its folder, or renamed with it and removed there
            except OSError as error:
                logger.error("Could not remove %s: %s", grave.path, error)
        return self.next_due_ms()

    def _take_due(self, now_ms: int) -> Grave | None:
        with self._lock:
            if self._graves and self._graves[0].due_ms <= now_ms:
                return heapq.heappop(self._graves)
            return None

    def forget_below(self, directory: str) -> None:
        """The disk below has failed: leave alone what is there."""
        with self._lock:
            kept = [grave for grave in self._graves if not grave.path.startswith(f"{directory}/")]
            heapq.heapify(kept)
            self._graves = kept


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
