"""Logs of new partitions: planned on the loop, created in a thread.

In: a partition with its settings, its dir. Out: its folder and files, and the `Log`. Creating files may wait
for the disk's journal, so only `make` does it.
Does not know: how the dir is chosen (see `log_dirs`).
"""

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.storage.dirs.log_dir import LogDir
from barnabas.storage.files import names
from barnabas.storage.files.names import TopicPartition
from barnabas.storage.logs.context import LogContext
from barnabas.storage.logs.log import Log
from barnabas.storage.segments.settings import LogSettings


class NewLog:
    __slots__ = ("_leader_epoch", "_settings", "_topic_id", "directory", "log", "where")

    def __init__(
        self,
        partition: TopicPartition,
        directory: LogDir,
        settings: LogSettings,
        topic_id: bytes | None,
        leader_epoch: int = -1,
    ) -> None:
        self.where = partition
        self.directory = directory
        self.log: Log | None = None  # until `make` has created it
        self._settings = settings
        self._topic_id = topic_id
        self._leader_epoch = leader_epoch  # -1 unless this node leads the partition from its first record on

    def make(self, context: LogContext, now_ms: int) -> Log:
        """Create the folder, or open one that a crash left behind. Raises KafkaError. May run in a thread."""
        path = f"{self.directory.path}/{names.folder_name(self.where)}"
        settings, topic_id = self._settings, self._topic_id
        if not context.disk.exists(path):
            self.log = Log.create(
                path,
                settings,
                topic_id=topic_id,
                leader_epoch=self._leader_epoch,
                now_ms=now_ms,
                context=context,
            )
            return self.log
        log = Log.open(path, settings, now_ms=now_ms, context=context)
        if topic_id is not None and log.topic_id not in (None, topic_id):
            raise KafkaError(
                ErrorCode.INCONSISTENT_TOPIC_ID, f"{path} belongs to another topic that had the same name"
            )
        if topic_id is not None and log.topic_id is None:
            log.assign_topic_id(topic_id)
        self.log = log
        return log
