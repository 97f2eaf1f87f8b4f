"""What all logs of a process share: the disk, open files, cached indexes, the graveyard, randomness.

Created once and handed to every log; a simulated node gives its own disk and seed.
Does not know: any log.
"""

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.runtime.disk import REAL_DISK, Disk
from barnabas.storage.graveyard import Graveyard
from barnabas.storage.index_cache import IndexCache
from barnabas.storage.open_files import OpenFiles

if TYPE_CHECKING:
    from barnabas.storage.log import Log


def ignore_roll(log: "Log", offset: int) -> None:
    """Nobody has asked to hear of rolls."""


class LogContext:
    """`on_roll(log, offset)` is called after a roll: everything below `offset` is complete and wants
    `log.sync(offset)` in a thread."""

    __slots__ = ("disk", "files", "graveyard", "indexes", "on_roll", "rng")

    def __init__(
        self,
        disk: Disk = REAL_DISK,
        *,
        open_files_max: int | None = None,
        rng: random.Random | None = None,
        on_roll: "Callable[[Log, int], None]" = ignore_roll,
    ) -> None:
        self.disk = disk
        self.files = OpenFiles(disk, open_files_max)
        self.graveyard = Graveyard(disk)
        self.indexes = IndexCache()
        self.rng = rng if rng is not None else random.Random()
        self.on_roll = on_roll
