"""The lock of a lake: one run at a time. The operating system releases it when its holder dies.

In: the folder of a lake's state. Out: the held lock, or an error that names the holder. Processes that a run
starts inherit the lock, so that the lake is free only when the last of them has ended.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

FILE_NAME = "run.lock"
SUPERVISES = "run of "


@dataclass(frozen=True, slots=True)
class Holder:
    """The holder of the lock."""

    pid: int
    host: str
    started: float
    what: str

    @property
    def is_supervisor(self) -> bool:
        return self.what.startswith(SUPERVISES)

    def __str__(self) -> str:
        at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.started))
        return f"pid {self.pid} on {self.host}, since {at} ({self.what})"


class LakeIsBusy(Exception):
    """Another run holds the lake; the message says which."""


class LakeLock:
    """`with LakeLock(folder, "run"):`. Child processes that inherit `descriptor` hold the lock too."""

    def __init__(self, folder: Path, what: str) -> None:
        self.path = folder / FILE_NAME
        self.what = what
        self._descriptor = -1

    @property
    def descriptor(self) -> int:
        if self._descriptor < 0:
            raise LakeIsBusy(f"{self.path} is not held")
        return self._descriptor

    def acquire(self) -> Self:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise LakeIsBusy(
                f"another run has this lake: {holder(self.path.parent) or 'its holder is unknown'}."
                " Stop it first, or give this pipeline a lake of its own"
            ) from None
        me = {"pid": os.getpid(), "host": socket.gethostname(), "started": time.time(), "what": self.what}
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(me).encode(), 0)
        self._descriptor = descriptor
        return self

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)  # the file stays: removing it could remove the lock of another run
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self if self._descriptor >= 0 else self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def holder(folder: Path) -> Holder | None:
    """The last holder that wrote its name into the lock; None if there was none."""
    try:
        found = json.loads((folder / FILE_NAME).read_text())
        return Holder(found["pid"], found["host"], found["started"], found["what"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def is_held(folder: Path) -> bool:
    """Whether a run holds the lake now."""
    try:
        descriptor = os.open(folder / FILE_NAME, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
