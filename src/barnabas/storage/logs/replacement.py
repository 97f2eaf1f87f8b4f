"""Segments take the place of others: what compaction made of them, swapped in so that a crash at any step
leaves the old ones or the new ones, and readers see one list of segments or the other.

In: new segments whose files are complete under `.cleaned`, the old ones that they stand for. Out, in three
steps: `prepare` (thread) makes them durable and names them `.swap`, from which moment a recovery takes them;
`exchange` (loop) puts them into the log; `finish` (thread) buries the old files and gives the new ones their
names. Whoever does this has claimed the log (`Log.claim`).
Does not know: how segments are cleaned.
"""

from typing import TYPE_CHECKING

from barnabas.storage.files import names
from barnabas.storage.logs.retention import delete_detached
from barnabas.storage.segments.segment import Segment

if TYPE_CHECKING:
    from barnabas.storage.logs.log import Log


def prepare(log: "Log", new: list[Segment]) -> None:
    """Durable first, then renamed, the last first: while any is still `.cleaned`, a recovery undoes them
    all."""
    try:
        for segment in new:
            segment.sync()
        log.context.disk.sync_directory(log.directory)
        for segment in reversed(new):
            segment.rename_files(names.SWAP)
        log.context.disk.sync_directory(log.directory)
    except OSError as error:
        raise log.context.failure("replace segments of", log.directory, error) from error


def exchange(log: "Log", old: list[Segment], new: list[Segment]) -> bool:
    """Put `new` where `old` is; False, and nothing changed, when `old` is no longer a part of the log's
    closed segments (then `discard` the new ones)."""
    segments = log.segments
    if log.truncation is not None:
        return False
    first = next((index for index, segment in enumerate(segments) if segment is old[0]), None)
    if first is None or first + len(old) >= len(segments):
        return False
    if any(there is not expected for there, expected in zip(segments[first:], old, strict=False)):
        return False
    log.segments = [*segments[:first], *new, *segments[first + len(old) :]]
    log.cursors.clear()
    return True


def finish(log: "Log", old: list[Segment], new: list[Segment], now_ms: int) -> None:
    """After `exchange`: the old files die, the new ones get their names. Producer snapshots belong to offsets
    that are still segments' first ones, or are removed with the next that is not."""
    kept = {segment.base_offset for segment in new}
    delete_detached(
        log, [segment for segment in old if segment.base_offset in kept], now_ms, with_snapshots=False
    )
    delete_detached(log, [segment for segment in old if segment.base_offset not in kept], now_ms)
    try:
        log.context.disk.sync_directory(log.directory)
        for segment in new:
            segment.rename_files("")
        log.context.disk.sync_directory(log.directory)
    except OSError as error:
        raise log.context.failure("replace segments of", log.directory, error) from error


def discard(new: list[Segment]) -> None:
    """New segments that are not wanted any more."""
    for segment in new:
        segment.delete_files()
