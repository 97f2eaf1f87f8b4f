"""The state of one share partition, as the records of `__share_group_state` describe it.

In: snapshots and updates, in the order of the log. Out: epochs, start offset, batches; the values of the next
snapshot and update. The highest epochs seen fence older leaders and older initializations; a snapshot that
starts the state again does not lower them.
Does not know: requests, offsets of the records, the clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from barnabas.shares.state.batches import NO_START_OFFSET, StateBatch, StateBatches, combined
from barnabas.shares.state.records import NO_COUNT, Snapshot, Update

NO_EPOCH = -1


class ShareState:
    __slots__ = (
        "batches",
        "created_ms",
        "delivery_complete_count",
        "leader_epoch",
        "leader_epoch_max",
        "snapshot_epoch",
        "start_offset",
        "state_epoch",
        "state_epoch_max",
        "updates",
        "written_ms",
    )

    def __init__(self) -> None:
        self.snapshot_epoch = 0
        self.state_epoch = 0
        self.leader_epoch = 0
        self.start_offset = NO_START_OFFSET
        self.delivery_complete_count = NO_COUNT
        self.created_ms = 0  # of the last snapshot that a request made
        self.written_ms = 0  # of the last snapshot
        self.batches = StateBatches()
        self.updates = 0  # since the last snapshot
        self.leader_epoch_max = 0
        self.state_epoch_max = 0

    @property
    def is_snapshot_of_cold(self) -> bool:
        """Whether the last snapshot was made by time, since nothing else had written one."""
        return self.created_ms != self.written_ms

    # -- applying ----------------------------------------------------------------------------------

    def apply_snapshot(self, value: Snapshot) -> None:
        self.snapshot_epoch = value.snapshot_epoch
        self.state_epoch = value.state_epoch
        self.leader_epoch = value.leader_epoch
        self.start_offset = value.start_offset
        self.delivery_complete_count = value.delivery_complete_count
        self.created_ms = value.create_timestamp
        self.written_ms = value.write_timestamp
        self.batches = StateBatches(value.state_batches)
        self.updates = 0
        self.leader_epoch_max = max(self.leader_epoch_max, value.leader_epoch)
        self.state_epoch_max = max(self.state_epoch_max, value.state_epoch)

    def apply_update(self, value: Update) -> None:
        if value.start_offset != NO_START_OFFSET:
            self.start_offset = value.start_offset
        if value.leader_epoch != NO_EPOCH:
            self.leader_epoch = value.leader_epoch
        self.delivery_complete_count = value.delivery_complete_count
        self.batches.combine(value.state_batches, self.start_offset)
        self.updates += 1
        self.leader_epoch_max = max(self.leader_epoch_max, value.leader_epoch)

    @classmethod
    def of_update(cls, value: Update) -> ShareState:
        """The state when the snapshot before an update is not in the log any more. A later record replaces
        it."""
        found = cls()
        found.snapshot_epoch = value.snapshot_epoch
        found.apply_update(value)
        return found

    # -- next records ------------------------------------------------------------------------------

    def next_update(
        self, start_offset: int, complete_count: int, batches: Iterable[StateBatch], leader_epoch: int
    ) -> Update:
        found = combined(batches, start_offset)
        return Update(self.snapshot_epoch, leader_epoch, start_offset, complete_count, found)

    def next_snapshot(
        self,
        start_offset: int,
        complete_count: int,
        batches: Iterable[StateBatch],
        leader_epoch: int,
        now_ms: int,
    ) -> Snapshot:
        if start_offset == NO_START_OFFSET:
            start_offset = self.start_offset
        all_batches = self.batches.copy()
        all_batches.combine(batches, start_offset)
        return self._snapshot(start_offset, complete_count, all_batches.ranges, leader_epoch, now_ms, now_ms)

    def cold_snapshot(self, now_ms: int) -> Snapshot:
        """The state as it is, in a new record: earlier records are needed no more."""
        return self._snapshot(
            self.start_offset,
            self.delivery_complete_count,
            self.batches.ranges,
            self.leader_epoch,
            self.created_ms,
            now_ms,
        )

    def _snapshot(
        self,
        start_offset: int,
        complete_count: int,
        batches: Sequence[StateBatch],
        leader_epoch: int,
        created_ms: int,
        written_ms: int,
    ) -> Snapshot:
        return Snapshot(
            snapshot_epoch=self.snapshot_epoch + 1,
            state_epoch=self.state_epoch,
            leader_epoch=leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=complete_count,
            create_timestamp=created_ms,
            write_timestamp=written_ms,
            state_batches=tuple(batches),
        )


def initial_snapshot(known: ShareState | None, state_epoch: int, start_offset: int, now_ms: int) -> Snapshot:
    """The state begins, or begins again: nothing of what is known is kept. Without a start offset there is no
    lag to compute, hence no count."""
    return Snapshot(
        snapshot_epoch=0 if known is None else known.snapshot_epoch + 1,
        state_epoch=state_epoch,
        leader_epoch=0,
        start_offset=start_offset,
        delivery_complete_count=NO_COUNT if start_offset == NO_START_OFFSET else 0,
        create_timestamp=now_ms,
        write_timestamp=now_ms,
    )
