"""The disk port: all file operations of the storage layer.

In: paths and descriptors. Out: results of the operating system; failures are plain `OSError`. `Disk` is the
real adapter. It holds the functions of `os` themselves, so a call costs only an attribute lookup. Functions
that need a new descriptor are wrapped: if the process has none left, caches of open files close some, and the
call is repeated. A simulated disk is a subclass that replaces all operations.
Does not know: logs, segments, when something has to be durable.
"""

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Protocol
from weakref import WeakSet

CREATE = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
READ_WRITE = os.O_RDWR | os.O_CLOEXEC
READ_ONLY = os.O_RDONLY | os.O_CLOEXEC
REPLACE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
FILE_MODE = 0o644

NOWAIT: int = getattr(os, "RWF_NOWAIT", 0)  # only Linux has reads that do not wait
NO_DESCRIPTOR = (errno.EMFILE, errno.ENFILE)
IOV_MAX = os.sysconf("SC_IOV_MAX") if hasattr(os, "sysconf") else 1024


class DescriptorCache(Protocol):
    """A cache of open files."""

    def close_some(self) -> None:
        """Close some files that are not in use."""


class Disk:
    """The real disk."""

    locked_folders: set[str] = (
        set()
    )  # folders locked by this process: file locks exclude other processes only

    descriptor_caches: WeakSet[DescriptorCache] = WeakSet()  # they close files when no descriptor is left

    is_encrypting = False  # some files are encrypted; see `storage.encryption`

    close = staticmethod(os.close)
    pread = staticmethod(os.pread)
    pwritev = staticmethod(os.pwritev)
    write = staticmethod(os.write)
    fsync = staticmethod(os.fsync)
    ftruncate = staticmethod(os.ftruncate)
    replace = staticmethod(os.replace)
    unlink = staticmethod(os.unlink)
    mkdir = staticmethod(os.mkdir)
    makedirs = staticmethod(os.makedirs)
    rmdir = staticmethod(os.rmdir)

    def open(self, path: str, flags: int, mode: int = 0o777) -> int:
        try:
            return os.open(path, flags, mode)
        except OSError as error:
            if error.errno not in NO_DESCRIPTOR:
                raise
        self._reclaim_descriptors()
        return os.open(path, flags, mode)

    def listdir(self, path: str) -> list[str]:
        try:
            return os.listdir(path)  # noqa: PTH208
        except OSError as error:
            if error.errno not in NO_DESCRIPTOR:
                raise
        self._reclaim_descriptors()
        return os.listdir(path)  # noqa: PTH208

    def _reclaim_descriptors(self) -> None:
        """Close cached files because no descriptor is left; the caller then tries again. The caller's error
        is not an argument: it would be a local variable of a frame in its own traceback, and that cycle would
        keep all those frames and their open files until the next garbage collection."""
        for cache in list(self.descriptor_caches):
            cache.close_some()

    def can_open(self, count: int) -> bool:
        """Whether `count` descriptors are free, for work that must not stop half-way."""
        found: list[int] = []
        try:
            while len(found) < count:
                found.append(self.open(os.devnull, READ_ONLY))
        except OSError:
            return False
        finally:
            for descriptor in found:
                os.close(descriptor)
        return True

    def is_cached(self, descriptor: int, position: int) -> bool:
        """Whether a byte is in the page cache, so that reading it does not wait for the device."""
        if not NOWAIT:
            return True
        try:
            return os.preadv(descriptor, [bytearray(1)], position, NOWAIT) == 1
        except BlockingIOError:
            return False
        except OSError:
            return True  # the file system does not support the query

    def size_of(self, descriptor: int) -> int:
        """The size of an open file."""
        return os.fstat(descriptor).st_size

    # Encryption at rest; see `storage.encryption`. A plain disk does nothing.

    @property
    def base(self) -> "Disk":
        """The disk without encryption."""
        return self

    def exported_keys(self, directory: str) -> dict[str, object] | None:
        """The keys of the log dir of a partition's folder, for another process of this node."""
        return None

    def is_plain(self, descriptor: int) -> bool:
        """Whether the bytes of the file are those that `pread` returns, so that `sendfile` may send them."""
        return True

    def mark_complete(self, path: str) -> None:
        """Mark the end of a file that gets no more data for now."""

    def is_complete(self, path: str) -> bool:
        """Whether the file still has the end that `mark_complete` has marked."""
        return True

    def is_outdated(self, path: str) -> bool:
        """Whether a new file would be stored in another way, with another key or without one."""
        return False

    def real_path(self, path: str) -> str:
        return os.path.realpath(path)

    def size(self, path: str) -> int:
        return self._stat(path).st_size

    def modified_ms(self, path: str) -> int:
        return self._stat(path).st_mtime_ns // 1_000_000

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        """Set the modification time of a file. A cleaned segment keeps the age of the segments it
        replaces."""
        os.utime(path, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))

    def is_directory(self, path: str) -> bool:
        try:
            return stat.S_ISDIR(self._stat(path).st_mode)
        except FileNotFoundError:
            return False

    def exists(self, path: str) -> bool:
        try:
            self._stat(path)
        except FileNotFoundError:
            return False
        return True

    def is_writable(self, path: str) -> bool:
        return os.access(path, os.R_OK | os.W_OK | os.X_OK)

    def space(self, path: str) -> tuple[int, int]:
        """Total and available bytes of the file system that contains `path`."""
        found = os.statvfs(path)
        return found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize

    def sizes(self, directory: str) -> dict[str, int]:
        """Name and size of every plain file of a folder."""
        with self._entries(directory) as entries:
            return {entry.name: entry.stat().st_size for entry in entries if entry.is_file()}

    def subdirectories(self, directory: str) -> list[str]:
        with self._entries(directory) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir())

    def _entries(self, directory: str) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
        try:
            return os.scandir(directory)
        except OSError as error:
            if error.errno not in NO_DESCRIPTOR:
                raise
        self._reclaim_descriptors()
        return os.scandir(directory)

    def read(self, path: str) -> bytes:
        """Read a whole small file."""
        descriptor = self.open(path, READ_ONLY)
        try:
            return self.pread(descriptor, os.fstat(descriptor).st_size, 0)
        finally:
            self.close(descriptor)

    def create(self, path: str, data: bytes = b"", *, sync: bool = False) -> None:
        """Create or overwrite a file. Not atomic."""
        descriptor = self.open(path, REPLACE, FILE_MODE)
        try:
            written = 0
            while written < len(data):
                written += self.write(descriptor, data[written:])
            if sync:
                self.fsync(descriptor)
        finally:
            self.close(descriptor)

    def sync_file(self, path: str) -> None:
        """Make a file durable. A missing file is ignored."""
        try:
            descriptor = self.open(path, READ_ONLY)
        except FileNotFoundError:
            return
        try:
            self.fsync(descriptor)
        finally:
            self.close(descriptor)

    # Syncing a folder makes its directory entries durable: files that were added, renamed or removed.
    sync_directory = sync_file

    def replace_file(self, path: str, data: bytes, *, sync: bool = True) -> None:
        """Replace a file atomically: after a crash it has the old or the new content."""
        temporary = f"{path}.tmp"
        self.create(temporary, data, sync=sync)
        self.replace(temporary, path)
        if sync:
            self.sync_directory(path.rpartition("/")[0] or ".")

    def lock(self, path: str) -> int | None:
        """Acquire an exclusive lock, which Apache Kafka respects too. None if another process holds it."""
        descriptor = self.open(path, CREATE, FILE_MODE)
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            self.close(descriptor)
            return None
        except BaseException:
            self.close(descriptor)
            raise
        return descriptor

    _stat = staticmethod(os.stat)


REAL_DISK = Disk()
