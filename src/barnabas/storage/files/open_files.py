"""Open segment files: a bounded number of descriptors for any number of segments.

In: a segment that needs its file. Out: an `OpenFile`. The last reference to it closes the descriptor, so
rolling, deleting or evicting a segment does not disturb a reader that holds a slice. Eviction is by second
chance: files used since the last pass stay. Readers that hold slices without reading them cannot use up the
descriptors: beyond a bound, only writers get another file.
Does not know: what is read and written.
"""

import errno
from collections import deque
from threading import RLock
from typing import Protocol

from barnabas.runtime.descriptors import Shares
from barnabas.runtime.disk import CREATE, FILE_MODE, READ_WRITE, REAL_DISK, Disk

FILES_CLOSED_AT_SHORTAGE = 32  # how many files to close when the process has no descriptor left
GIVE_BACK_S_MAX = 0.01
HELD_BY_READERS_MIN = 16  # files that readers may hold beyond the limit; at least a quarter of the limit


class OpenFile:
    """A descriptor that is closed with the last reference to this object."""

    __slots__ = ("_close", "_open", "descriptor")

    def __init__(self, disk: Disk, descriptor: int, open_now: "deque[None]") -> None:
        self._close = disk.close
        self._open = open_now
        self.descriptor = descriptor
        open_now.append(None)

    def __del__(self) -> None:
        self._open.pop()
        try:
            self._close(self.descriptor)
        except OSError:
            pass


class FileOwner(Protocol):
    """An object with a file that can be evicted: a segment."""

    file: OpenFile | None
    file_used: bool

    @property
    def path(self) -> str: ...


class OpenFiles:
    """Opens files for their owners, and evicts files that were not used recently."""

    __slots__ = ("__weakref__", "_open", "_owners", "disk", "held_max", "limit", "lock")

    def __init__(self, disk: Disk = REAL_DISK, limit: int | None = None) -> None:
        self.disk = disk
        self.limit = limit if limit is not None else Shares.of_process().files
        self.held_max = self.limit + max(self.limit // 4, HELD_BY_READERS_MIN)
        self._owners: deque[FileOwner] = deque()
        # One item for each open file. Its operations are atomic, and destructors run in any thread.
        self._open: deque[None] = deque()
        # Renames hold it too, so that a file is opened under its old or new name. Reentrant: `open` may call
        # `close_some` when the process has no descriptor left.
        self.lock = RLock()
        disk.descriptor_caches.add(self)

    def __len__(self) -> int:
        """The number of open files, including those that only slices hold."""
        return len(self._open)

    def open(self, owner: FileOwner, *, create: bool = False, is_writer: bool = False) -> OpenFile:
        """Return the owner's file, opening it if needed. OSError (EMFILE) if readers hold too many files; a
        writer always gets its file."""
        file = owner.file
        if file is not None:
            return file
        with self.lock:
            file = owner.file
            if file is None:
                if len(self._open) >= self.held_max and not is_writer:
                    raise OSError(errno.EMFILE, "readers hold too many log files open", owner.path)
                descriptor = self.disk.open(owner.path, CREATE if create else READ_WRITE, FILE_MODE)
                file = OpenFile(self.disk, descriptor, self._open)
                owner.file = file
                owner.file_used = True
                self._owners.append(owner)
                if len(self._owners) > self.limit:
                    self._evict()
        return file

    def close(self, owner: FileOwner) -> None:
        """Release the owner's file. A slice may keep it open a little longer."""
        with self.lock:
            owner.file = None

    def close_some(self) -> None:
        """Close the files that were opened longest ago, because the process has no descriptor left."""
        if not self.lock.acquire(timeout=GIVE_BACK_S_MAX):
            return  # waiting could deadlock: the holder may itself wait for another cache
        try:
            given = 0
            while self._owners and given < FILES_CLOSED_AT_SHORTAGE:
                owner = self._owners.popleft()
                given += owner.file is not None
                owner.file = None
        finally:
            self.lock.release()

    def _evict(self) -> None:
        owners = self._owners
        for _ in range(2 * len(owners)):
            if len(owners) <= self.limit:
                return
            owner = owners.popleft()
            if owner.file is None:
                continue
            if owner.file_used:
                owner.file_used = False
                owners.append(owner)
            else:
                owner.file = None
