"""Offline and cordoned log dirs, and their reports to the controller.

In: paths that could not be written or read, from any thread; `cordoned.log.dirs`. Out: partitions of a failed
dir that respond KAFKA_STORAGE_ERROR while the others work; ids of dirs for the next heartbeat. A node stops
if its metadata log or its last log dir failed, or if the controller does not learn of a failure within
`log.dir.failure.timeout.ms`.
Does not know: what failed; how the controller reacts.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.storage.files.errors import StorageError
from barnabas.storage.files.names import META_PROPERTIES

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.replicas.replicas import Replicas
    from barnabas.quorum.broker_lifecycle import BrokerLifecycle
    from barnabas.settings import BrokerSettings
    from barnabas.storage.dirs.log_dir import LogDir

log = logging.getLogger("barnabas.directories")
CORDONED = "cordoned.log.dirs"


class LogDirStates:
    """`stop(error)` stops the node."""

    def __init__(
        self,
        broker: Broker,
        replicas: Replicas,
        lifecycle: BrokerLifecycle,
        stop: Callable[[KafkaError], None],
    ) -> None:
        self._broker = broker
        self._replicas = replicas
        self._lifecycle = lifecycle
        self._stop = stop
        self._metadata_path = broker.settings.metadata_log_dir
        self.is_closed = False
        self._cordon(broker.settings, broker.settings)
        broker.dynamic.on_change((CORDONED,), self._cordon)

    def _cordon(self, before: BrokerSettings, after: BrokerSettings) -> None:
        self._lifecycle.cordoned_log_dirs = self._broker.log_dirs.cordon(after[CORDONED])
        self._lifecycle.heartbeat_soon()

    # -- failures ----------------------------------------------------------------------------------

    def disk_failed(self, path: str, reason: str, number: int) -> None:
        """Report a failed path. May be called from any thread."""
        if not self.is_closed:
            self._broker.loop.call_soon_threadsafe(self._fail, path, reason, number)

    def _fail(self, path: str, reason: str, number: int) -> None:
        log_dirs = self._broker.log_dirs
        directory = log_dirs.dir_with_path(path)
        if directory is None and f"{path}/".startswith(f"{self._metadata_path}/") and not self.is_closed:
            self._stop_node(f"the metadata log's dir has failed: {reason}")
        if directory is None or directory.failure is not None or self.is_closed:
            return
        if number == errno.ENOENT and log_dirs.context.disk.exists(f"{directory.path}/{META_PROPERTIES}"):
            return  # a file was deleted; the disk works
        self._take_offline(directory, reason)

    def _take_offline(self, directory: LogDir, reason: str) -> None:
        self._replicas.write_all()
        if directory.path == self._metadata_path:
            directory.failure = reason
            self._stop_node(f"the metadata log's dir has failed: {reason}")
            return
        try:
            offline = self._broker.log_dirs.fail(directory, reason)
        except StorageError as error:
            self._stop_node(str(error))
            return
        for where in offline:
            self._replicas.take_offline(where)
        log.error("%d partitions are offline with %s", len(offline), directory.path)
        self._report(directory)

    def _report(self, directory: LogDir) -> None:
        """Report a failed dir. Until the controller knows, clients are sent to a leader that cannot serve."""
        lifecycle = self._lifecycle
        lifecycle.offline_log_dirs.append(directory.id)
        count = len(lifecycle.offline_log_dirs)
        lifecycle.heartbeat_soon()

        def check() -> None:
            if lifecycle.offline_log_dirs_reported < count and not self.is_closed:
                self._stop_node(f"the controller did not learn in time that {directory.path} has failed")

        timeout_ms: int = self._broker.settings["log.dir.failure.timeout.ms"]
        self._broker.loop.call_later(timeout_ms / 1000, check)

    def _stop_node(self, reason: str) -> None:
        self._stop(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, reason))
