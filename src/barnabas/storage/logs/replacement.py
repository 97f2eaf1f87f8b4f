"""Replacement of segments by cleaned ones, safe against a crash at any step.

In: new segments with complete `.cleaned` files, and the old segments that they replace. Three steps:
`prepare` (in a thread) makes the new files durable and renames them to `.swap`; from then on recovery uses
them. `exchange` (on the loop) puts them into the log's list. `finish` (in a thread) deletes the old files and
renames the new ones to their final names. The caller has claimed the log (`Log.claim`). Readers see the old
or the new list of segments.
Does not know: how segments are cleaned.
"""

from typing import TYPE_CHECKING

from barnabas.storage.files import names
from barnabas.storage.logs.retention import delete_detached
from barnabas.storage.segments.segment import Segment

if TYPE_CHECKING:
    from barnabas.storage.logs.log import Log


def prepare(log: "Log", new: list[Segment]) -> None:
    """Sync the new files, then rename them to `.swap`, the last one first: while one is still `.cleaned`,
    recovery discards them all."""
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
    """Replace `old` by `new` in the log's list. False, with nothing changed, if `old` is no longer among the
    log's closed segments; then `discard` the new ones."""
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
    """After `exchange`: delete the old files and rename the new ones. Producer snapshots stay where a new
    segment begins at the same offset; the others are deleted with their old segment."""
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
    """Delete the files of new segments that are not needed."""
    for segment in new:
        segment.delete_files()
