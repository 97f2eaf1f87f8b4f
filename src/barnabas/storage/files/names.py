"""Names of files and folders in a log dir, the same as in Apache Kafka.

In: offsets, topics and partitions. Out: names, and the reverse. A partition's folder is `topic-0`, or
`topic-0.<32 hex digits>-delete`, `-stray` or `-future`. Its files are named after their first offset.
Does not know: what is in the files.
"""

import re
from typing import NamedTuple

LOG = ".log"
OFFSET_INDEX = ".index"
TIME_INDEX = ".timeindex"
TRANSACTION_INDEX = ".txnindex"
SNAPSHOT = ".snapshot"
SEGMENT_SUFFIXES = (LOG, OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX)

DELETED = ".deleted"
CLEANED = ".cleaned"
SWAP = ".swap"

DELETE_FOLDER = "-delete"
STRAY_FOLDER = "-stray"
FUTURE_FOLDER = "-future"

LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"

RECOVERY_POINT_CHECKPOINT = "recovery-point-offset-checkpoint"
LOG_START_OFFSET_CHECKPOINT = "log-start-offset-checkpoint"
HIGH_WATERMARK_CHECKPOINT = "replication-offset-checkpoint"
CLEANER_CHECKPOINT = "cleaner-offset-checkpoint"
META_PROPERTIES = "meta.properties"
ENCRYPTION_KEYS = "encryption-keys.json"  # wrapped data keys; Apache Kafka has no such file
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
LOCK = ".lock"
PROCESS_ID = ".barnabas.pid"  # process id of the node that uses the folder; Apache Kafka has no such file

METADATA_TOPIC = "__cluster_metadata"
REMOTE_INDEX_CACHE = "remote-log-index-cache"

FOLDER_NAME_BYTES_MAX = 255

_MARKED = re.compile(r"(\S+)-(\d+)\.(\S+)(-delete|-stray|-future)")
_PLAIN = re.compile(r"(\S+)-(\d+)")


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class FolderName(NamedTuple):
    """The parts of a partition's folder name. `mark` is empty or one of the folder suffixes."""

    topic_partition: TopicPartition
    mark: str


def offset_name(offset: int, suffix: str) -> str:
    return f"{offset:020d}{suffix}"


def offset_of(name: str) -> int | None:
    """The offset in a file name, or None if it has none."""
    digits = name.partition(".")[0]
    return int(digits) if len(digits) == 20 and digits.isdigit() and digits.isascii() else None


def folder_name(where: TopicPartition) -> str:
    return f"{where.topic}-{where.partition}"


def marked_folder_name(where: TopicPartition, mark: str, unique_id: str) -> str:
    """The folder name with a suffix (`-delete`, `-stray`, `-future`). Long topic names are cut to stay within
    the limit of the file system."""
    tail = f"-{where.partition}.{unique_id}{mark}"
    return where.topic[: FOLDER_NAME_BYTES_MAX - len(tail)] + tail


def parse_folder_name(name: str) -> FolderName | None:
    """Parse a folder name; None if it is not a partition's folder."""
    marked = _MARKED.fullmatch(name)
    if marked is not None:
        return FolderName(TopicPartition(marked[1], int(marked[2])), marked[4])
    if name.endswith((DELETE_FOLDER, STRAY_FOLDER, FUTURE_FOLDER)):
        return None
    plain = _PLAIN.fullmatch(name)
    return None if plain is None else FolderName(TopicPartition(plain[1], int(plain[2])), "")
