"""Loads a metadata image from files: a snapshot, segments of the log, or the newest of both in a folder.

In: a path. Out: the image. Only reads, so the folder may belong to a running node; a batch that the node has
not written completely is left out. Does not know: the quorum, what is committed.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from barnabas.cli.files.data_files import mapped
from barnabas.cli.frame.parsing import ToolError
from barnabas.cli.frame.progress import Advance, progress
from barnabas.metadata import serde
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage, Provenance
from barnabas.metadata.transactions import TransactionFilter
from barnabas.protocol import KafkaError, Message, ProtocolError
from barnabas.raft.snapshot_ids import SnapshotId, parse_name
from barnabas.records.batch import BatchHeader, headers
from barnabas.records.record import iter_records
from barnabas.storage.files.names import LOG, METADATA_TOPIC

SEGMENT = re.compile(r"\d{20}")


def load(path: Path) -> MetadataImage:
    """Load the image from a snapshot, a segment or a folder of them."""
    if path.is_dir():
        return load_folder(folder_of(path))
    if not path.is_file():
        raise ToolError(f"{path}: no such file or directory")
    return load_files(EMPTY_IMAGE, [path], 0)


def folder_of(path: Path) -> Path:
    """The folder of the metadata log: the path itself, or a folder in it if the path is a log dir."""
    inside = path / f"{METADATA_TOPIC}-0"
    return inside if inside.is_dir() else path


def load_folder(folder: Path) -> MetadataImage:
    snapshots = sorted(
        (found, each) for each in folder.iterdir() if (found := parse_name(each.name)) is not None
    )
    segments = sorted(
        each for each in folder.iterdir() if each.suffix == LOG and SEGMENT.fullmatch(each.stem)
    )
    if not snapshots and not segments:
        raise ToolError(f"{folder}: there is no metadata log and no snapshot in it")
    image, start = EMPTY_IMAGE, 0
    if snapshots:
        snapshot, path = snapshots[-1]
        image = as_of(load_files(EMPTY_IMAGE, [path], 0), snapshot)
        start = snapshot.end_offset
    return load_files(image, segments, start)


def as_of(image: MetadataImage, snapshot: SnapshotId) -> MetadataImage:
    """Set the image's offset to the one in the snapshot's name; the offsets of its batches mean nothing."""
    at = Provenance(snapshot.end_offset - 1, snapshot.epoch, image.provenance.timestamp_ms)
    return MetadataDelta(image).apply(at)


def load_files(image: MetadataImage, paths: list[Path], start: int) -> MetadataImage:
    """Apply the records of files to an image, from an offset on."""
    delta = MetadataDelta(image)
    transactions = TransactionFilter()
    last: BatchHeader | None = None
    total = sum(path.stat().st_size for path in paths)
    with progress("loading", total, size_bytes=True) as advance:
        for path in paths:
            for header, records in batches(path, start, advance):
                try:
                    delta.replay_all(transactions.pass_on(records))
                except (KafkaError, ProtocolError, ValueError) as error:
                    raise ToolError(f"{path}, batch at offset {header.base_offset}: {error}") from None
                last = header
    if last is None:
        return image
    return delta.apply(Provenance(last.last_offset, last.partition_leader_epoch, last.max_timestamp))


def batches(path: Path, start: int, advance: Advance) -> Iterator[tuple[BatchHeader, list[Message]]]:
    with mapped(path) as whole:
        view = memoryview(whole)
        try:
            for position, header in headers(view):
                advance(header.size)
                if header.is_control or header.last_offset < start:
                    continue
                yield (
                    header,
                    [serde.decode(each.value or b"") for each in iter_records(view, position=position)],
                )
        except KafkaError:
            return  # the node has not written the rest yet
        finally:
            view.release()
