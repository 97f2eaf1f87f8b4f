"""One log dir: its lock, identity, checkpoints and clean-shutdown mark.

In: a path from `log.dirs`. Out: a dir that no other process uses, and the offsets of its checkpoints.
Does not know: what a log is, other dirs, where a new partition goes.
"""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.protocol import NULL_UUID
from barnabas.runtime.disk import Disk
from barnabas.storage.files import checkpoints, clean_shutdown, names
from barnabas.storage.files.checkpoints import CorruptCheckpoint
from barnabas.storage.files.errors import StorageError
from barnabas.storage.files.names import TopicPartition

if TYPE_CHECKING:
    from barnabas.storage.logs.log import Log

logger = logging.getLogger(__name__)


class LogDir:
    """`failure` is set when the disk has failed. The dir is offline from then on."""

    __slots__ = (
        "_lock",
        "_real_path",
        "disk",
        "failure",
        "future_logs",
        "id",
        "is_clean",
        "is_cordoned",
        "is_loaded",
        "last_epoch",
        "logs",
        "path",
        "planned",
    )

    def __init__(self, disk: Disk, path: str) -> None:
        self.disk = disk
        self.path = path
        self.id = NULL_UUID  # until `meta.properties` is read
        self.failure: str | None = None
        self.is_clean = False  # the last shutdown was clean
        self.is_loaded = False
        self.is_cordoned = False  # accepts no new partitions (KIP-1066)
        self.last_epoch = clean_shutdown.UNKNOWN_EPOCH  # the broker epoch before the last shutdown
        self.planned = 0  # logs that are being created
        self.logs: dict[TopicPartition, Log] = {}
        self.future_logs: dict[TopicPartition, Log] = {}  # being copied into this dir
        self._lock: int | None = None
        self._real_path = disk.real_path(path)

    def __repr__(self) -> str:
        return f"LogDir({self.path})"

    @property
    def absolute_path(self) -> str:
        """The path to show to users and clients; it does not depend on the working directory."""
        return str(Path(self.path).absolute())

    def lock(self) -> None:
        """Lock the dir against other nodes. Does nothing if it is locked already. A failing disk takes the
        dir offline; `StorageError` if another node holds the lock."""
        if self._lock is not None:
            return
        descriptor = None
        if self._real_path not in self.disk.locked_folders:
            try:
                descriptor = self.disk.lock(f"{self.path}/{names.LOCK}")
            except OSError as error:
                self.failure = f"cannot lock {self.path}: {error.strerror}"
                logger.error("Log dir %s is offline: %s", self.path, self.failure)
                return
        if descriptor is None:
            raise StorageError(
                f"{self.path} is in use: another Kafka or Barnabas node holds {self.path}/{names.LOCK}; "
                "stop it, or set log.dirs to another folder"
            )
        self.disk.locked_folders.add(self._real_path)
        self._lock = descriptor

    def unlock(self) -> None:
        if self._lock is not None:
            self.disk.locked_folders.discard(self._real_path)
            self.disk.close(self._lock)
            self._lock = None

    def begin(self) -> None:
        """Remove the clean-shutdown file. Only a clean shutdown writes it again."""
        self.is_clean = clean_shutdown.remove(self.disk, self.path)

    def end(self, broker_epoch: int) -> None:
        clean_shutdown.store(self.disk, self.path, broker_epoch)

    def check_mounted(self) -> None:
        """OSError if the dir was unmounted or moved away: then the path may be another, empty folder."""
        self.disk.size(f"{self.path}/{names.META_PROPERTIES}")

    def load_offsets(self, name: str) -> dict[TopicPartition, int]:
        """Read a checkpoint file. A damaged one counts as empty: recovery takes longer, no data is lost."""
        path = f"{self.path}/{name}"
        try:
            return checkpoints.load_offsets(self.disk, path)
        except CorruptCheckpoint as error:
            logger.warning("Ignoring %s: %s", path, error)
            return {}

    def store_offsets(self, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        checkpoints.store_offsets(self.disk, f"{self.path}/{name}", offsets)
