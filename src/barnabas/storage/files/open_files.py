"""Open segment files: a bounded number of descriptors for any number of segments.

In: a segment that needs its file. Out: an `OpenFile`. A file is closed when nobody refers to it any more, so
rolling, deleting or evicting a segment never closes a descriptor under a reader that still holds a slice.
Which segments keep their file is decided by second chance: those used since the last look stay. Readers that
hold slices and do not read them cannot use up descriptors: beyond a bound only writers get another file.
Does not know: what is read and written, and by whom.
"""

import errno
from collections import deque
from threading import RLock
from typing import Protocol

from barnabas.runtime.descriptors import Shares
from barnabas.runtime.disk import CREATE, FILE_MODE, READ_WRITE, REAL_DISK, Disk

FILES_CLOSED_AT_SHORTAGE = 32  # files that are closed when the process lacks descriptors
GIVE_BACK_S_MAX = 0.01
HELD_BY_READERS_MIN = 16  # that readers may hold open beyond the limit; a quarter of it where that is more


class OpenFile:
    """A descriptor that lives as long as someone refers to it."""

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
    """What keeps a file open: here, a segment."""

    file: OpenFile | None
    file_used: bool

    @property
    def path(self) -> str: ...


class OpenFiles:
    """Opens files for their owners and takes them away again from those that have not used them lately."""

    __slots__ = ("__weakref__", "_open", "_owners", "disk", "held_max", "limit", "lock")

    def __init__(self, disk: Disk = REAL_DISK, limit: int | None = None) -> None:
        self.disk = disk
        self.limit = limit if limit is not None else Shares.of_process().files
        self.held_max = self.limit + max(self.limit // 4, HELD_BY_READERS_MIN)
        self._owners: deque[FileOwner] = deque()
        # One item a file: appending and popping are atomic, and destructors run in any thread.
        self._open: deque[None] = deque()
        # Names of files change under it too, so that a file is opened by its old name or its new one. A
        # thread takes it twice when opening lacks a descriptor and files are given back.
        self.lock = RLock()
        disk.descriptor_caches.add(self)

    def __len__(self) -> int:
        """Files that are open, those that only slices hold included."""
        return len(self._open)

    def open(self, owner: FileOwner, *, create: bool = False, is_writer: bool = False) -> OpenFile:
        """The owner's file. OSError (EMFILE) when readers hold too many, unless it is for a writer."""
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
        """The owner gives its file up (a slice may keep it open a little longer)."""
        with self.lock:
            owner.file = None

    def close_some(self) -> None:
        """The process lacks descriptors: close the files that were opened longest ago."""
        if not self.lock.acquire(timeout=GIVE_BACK_S_MAX):
            return  # held by a thread that may itself wait for another cache
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
