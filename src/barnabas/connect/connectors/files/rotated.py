"""Finds a log file again after it was rotated: renamed, copied and truncated, or compressed.

In: the path of a log and a `Place` in it. Out: the file that holds the place now, and the files after it. A
file is known by its inode, by the hash of its first bytes, and by the hash of the bytes just before the
place; the hashes survive copies and compression. Does not know: records, offsets of Connect.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import lzma
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

HEAD_BYTES, BEFORE_BYTES = 1024, 256
FILES_MAX = 1000
OPENERS: Mapping[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
BROKEN = (OSError, EOFError, lzma.LZMAError)  # a compressed file that is still being written


@dataclass(frozen=True, slots=True)
class Place:
    """How far a file was read, and how the file is recognised."""

    inode: int
    position: int
    head: str  # of the first `head_bytes` bytes
    head_bytes: int
    before: str  # of the last bytes before `position`

    def offset(self) -> dict[str, Any]:
        return {
            "inode": self.inode,
            "position": self.position,
            "head": self.head,
            "head.bytes": self.head_bytes,
            "before": self.before,
        }

    @classmethod
    def of_offset(cls, offset: Mapping[str, Any]) -> Place:
        return cls(
            int(offset["inode"]),
            int(offset["position"]),
            str(offset["head"]),
            int(offset["head.bytes"]),
            str(offset["before"]),
        )


def place_in(file: IO[bytes], inode: int, position: int) -> Place:
    """The place at a position; the file's own position is changed."""
    head_bytes = min(position, HEAD_BYTES)
    file.seek(0)
    head = digest(file.read(head_bytes))
    start = max(0, position - BEFORE_BYTES)
    file.seek(start)
    return Place(inode, position, head, head_bytes, digest(file.read(position - start)))


def holds(file: IO[bytes], place: Place) -> bool:
    """Whether a file has the bytes that were read up to the place."""
    found = place_in(file, place.inode, place.position)
    return (found.head, found.before) == (place.head, place.before)


def digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=12).hexdigest()


def opened(path: Path) -> IO[bytes]:
    """The bytes of a file as they were before compression."""
    opener = OPENERS.get(path.suffix)
    file: IO[bytes] = opener(path, "rb") if opener is not None else path.open("rb")
    return file


def rotated_files(path: Path) -> list[Path]:
    """Files that the log was rotated to, oldest first: names that go on behind the log's with `.` or `-`, and
    those that have a date or number before its suffix."""
    stem, suffix = re.escape(path.stem), re.escape(path.suffix)
    pattern = re.compile(rf"{re.escape(path.name)}[.\-].+|{stem}[.\-][\d.\-_T]+{suffix}(\.\w+)?")
    found = (
        [each for each in path.parent.iterdir() if pattern.fullmatch(each.name)]
        if path.parent.is_dir()
        else []
    )
    plain = {each for each in found if each.suffix not in OPENERS}
    kept = []
    for each in found[:FILES_MAX]:
        if each.suffix in OPENERS and each.with_suffix("") in plain:
            continue  # being compressed: the plain one is still whole
        try:
            kept.append((each.stat().st_mtime_ns, each))
        except FileNotFoundError:
            continue
    return [each for _, each in sorted(kept, key=lambda one: (one[0], -rotation_number(one[1])))]


def rotation_number(path: Path) -> int:
    """`log.2.gz` is older than `log.1.gz` where both have the same time."""
    found = re.search(r"\.(\d{1,4})(\.\w+)?$", path.name)
    return int(found[1]) if found else 0


def found_again(path: Path, place: Place) -> tuple[Path, list[Path]] | None:
    """The file that holds the place, and those after it, the log itself last. None: no file does."""
    older = rotated_files(path)
    everything = [*older, path] if path.exists() else older
    best: Path | None = None
    for each in reversed(everything):  # the newest first: rotation is mostly recent
        try:
            with opened(each) as file:
                if place.position and not holds(file, place):
                    continue
            if each.stat().st_ino == place.inode:
                best = each
                break
        except BROKEN:
            continue
        if place.position and best is None:
            best = each
    if best is None:
        return None
    return best, everything[everything.index(best) + 1 :]
