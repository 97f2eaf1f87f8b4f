"""Files and folders of a simulated file system, which remember unsynced changes.

In: changes. Out: the content that processes see, and the content after a power loss: all synced data, and of
the rest anything that POSIX allows: nothing, all, the first changes with the last one torn, or single pages
with zeros between them. Names belong to their folder: they are durable when the folder is synced, not when
the file is.
Does not know: paths, descriptors, when power is lost.
"""

from __future__ import annotations

from random import Random

PAGE_BYTES = 4096
# Chances that a power loss keeps of the unsynced data: nothing, all, or single pages; otherwise a prefix.
NOTHING, EVERYTHING, PAGES = 0.5, 0.15, 0.1


class File:
    """`content` is what reads see. Invariant: `_durable` with `_unsynced` applied to it is `content`."""

    __slots__ = ("_durable", "_unsynced", "content", "modified_ms")

    def __init__(self, content: bytes = b"", modified_ms: int = 0) -> None:
        """Make a file; all of `content` is durable."""
        self.content = bytearray(content)
        self.modified_ms = modified_ms
        self._durable = bytearray(content)
        self._unsynced: list[tuple[int, bytes | None]] = []  # position and data, or a new length and None

    @property
    def unsynced_changes(self) -> int:
        return len(self._unsynced)

    def write(self, position: int, data: bytes) -> None:
        if data:
            put(self.content, position, data)
            self._unsynced.append((position, data))

    def truncate(self, length: int) -> None:
        if length != len(self.content):
            cut(self.content, length)
            self._unsynced.append((length, None))

    def sync(self) -> None:
        for position, data in self._unsynced:
            change(self._durable, position, data)
        self._unsynced.clear()

    def after_power_loss(self, rng: Random) -> File:
        kept = bytearray(self._durable)
        chance = rng.random()
        unsynced = self._unsynced
        if chance < NOTHING or not unsynced:
            pass
        elif chance < NOTHING + EVERYTHING:
            kept = bytearray(self.content)
        elif chance < NOTHING + EVERYTHING + PAGES:
            for position, data in unsynced:
                keep_pages(kept, position, data, rng)
        else:
            whole = rng.randrange(len(unsynced))
            for position, data in unsynced[:whole]:
                change(kept, position, data)
            position, data = unsynced[whole]
            if data is not None:
                put(kept, position, data[: rng.randrange(len(data) + 1)])
        return File(bytes(kept), self.modified_ms)

    def after_kill(self) -> File:
        """The file for the next process: the same one, since the page cache stays."""
        return self


class Folder:
    """Names and their nodes, as processes see them and as they are on the device."""

    __slots__ = ("_durable", "_unsynced", "entries")

    def __init__(self, entries: dict[str, Node] | None = None) -> None:
        """Make a folder; all of its entries are durable."""
        self.entries: dict[str, Node] = dict(entries or {})
        self._durable: dict[str, Node] = dict(self.entries)
        self._unsynced: list[tuple[tuple[str, Node | None], ...]] = []  # each is atomic

    def change(self, *updates: tuple[str, Node | None]) -> None:
        """Add, replace (with a node) or remove (with None) names, atomically."""
        apply(self.entries, updates)
        self._unsynced.append(updates)

    def sync(self) -> None:
        self._durable = dict(self.entries)
        self._unsynced.clear()

    def after_power_loss(self, rng: Random) -> Folder:
        kept = dict(self._durable)
        if self._unsynced:
            # Changes of one folder reach the device in order; folders are independent.
            for updates in self._unsynced[: rng.randrange(len(self._unsynced) + 1)]:
                apply(kept, updates)
        return Folder({name: node.after_power_loss(rng) for name, node in kept.items()})

    def after_kill(self) -> Folder:
        return self


Node = File | Folder


def apply(entries: dict[str, Node], updates: tuple[tuple[str, Node | None], ...]) -> None:
    for name, node in updates:
        if node is None:
            entries.pop(name, None)
        else:
            entries[name] = node


def change(content: bytearray, position: int, data: bytes | None) -> None:
    if data is None:
        cut(content, position)
    else:
        put(content, position, data)


def put(content: bytearray, position: int, data: bytes) -> None:
    if position > len(content):
        content += bytes(position - len(content))
    content[position : position + len(data)] = data


def cut(content: bytearray, length: int) -> None:
    if length < len(content):
        del content[length:]
    else:
        content += bytes(length - len(content))


def keep_pages(content: bytearray, position: int, data: bytes | None, rng: Random) -> None:
    """Keep each page of a write or not, independently of the others."""
    if data is None:
        if rng.random() < 0.5:
            cut(content, position)
        return
    start = 0
    while start < len(data):
        stop = start + PAGE_BYTES - (position + start) % PAGE_BYTES
        if rng.random() < 0.5:
            put(content, position + start, data[start:stop])
        start = stop
