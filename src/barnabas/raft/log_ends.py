"""Compares the ends of logs: whether a replica's log is a prefix of the leader's.

In: the offset and epoch at which a replica wants to continue, what the leader's log holds. Out: that it may
continue, where it must truncate, or which snapshot it needs first.
Does not know: reading, requests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from barnabas.raft.snapshot_ids import SnapshotId


class EpochEnd(NamedTuple):
    """An epoch, and the offset after its last record."""

    epoch: int
    end_offset: int


class Agreement(NamedTuple):
    """The result of comparing two logs. With both None, they agree up to the offset."""

    diverging: EpochEnd | None = None
    snapshot: SnapshotId | None = None


def compare(
    offset: int,
    epoch: int,
    start_offset: int,
    snapshots: Sequence[SnapshotId],
    end_of_epoch: Callable[[int], EpochEnd],
) -> Agreement:
    """Whether a replica whose log ends at `offset`, with a last record of `epoch`, can continue from
    there."""
    if start_offset == 0 and offset == 0 and epoch == 0:
        return Agreement()
    if snapshots:
        earliest = snapshots[0]
        starts_elsewhere = offset == start_offset and start_offset > 0 and epoch != earliest.epoch
        if offset < start_offset or starts_elsewhere or epoch < earliest.epoch:
            return Agreement(snapshot=snapshots[-1])
    end = end_of_epoch(epoch)
    if end.epoch != epoch or end.end_offset < offset:
        return Agreement(diverging=end)
    return Agreement()


def is_up_to_date(last_epoch: int, end_offset: int, own_last_epoch: int, own_end_offset: int) -> bool:
    """Whether a candidate's log holds everything that ours does."""
    return (last_epoch, end_offset) >= (own_last_epoch, own_end_offset)
