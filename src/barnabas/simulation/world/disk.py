"""The disk port in memory. It can fail, be full, stop between any two operations, and lose unsynced data.

In: the calls of `runtime.disk.Disk`. Out: the same results. One object belongs to one process. `after_kill`
(the page cache stays) and `after_power_loss` (see `inodes`) return the disk for the next process; then every
call to the old object raises `Stopped`, also in late destructors. `stop_at(n)` stops instead of the operation
with that number (a write may still store some bytes); tests try every n to find crash points.
Does not know: logs, virtual time.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random

from barnabas.runtime.disk import NO_DESCRIPTOR, Disk
from barnabas.simulation.world.inodes import File, Folder, Node

FIRST_DESCRIPTOR = 1_000_000  # far from real descriptors, so that mixing them up fails at once
UNLIMITED_BYTES = 1 << 50
WRITE, SYNC, READ = "write", "sync", "read"
KINDS = frozenset(
    {"create", WRITE, "truncate", SYNC, "rename", "unlink", "mkdir", "rmdir", READ}
)  # reads can fail, but a process does not stop at them


class Stopped(BaseException):
    """The calling process was stopped. Not an Exception, so that no code handles it and continues."""


@dataclass(slots=True)
class _Open:
    node: Node
    path: str
    position: int = 0


@dataclass(frozen=True, slots=True)
class Failure:
    """Operations of these kinds, on paths with this prefix, fail with this error number."""

    kinds: frozenset[str]
    number: int = errno.EIO
    prefix: str = "/"


class SimulatedDisk(Disk):
    """`operations` counts operations that change files, names or durability; `observer(kind, path)` is called
    for each."""

    def __init__(self, root: Folder | None = None, *, now_ms: Callable[[], int] = lambda: 0) -> None:
        self.root = root if root is not None else Folder()
        self.now_ms = now_ms
        self.locked_folders = set()
        self.operations = 0
        self.capacity_bytes = UNLIMITED_BYTES
        self.failures: list[Failure] = []
        self.observer: Callable[[str, str], None] | None = None
        self.on_stop: Callable[[], None] | None = None  # called once, when `stop_at` is reached
        self.is_stopped = False
        self._stop_at = -1
        self._torn: Random | None = None
        self._open: dict[int, _Open] = {}
        self._next_descriptor = FIRST_DESCRIPTOR

    # -- lives -------------------------------------------------------------------------------------

    def stop_at(self, operation: int, torn: Random | None = None) -> None:
        """Stop instead of the operation with this number (counted from 1). With `torn`, a stopped write
        stores some of its first bytes."""
        self._stop_at = operation
        self._torn = torn

    def stop(self) -> None:
        """Stop the process that uses this object."""
        self.is_stopped = True
        self._open.clear()

    def after_kill(self) -> SimulatedDisk:
        """The disk for the next process, with all written data, synced or not."""
        self.stop()
        return self._successor(self.root)

    def after_power_loss(self, rng: Random) -> SimulatedDisk:
        """The disk after a power loss, with all synced data and a part of the rest."""
        self.stop()
        return self._successor(self.root.after_power_loss(rng))

    def _successor(self, root: Folder) -> SimulatedDisk:
        disk = SimulatedDisk(root, now_ms=self.now_ms)
        disk.observer = self.observer
        disk.capacity_bytes = self.capacity_bytes
        disk.failures = self.failures
        return disk

    # -- descriptors -------------------------------------------------------------------------------

    def open(self, path: str, flags: int, mode: int = 0o777) -> int:
        self._check(READ, path)
        parent, name = self._parent(path)
        node = parent.entries.get(name) if name else self.root
        if node is None:
            if not flags & os.O_CREAT:
                raise missing(path)
            self._begin("create", path)
            node = File(modified_ms=self.now_ms())
            parent.change((name, node))
        elif flags & os.O_TRUNC and isinstance(node, File) and node.content:
            self._begin("truncate", path)
            node.truncate(0)
        self._next_descriptor += 1
        self._open[self._next_descriptor] = _Open(node, path)
        return self._next_descriptor

    def can_open(self, count: int) -> bool:
        """False while a failure makes `open` fail for lack of descriptors."""
        return not any(READ in each.kinds and each.number in NO_DESCRIPTOR for each in self.failures)

    def close(self, descriptor: int) -> None:
        if not self.is_stopped and self._open.pop(descriptor, None) is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    def pread(self, descriptor: int, length: int, position: int) -> bytes:
        found = self._descriptor(descriptor)
        self._check(READ, found.path)
        return bytes(file_of(found).content[position : position + length])

    def pwritev(self, descriptor: int, buffers: Iterable[bytes], position: int) -> int:  # type: ignore[override]
        return self._write(self._descriptor(descriptor), position, b"".join(buffers))

    def write(self, descriptor: int, data: bytes) -> int:  # type: ignore[override]
        found = self._descriptor(descriptor)
        written = self._write(found, found.position, bytes(data))
        found.position += written
        return written

    def _write(self, found: _Open, position: int, data: bytes) -> int:
        file = file_of(found)
        self._begin(
            WRITE, found.path, lambda torn: file.write(position, data[: torn.randrange(len(data) + 1)])
        )
        growth = position + len(data) - len(file.content)
        if growth > 0 and self.capacity_bytes != UNLIMITED_BYTES:
            free = self.capacity_bytes - self.used_bytes()
            if free < growth:
                data = (
                    data[: len(data) - growth + max(free, 0)] if growth < len(data) else data[: max(free, 0)]
                )
                if not data:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), found.path)
        file.write(position, data)
        file.modified_ms = self.now_ms()
        return len(data)

    def ftruncate(self, descriptor: int, length: int) -> None:
        found = self._descriptor(descriptor)
        self._begin("truncate", found.path)
        file_of(found).truncate(length)

    def fsync(self, descriptor: int) -> None:  # type: ignore[override]
        found = self._descriptor(descriptor)
        self._begin(SYNC, found.path)
        found.node.sync()

    def _descriptor(self, descriptor: int) -> _Open:
        if self.is_stopped:
            raise Stopped
        found = self._open.get(descriptor)
        if found is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return found

    # -- names -------------------------------------------------------------------------------------

    def replace(self, source: str, target: str) -> None:  # type: ignore[override]
        self._begin("rename", target)
        old_parent, old_name = self._parent(source)
        node = old_parent.entries.get(old_name)
        if node is None:
            raise missing(source)
        parent, name = self._parent(target)
        there = parent.entries.get(name)
        if isinstance(there, Folder) and there.entries:
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), target)
        if parent is old_parent:
            parent.change((old_name, None), (name, node))
        else:
            parent.change((name, node))
            old_parent.change((old_name, None))

    def unlink(self, path: str) -> None:  # type: ignore[override]
        self._begin("unlink", path)
        parent, name = self._parent(path)
        if name not in parent.entries:
            raise missing(path)
        parent.change((name, None))

    def mkdir(self, path: str, mode: int = 0o777) -> None:  # type: ignore[override]
        self._begin("mkdir", path)
        parent, name = self._parent(path)
        if name in parent.entries:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        parent.change((name, Folder()))

    def makedirs(self, path: str, mode: int = 0o777, exist_ok: bool = False) -> None:  # type: ignore[override]
        if self.is_directory(path):
            if not exist_ok:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
            return
        above = path.rstrip("/").rpartition("/")[0]
        if above:
            self.makedirs(above, mode, exist_ok=True)
        self.mkdir(path, mode)

    def rmdir(self, path: str) -> None:  # type: ignore[override]
        self._begin("rmdir", path)
        parent, name = self._parent(path)
        node = parent.entries.get(name)
        if node is None:
            raise missing(path)
        if isinstance(node, Folder) and node.entries:
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)
        parent.change((name, None))

    def listdir(self, path: str) -> list[str]:
        return sorted(self._folder(path).entries)

    # -- questions ---------------------------------------------------------------------------------

    def is_cached(self, descriptor: int, position: int) -> bool:
        return True

    def size_of(self, descriptor: int) -> int:
        return len(file_of(self._descriptor(descriptor)).content)

    def real_path(self, path: str) -> str:
        return path.rstrip("/") or "/"

    def size(self, path: str) -> int:
        node = self._node(path)
        return len(node.content) if isinstance(node, File) else 0

    def modified_ms(self, path: str) -> int:
        node = self._node(path)
        return node.modified_ms if isinstance(node, File) else 0

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        node = self._node(path)
        if isinstance(node, File):
            node.modified_ms = modified_ms

    def is_directory(self, path: str) -> bool:
        return isinstance(self._find(path), Folder)

    def exists(self, path: str) -> bool:
        return self._find(path) is not None

    def is_writable(self, path: str) -> bool:
        return self._find(path) is not None

    def space(self, path: str) -> tuple[int, int]:
        return self.capacity_bytes, max(0, self.capacity_bytes - self.used_bytes())

    def sizes(self, directory: str) -> dict[str, int]:
        entries = self._folder(directory).entries
        return {name: len(node.content) for name, node in sorted(entries.items()) if isinstance(node, File)}

    def subdirectories(self, directory: str) -> list[str]:
        entries = self._folder(directory).entries
        return sorted(name for name, node in entries.items() if isinstance(node, Folder))

    def read(self, path: str) -> bytes:
        self._check(READ, path)
        node = self._node(path)
        if isinstance(node, Folder):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return bytes(node.content)

    def lock(self, path: str) -> int | None:
        """Always succeeds: there is one process at a time, and its locks end with it."""
        return self.open(path, os.O_RDWR | os.O_CREAT)

    def used_bytes(self) -> int:
        def used(node: Node) -> int:
            return len(node.content) if isinstance(node, File) else sum(map(used, node.entries.values()))

        return used(self.root)

    # -- faults ------------------------------------------------------------------------------------

    def _begin(self, kind: str, path: str, partly: Callable[[Random], None] | None = None) -> None:
        """Called before every change: counts it, calls the observer, and may stop the process here."""
        if self.is_stopped:
            raise Stopped
        self.operations += 1
        if self.operations == self._stop_at:
            if partly is not None and self._torn is not None:
                partly(self._torn)
            self.stop()
            if self.on_stop is not None:
                self.on_stop()
            raise Stopped
        if self.observer is not None:
            self.observer(kind, path)
        self._check(kind, path)

    def _check(self, kind: str, path: str) -> None:
        if self.is_stopped:
            raise Stopped
        for failure in self.failures:
            if kind in failure.kinds and path.startswith(failure.prefix):
                raise OSError(failure.number, os.strerror(failure.number), path)

    # -- paths -------------------------------------------------------------------------------------

    def _find(self, path: str) -> Node | None:
        if self.is_stopped:
            raise Stopped
        node: Node = self.root
        for part in path.split("/"):
            if not part:
                continue
            below = node.entries.get(part) if isinstance(node, Folder) else None
            if below is None:
                return None
            node = below
        return node

    def _node(self, path: str) -> Node:
        node = self._find(path)
        if node is None:
            raise missing(path)
        return node

    def _folder(self, path: str) -> Folder:
        node = self._node(path)
        if not isinstance(node, Folder):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        return node

    def _parent(self, path: str) -> tuple[Folder, str]:
        above, _, name = path.rstrip("/").rpartition("/")
        return self._folder(above or "/"), name


def file_of(found: _Open) -> File:
    if isinstance(found.node, Folder):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), found.path)
    return found.node


def missing(path: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
