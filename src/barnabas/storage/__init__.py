"""Logs on disk, byte for byte as Apache Kafka keeps them.

`Log` is one partition, `LogDirs` all of a node's partitions with their checkpoints. `retention`, `compaction`
and `copying` work on a log's `segments` list, which is only ever replaced as a whole; files that died wait in
the `graveyard`. Tiered storage finds its place beside them.
"""

from barnabas.storage.dirs.log_dirs import LogDirs
from barnabas.storage.files.errors import StorageError
from barnabas.storage.files.names import TopicPartition
from barnabas.storage.logs.context import LogContext
from barnabas.storage.logs.log import Log
from barnabas.storage.segments.log_slice import LogSlice
from barnabas.storage.segments.settings import LogSettings

__all__ = ["Log", "LogContext", "LogDirs", "LogSettings", "LogSlice", "StorageError", "TopicPartition"]
