"""Logs on disk, byte for byte as Apache Kafka stores them.

A `Log` is one partition. `LogDirs` holds all partitions of a node with their checkpoints. `retention`,
`compaction` and `copying` work on a log's `segments` list, which is only ever replaced as a whole. Deleted
files wait in the `graveyard` until they are removed.
"""

from barnabas.storage.dirs.log_dirs import LogDirs
from barnabas.storage.files.errors import StorageError
from barnabas.storage.files.names import TopicPartition
from barnabas.storage.logs.context import LogContext
from barnabas.storage.logs.log import Log
from barnabas.storage.segments.log_slice import LogSlice
from barnabas.storage.segments.settings import LogSettings

__all__ = ["Log", "LogContext", "LogDirs", "LogSettings", "LogSlice", "StorageError", "TopicPartition"]
