"""What all logs of a process share: the disk, open files, cached indexes, the graveyard, randomness.

Created once and handed to every log; a simulated node gives its own disk and seed.
Does not know: any log.
"""

import errno
import os
import random
from collections.abc import Callable
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING

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
    """Nobody has asked to hear of rolls."""


def ignore_failure(path: str, reason: str, number: int) -> None:
    """Nobody has asked to hear of disks that fail."""


class LogContext:
    """`on_roll(log, offset)` is called after a roll, by the thread that owns the log: everything below the
    offset is complete and wants to be synced. `on_failure(path, reason, errno)` is called, from any thread,
    when the disk below a path has failed: its log dir should not be used any more."""

    __slots__ = ("disk", "files", "graveyard", "indexes", "load_lock", "on_failure", "on_roll", "rng", "time")

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
        self.load_lock = Lock()  # held, briefly, to set what any thread may load when it is first asked for
        self.rng = rng if rng is not None else random.Random()
        self.on_roll = on_roll
        self.on_failure = on_failure
        self.time = time  # in seconds; nobody sets it

    def failure(self, doing: str, path: str, error: OSError) -> KafkaError:
        """What to raise for an operation that the system refused; who watches the log dirs hears of it."""
        failure = disk_failure(doing, path, error)
        if is_disk_error(error):
            self.on_failure(path, failure.message, error.errno or 0)
        return failure

    def require_descriptors(self) -> None:
        """Raise OSError (EMFILE) before work on several files that should not stop half-way for want of a
        descriptor, unless some are free."""
        if not self.disk.can_open(DESCRIPTORS_REQUIRED):
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
