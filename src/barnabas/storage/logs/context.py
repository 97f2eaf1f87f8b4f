"""Objects that all logs of a node share: disk, open files, cached indexes, graveyard, random numbers.

Created once and passed to every log. A simulated node passes its own disk and seed.
Does not know: any log.
"""

import errno
import os
import random
from collections.abc import Callable
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING

from barnabas.metrics import Histogram
from barnabas.protocol import KafkaError
from barnabas.runtime.disk import REAL_DISK, Disk
from barnabas.storage.files.errors import disk_failure, is_disk_error
from barnabas.storage.files.graveyard import Graveyard
from barnabas.storage.files.open_files import OpenFiles
from barnabas.storage.segments.index_cache import IndexCache

if TYPE_CHECKING:
    from barnabas.storage.logs.log import Log


DESCRIPTORS_REQUIRED = 4


def ignore_roll(log: "Log", offset: int) -> None:
    """The default `on_roll`."""


def ignore_failure(path: str, reason: str, number: int) -> None:
    """The default `on_failure`."""


class LogContext:
    """The thread that owns a log calls `on_roll(log, offset)` after a roll: the segments below the offset are
    complete and should be synced. Any thread may call `on_failure(path, reason, errno)` when the disk of a
    path has failed: its log dir must go offline."""

    __slots__ = (
        "disk", "files", "graveyard", "indexes", "load_lock", "on_failure", "on_roll", "rng", "syncs", "time",
    )  # fmt: skip

    def __init__(
        self,
        disk: Disk = REAL_DISK,
        *,
        open_files_max: int | None = None,
        rng: random.Random | None = None,
        on_roll: "Callable[[Log, int], None]" = ignore_roll,
        on_failure: Callable[[str, str, int], None] = ignore_failure,
        time: Callable[[], float] = monotonic,
    ) -> None:
        self.disk = disk
        self.files = OpenFiles(disk, open_files_max)
        self.graveyard = Graveyard(disk)
        self.indexes = IndexCache()
        self.load_lock = Lock()  # held briefly to store an object that any thread may load on first use
        self.rng = rng if rng is not None else random.Random()
        self.on_roll = on_roll
        self.on_failure = on_failure
        self.time = time  # monotonic, in seconds
        self.syncs = Histogram()  # how long syncs of logs took, in nanoseconds

    def failure(self, doing: str, path: str, error: OSError) -> KafkaError:
        """Make the exception for a failed operation, and call `on_failure` if the disk has failed."""
        failure = disk_failure(doing, path, error)
        if is_disk_error(error):
            self.on_failure(path, failure.message, error.errno or 0)
        return failure

    def require_descriptors(self) -> None:
        """Raise OSError (EMFILE) unless some descriptors are free. Call this before work on several files
        that must not stop half-way."""
        if not self.disk.can_open(DESCRIPTORS_REQUIRED):
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
