"""Open segment files: a bounded number of descriptors for any number of segments.

In: a segment that needs its file. Out: an `OpenFile`. A file is closed when nobody refers to it any more, so
rolling, deleting or evicting a segment never closes a descriptor under a reader that still holds a slice.
Which segments keep their file is decided by second chance: those used since the last look stay.
Does not know: what is read and written, and by whom.
"""

import resource
from collections import deque
from threading import Lock
from typing import Protocol

from barnabas.runtime.disk import CREATE, FILE_MODE, READ_WRITE, REAL_DISK, Disk

OPEN_FILES_MIN = 64
OPEN_FILES_MAX = 100_000


class OpenFile:
    """A descriptor that lives as long as someone refers to it."""

    __slots__ = ("_close", "descriptor")

    def __init__(self, disk: Disk, descriptor: int) -> None:
        self._close = disk.close
        self.descriptor = descriptor

    def __del__(self) -> None:
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


def default_limit() -> int:
    """Half of what the process may open; sockets need the rest."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return OPEN_FILES_MAX
    return max(OPEN_FILES_MIN, min(OPEN_FILES_MAX, soft // 2))


class OpenFiles:
    """Opens files for their owners and takes them away again from those that have not used them lately."""

    __slots__ = ("_owners", "disk", "limit", "lock")

    def __init__(self, disk: Disk = REAL_DISK, limit: int | None = None) -> None:
        self.disk = disk
        self.limit = limit if limit is not None else default_limit()
        self._owners: deque[FileOwner] = deque()
        self.lock = Lock()  # names of files change under it too: whoever opens one sees the old or the new

    def open(self, owner: FileOwner, *, create: bool = False) -> OpenFile:
        file = owner.file
        if file is not None:
            return file
        with self.lock:
            file = owner.file
            if file is None:
                file = OpenFile(
                    self.disk, self.disk.open(owner.path, CREATE if create else READ_WRITE, FILE_MODE)
                )
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
