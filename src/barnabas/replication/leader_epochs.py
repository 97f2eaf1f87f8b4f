"""The leader epochs of one partition, each with its start offset (KIP-101).

In: epoch and start offset of every new leader's first batch. Out: the end offset of an epoch, with which a
follower finds the offset up to which its log agrees with the leader's. Storage writes the epochs to
`leader-epoch-checkpoint`.
Does not know: the log, files, the current leader.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import NamedTuple

UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1


class EpochEntry(NamedTuple):
    epoch: int
    start_offset: int


class LeaderEpochs:
    """Entries in ascending order; invariant: epochs and start offsets both grow strictly."""

    __slots__ = ("_epochs", "_starts", "latest_epoch")

    def __init__(self, entries: Iterable[EpochEntry | tuple[int, int]] = ()) -> None:
        self._epochs: list[int] = []
        self._starts: list[int] = []
        self.latest_epoch = UNDEFINED_EPOCH
        for epoch, start_offset in entries:
            self.assign(epoch, start_offset)

    def __len__(self) -> int:
        return len(self._epochs)

    @property
    def entries(self) -> list[EpochEntry]:
        return [EpochEntry(*pair) for pair in zip(self._epochs, self._starts, strict=True)]

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Add an epoch that starts at `start_offset`. True if it is new, so that storage must write it.

        Entries that contradict the new one are removed: the log was truncated below them.
        """
        if epoch == self.latest_epoch and epoch >= 0 and start_offset >= self._starts[-1]:
            return False
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"leader epoch {epoch} cannot start at offset {start_offset}")
        keep = min(bisect_left(self._epochs, epoch), bisect_left(self._starts, start_offset))
        self._keep(0, keep)
        self._epochs.append(epoch)
        self._starts.append(start_offset)
        self.latest_epoch = epoch
        return True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The largest epoch not above `epoch`, and its end offset.

        (-1, -1) if `epoch` is newer than all epochs of the log. If `epoch` is older than all of them, because
        its records were deleted: `epoch` itself and the start offset of the first entry.
        """
        if epoch == UNDEFINED_EPOCH:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if epoch == self.latest_epoch:
            return epoch, log_end_offset
        above = bisect_right(self._epochs, epoch)
        if above == len(self._epochs):
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        found = self._epochs[above - 1] if above else epoch
        return found, self._starts[above]

    def epoch_for(self, offset: int) -> int:
        """The epoch whose leader wrote `offset`; -1 for offsets before the first entry."""
        index = bisect_right(self._starts, offset) - 1
        return self._epochs[index] if index >= 0 else UNDEFINED_EPOCH

    def previous_epoch(self, epoch: int) -> int:
        """The newest epoch below `epoch`, or -1."""
        index = bisect_left(self._epochs, epoch) - 1
        return self._epochs[index] if index >= 0 else UNDEFINED_EPOCH

    def truncate_from_end(self, end_offset: int) -> bool:
        """Remove epochs that start at or after `end_offset`. True if there were any."""
        if end_offset < 0:
            return False
        return self._keep(0, bisect_left(self._starts, end_offset))

    def truncate_from_start(self, start_offset: int) -> bool:
        """Remove epochs that ended before `start_offset`. The one that covers it starts there now."""
        first = bisect_right(self._starts, start_offset) - 1
        if first < 0 or (first == 0 and self._starts[0] == start_offset):
            return False
        self._keep(first, len(self._epochs))
        self._starts[0] = start_offset
        return True

    def clear(self) -> None:
        self._keep(0, 0)

    def _keep(self, start: int, stop: int) -> bool:
        if start == 0 and stop == len(self._epochs):
            return False
        self._epochs = self._epochs[start:stop]
        self._starts = self._starts[start:stop]
        self.latest_epoch = self._epochs[-1] if self._epochs else UNDEFINED_EPOCH
        return True
