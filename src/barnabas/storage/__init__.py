"""Logs on disk, byte for byte as Apache Kafka keeps them.

`Log` is one partition, `LogDirs` all of a node's partitions with their checkpoints. `retention`, `compaction`
and `copying` work on a log's `segments` list, which is only ever replaced as a whole; files that died wait in
the `graveyard`. Tiered storage finds its place beside them.
"""

from barnabas.storage.context import LogContext
from barnabas.storage.errors import StorageError
from barnabas.storage.log import Log
from barnabas.storage.log_dirs import LogDirs
from barnabas.storage.log_slice import LogSlice
from barnabas.storage.names import TopicPartition
from barnabas.storage.settings import LogSettings

__all__ = ["Log", "LogContext", "LogDirs", "LogSettings", "LogSlice", "StorageError", "TopicPartition"]
