"""Checkpoint files: small text files that are replaced as a whole.

In: an offset for each partition, or the leader epochs of one partition. Out:
`recovery-point-offset-checkpoint` and similar files in a log dir, `leader-epoch-checkpoint` in a partition's
folder. A file has a version, the number of entries, and one entry per line. After a crash it is the old or
the new file, never a mixture.
Does not know: what the offsets mean.
"""

from collections.abc import Collection, Iterable, Mapping

from barnabas.replication.leader_epochs import EpochEntry, LeaderEpochs
from barnabas.runtime.disk import Disk
from barnabas.runtime.pieces import Steps
from barnabas.storage.files import names
from barnabas.storage.files.names import TopicPartition

VERSION = 0
OFFSETS_A_STEP = 64


class CorruptCheckpoint(ValueError):
    """The content of a checkpoint file is invalid."""


def encode_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    lines = [
        f"{topic_partition.topic} {topic_partition.partition} {offset}\n"
        for topic_partition, offset in offsets.items()
    ]
    return f"{VERSION}\n{len(lines)}\n{''.join(lines)}".encode()


def encode_in_steps(offsets: Iterable[tuple[TopicPartition, int | None]]) -> Steps[bytes]:
    """Encode the offsets of many partitions in steps. Partitions without an offset have no line."""
    lines: list[str] = []
    for looked_at, (topic_partition, offset) in enumerate(offsets):
        if offset is not None:
            lines.append(f"{topic_partition.topic} {topic_partition.partition} {offset}\n")
        if not looked_at % OFFSETS_A_STEP:
            yield
    return f"{VERSION}\n{len(lines)}\n{''.join(lines)}".encode()


def decode_offsets(data: bytes) -> dict[TopicPartition, int]:
    """Decode a file; `CorruptCheckpoint` if Apache Kafka would not write it so. An empty file has no
    offsets."""
    offsets = {}
    for line in _entries(data):
        fields = line.split()
        if len(fields) != 3:
            raise CorruptCheckpoint(f"line {line!r} is not 'topic partition offset'")
        offsets[TopicPartition(fields[0], _number(fields[1]))] = _number(fields[2])
    return offsets


def load_offsets(disk: Disk, path: str) -> dict[TopicPartition, int]:
    """Read the offsets of a checkpoint file; empty if there is no file."""
    try:
        return decode_offsets(disk.read(path))
    except FileNotFoundError:
        return {}


def store_offsets(disk: Disk, path: str, offsets: Mapping[TopicPartition, int]) -> None:
    disk.replace_file(path, encode_offsets(offsets))


def encode_epochs(entries: Iterable[EpochEntry]) -> bytes:
    lines = [f"{entry.epoch} {entry.start_offset}\n" for entry in entries]
    return f"{VERSION}\n{len(lines)}\n{''.join(lines)}".encode()


def decode_epochs(data: bytes) -> list[EpochEntry]:
    entries = []
    for line in _entries(data):
        fields = line.split()
        if len(fields) != 2:
            raise CorruptCheckpoint(f"line {line!r} is not 'epoch offset'")
        entries.append(EpochEntry(_number(fields[0]), _number(fields[1])))
    return entries


def load_epochs(disk: Disk, directory: str) -> LeaderEpochs:
    try:
        return LeaderEpochs(decode_epochs(disk.read(f"{directory}/{names.LEADER_EPOCH_CHECKPOINT}")))
    except FileNotFoundError:
        return LeaderEpochs()


def create_epochs(disk: Disk, directory: str, entries: Collection[EpochEntry]) -> None:
    """Create the file of an empty log. Without entries the file is empty, as Apache Kafka writes it for
    followers. A crash may leave a torn file; the log is empty, so nothing is lost."""
    path = f"{directory}/{names.LEADER_EPOCH_CHECKPOINT}"
    disk.create(path, encode_epochs(entries) if entries else b"")


def store_epochs(disk: Disk, directory: str, entries: Iterable[EpochEntry]) -> None:
    """Replace the file. It is durable when the file and the folder are synced."""
    path = f"{directory}/{names.LEADER_EPOCH_CHECKPOINT}"
    disk.replace_file(path, encode_epochs(entries), sync=False)


def _entries(data: bytes) -> list[str]:
    if not data:
        return []
    lines = data.decode("utf-8", "replace").splitlines()
    if _number(lines[0]) != VERSION:
        raise CorruptCheckpoint(f"version {lines[0]} is not supported, only {VERSION}")
    if len(lines) < 2 or _number(lines[1]) != len(lines) - 2:
        raise CorruptCheckpoint(
            f"{len(lines) - 2} entries, {lines[1] if len(lines) > 1 else 'none'} announced"
        )
    return lines[2:]


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise CorruptCheckpoint(f"{text!r} is not a number") from None
