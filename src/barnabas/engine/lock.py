"""The lock of a lake: one run at a time, on one host at a time.

In: the folder of a lake's state on this machine, and the records of the lake's lease. Out: the held lock, or
an error that names the holder. A file lock keeps processes of this machine apart: processes that a run starts
inherit it, and the operating system releases it when the last of them has ended. A lease in the lake
(`Lease`) keeps hosts apart.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from barnabas.engine.lease import LOOK_S, Lease, LeaseIsHeld, Term, Timing
from barnabas.engine.lease_records import Records
from barnabas.engine.lease_status import FENCED_FILE, LeaseStatus, boot_id, is_fenced

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
    """`with LakeLock(folder, "run"):`. Child processes that inherit `descriptor` hold the lock too.

    `records` are those of the lake's lease. `waits`: wait while another host holds the lease."""

    def __init__(
        self,
        folder: Path,
        what: str,
        records: Records | None = None,
        *,
        waits: bool = False,
        timing: Timing | None = None,
        is_stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self.path = folder / FILE_NAME
        self.what = what
        self.on_lost: Callable[[], object] = lambda: None  # called by a thread when another host took over
        self._folder = folder
        self._records = records
        self._waits = waits
        self._timing = timing
        self._is_stopping = is_stopping
        self._lease: Lease | None = None
        self._descriptor = -1

    @property
    def is_lost(self) -> bool:
        """Whether another host has taken the lease over."""
        return self._lease is not None and self._lease.is_lost

    @property
    def epoch(self) -> int:
        return 0 if self._lease is None or self._lease.term is None else self._lease.term.epoch

    @property
    def descriptor(self) -> int:
        if self._descriptor < 0:
            raise LakeIsBusy(f"{self.path} is not held")
        return self._descriptor

    def acquire(self) -> Self:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if self._waits and not self._is_stopping():
                    time.sleep(LOOK_S)
                    continue
                os.close(descriptor)
                raise LakeIsBusy(
                    f"another run has this lake: {holder(self.path.parent) or 'its holder is unknown'}."
                    " Stop it first, or give this pipeline a lake of its own"
                ) from None
        me = {"pid": os.getpid(), "host": socket.gethostname(), "started": time.time(), "what": self.what}
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(me).encode(), 0)
        self._descriptor = descriptor
        if self._records is not None:
            try:
                self._acquire_lease(self._records)
            except BaseException:
                self.release()
                raise
        return self

    def _acquire_lease(self, records: Records) -> None:
        """Take the lease of the lake; its epoch is known to all processes of this run."""
        file = os.fstat(self.descriptor)
        holder = f"pid {os.getpid()} on {socket.gethostname()} ({self.what}), {uuid.uuid4().hex[:8]}"

        def changed(term: Term, until: float) -> None:
            LeaseStatus(term.epoch, term.is_held, term.is_fenced, until, boot_id()).write(self._folder)

        (self._folder / FENCED_FILE).unlink(missing_ok=True)
        self._lease = Lease(
            records,
            holder,
            f"{boot_id()}:{file.st_dev}:{file.st_ino}",
            timing=self._timing,
            changed=changed,
            lost=lambda: self.on_lost(),
            is_fenced=lambda epoch: is_fenced(self._folder, epoch),
        )
        try:
            self._lease.acquire(waits=self._waits, is_stopping=self._is_stopping)
        except LeaseIsHeld as held:
            self._lease = None
            raise LakeIsBusy(
                f"another host works on this lake: {held}. Stop it first, give this pipeline a lake of its"
                " own, or wait for it with: barnabas pipeline run --standby"
            ) from None

    def forget_lease(self) -> None:
        """Leave the lease without a word to others, because the lake is deleted."""
        if self._lease is not None:
            self._lease.stop()
            self._lease = None

    def release(self) -> None:
        if self._lease is not None:
            self._lease.release()
            self._lease = None
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
