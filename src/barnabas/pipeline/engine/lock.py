"""One run a lake: a lock that the system lets go of when its holder dies, however it dies.

In: the folder of a lake's state. Out: the lock held, or an error that names who has it. The processes that a
run starts inherit the lock, so that a lake is free only when the last of them is gone.
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
    """Who has the lock."""

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
    """Another run has the lake; the text says which."""


class LakeLock:
    """`with LakeLock(folder, "run"):`; `descriptor` is for children that are to hold it too."""

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
                f"another run has this lake: {holder(self.path.parent) or 'not known which'}."
                " Stop it first, or give this pipeline a lake of its own"
            ) from None
        me = {"pid": os.getpid(), "host": socket.gethostname(), "started": time.time(), "what": self.what}
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(me).encode(), 0)
        self._descriptor = descriptor
        return self

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)  # the file stays: who removes it may remove another's
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self if self._descriptor >= 0 else self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def holder(folder: Path) -> Holder | None:
    """Who wrote his name into the lock last; None where nobody did."""
    try:
        found = json.loads((folder / FILE_NAME).read_text())
        return Holder(found["pid"], found["host"], found["started"], found["what"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def is_held(folder: Path) -> bool:
    """Whether a run has the lake now."""
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
