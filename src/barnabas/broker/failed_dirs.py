"""Log dirs whose disk fails: their partitions go offline, the controller hears of it, the others go on.

In: paths that could not be written or read, from any thread. Out: partitions that answer KAFKA_STORAGE_ERROR,
the dir's id for the next heartbeat. Without its metadata log, or without any log dir, a node cannot go on.
Does not know: what failed; what a controller does about it.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.storage.errors import StorageError
from barnabas.storage.names import META_PROPERTIES

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.replicas import Replicas
    from barnabas.storage.log_dir import LogDir

log = logging.getLogger("barnabas.directories")


class FailedDirs:
    """`tell(directory_id)` has the controller told, `stop(error)` ends the node."""

    def __init__(
        self,
        broker: Broker,
        replicas: Replicas,
        tell: Callable[[bytes], None],
        stop: Callable[[KafkaError], None],
    ) -> None:
        self._broker = broker
        self._replicas = replicas
        self._tell = tell
        self._stop = stop
        self._metadata_path = broker.settings.metadata_log_dir.rstrip("/")
        self.is_closed = False

    def disk_failed(self, path: str, reason: str, number: int) -> None:
        """From any thread."""
        if not self.is_closed:
            self._broker.loop.call_soon_threadsafe(self._fail, path, reason, number)

    def _fail(self, path: str, reason: str, number: int) -> None:
        log_dirs = self._broker.log_dirs
        directory = log_dirs.dir_with_path(path)
        if directory is None or directory.failure is not None or self.is_closed:
            return
        if number == errno.ENOENT and log_dirs.context.disk.exists(f"{directory.path}/{META_PROPERTIES}"):
            return  # a file that somebody deleted; the disk is there
        self._take_offline(directory, reason)

    def _take_offline(self, directory: LogDir, reason: str) -> None:
        self._replicas.write_all()
        if directory.path == self._metadata_path:
            directory.failure = reason
            self._stop(
                KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"the metadata log's dir has failed: {reason}")
            )
            return
        try:
            gone = self._broker.log_dirs.fail(directory, reason)
        except StorageError as error:
            self._stop(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)))
            return
        for where in gone:
            self._replicas.take_offline(where)
        log.error("%d partitions are offline with %s", len(gone), directory.path)
        self._tell(directory.id)
