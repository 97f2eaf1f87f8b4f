"""A disk of a process that has no descriptor left, whenever a test says so."""

import errno
import os

from barnabas.runtime.disk import Disk


class ShortDisk(Disk):
    is_short = False

    def open(self, path: str, flags: int, mode: int = 0o777) -> int:
        self._check()
        return super().open(path, flags, mode)

    def can_open(self, count: int) -> bool:
        return not self.is_short

    def _check(self) -> None:
        if self.is_short:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
