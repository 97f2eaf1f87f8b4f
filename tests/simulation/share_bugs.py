"""Bugs of share groups to plant, one at a time: each breaks one promise, and the simulation must notice.

As in `bugs` and `cluster_bugs`: where a bug is planted is as close as can be to the place where a person
would have made it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

from barnabas.broker.shares import led_share_partition
from barnabas.broker.shares.led_share_partition import LedSharePartition
from barnabas.broker.shares.share_partitions import SharePartitions
from barnabas.shares.partition import acknowledging
from barnabas.shares.partition.acquiring import Acquired
from barnabas.shares.partition.runs import ACQUIRED, AVAILABLE, Run
from barnabas.shares.partition.share_partition import Change, SharePartition, StateRange
from barnabas.shares.state import deciding
from barnabas.shares.state.batches import StateBatches
from barnabas.shares.state.partition_state import ShareState
from barnabas.simulation.histories.cluster_clients import ClusterSharesHistory
from barnabas.simulation.world.faults import Kind

from .bugs import BUGS, bug
from .cluster_bugs import CLUSTER_BUGS, away_from_the_controller, one_after_another
from .cluster_bugs import bug as cluster_bug

__all__ = ["BUGS", "CLUSTER_BUGS"]

LATER_S = 0.05


# -- on one node -------------------------------------------------------------------------------------


@bug("shares")
def let_no_lock_run_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SharePartition, "expire", lambda *_: [])


@bug("shares", first=5)
def let_locks_run_out_early(patch: pytest.MonkeyPatch) -> None:
    expire = SharePartition.expire
    patch.setattr(SharePartition, "expire", lambda self, now_ms, limit: expire(self, now_ms + 300, limit))
    arm = LedSharePartition._arm
    patch.setattr(LedSharePartition, "_arm", lambda self, deadline_ms: arm(self, deadline_ms - 300))


@bug("shares", first=5)
def renew_no_lock(patch: pytest.MonkeyPatch) -> None:
    apply = acknowledging.apply

    def apply_others(state: Any, change: Any, part: Any, deadline_ms: int) -> None:
        if part.type != acknowledging.RENEW:
            apply(state, change, part, deadline_ms)

    patch.setattr(acknowledging, "apply", apply_others)


@bug("shares")
def confirm_before_the_state_is_stored(patch: pytest.MonkeyPatch) -> None:
    store = LedSharePartition._store

    def confirm(self: LedSharePartition, change: Change, done: Callable[[None], None]) -> None:
        done(None)
        loop = self._shares.broker.loop
        loop.call_later(LATER_S, store, self, change, lambda error: None)

    patch.setattr(LedSharePartition, "_store", confirm)


@bug("shares", first=7)
def take_acknowledgements_of_members_that_lost_the_lock(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(acknowledging, "check_batch", lambda *_: None)
    patch.setattr(acknowledging, "check_offsets", lambda *_: None)


@bug("shares")
def forget_to_count_a_delivery(patch: pytest.MonkeyPatch) -> None:
    acquire = LedSharePartition.acquire

    def acquire_uncounted(self: LedSharePartition, *arguments: Any, **options: Any) -> list[Acquired]:
        acquired = acquire(self, *arguments, **options)
        assert self.state is not None
        for first, last, deliveries in acquired:
            for run in self.state.runs.overlapping(first, last):
                run.deliveries -= deliveries > 1
        return [each._replace(deliveries=max(each.deliveries - 1, 1)) for each in acquired]

    patch.setattr(LedSharePartition, "acquire", acquire_uncounted)


@bug("shares")
def count_a_delivery_twice(patch: pytest.MonkeyPatch) -> None:
    acquire = LedSharePartition.acquire

    def acquire_twice(self: LedSharePartition, *arguments: Any, **options: Any) -> list[Acquired]:
        acquired = acquire(self, *arguments, **options)
        assert self.state is not None
        for first, last, _ in acquired:
            for run in self.state.runs.overlapping(first, last):
                run.deliveries += 1
        return acquired

    patch.setattr(LedSharePartition, "acquire", acquire_twice)


@bug("shares", is_long=True)
def store_released_records_without_their_count(patch: pytest.MonkeyPatch) -> None:
    add = Change.add

    def add_uncounted(self: Change, run: Run) -> None:
        add(self, run)
        if run.state == AVAILABLE:
            self.ranges[-1] = self.ranges[-1]._replace(deliveries=0)

    patch.setattr(Change, "add", add_uncounted)


@bug("shares")
def pass_records_that_are_not_acknowledged(patch: pytest.MonkeyPatch) -> None:
    """The start offset moves behind records that members still hold."""
    patch.setattr(Run, "is_done", property(lambda run: run.state >= ACQUIRED and run.pending is None))


@bug("shares", is_long=True)
def archive_released_records_too_early(patch: pytest.MonkeyPatch) -> None:
    begin = SharePartition.begin

    def begin_early(self: SharePartition, change: Change, run: Run, state: int) -> None:
        change.deliveries_max -= 1
        begin(self, change, run, state)
        change.deliveries_max += 1

    patch.setattr(SharePartition, "begin", begin_early)


@bug("shares", is_long=True)
def deliver_records_of_aborted_transactions(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(led_share_partition, "aborted_spans", lambda *_: [])


@bug("shares", is_long=True)
def deliver_new_records_before_those_that_are_left(patch: pytest.MonkeyPatch) -> None:
    """The rest of a batch is taken for delivered."""
    patch.setattr(SharePartition, "made_available", lambda *_: None)


@bug("shares", is_long=True)
def load_no_states_of_records(patch: pytest.MonkeyPatch) -> None:
    load = SharePartition.load.__func__  # type: ignore[attr-defined]

    def load_start(cls: Any, start_offset: int, state_epoch: int, stored: Iterable[StateRange]) -> Any:
        return load(cls, start_offset, state_epoch, ())

    patch.setattr(SharePartition, "load", classmethod(load_start))


@bug("shares", is_long=True)
def drop_a_batch_in_a_snapshot(patch: pytest.MonkeyPatch) -> None:
    make = ShareState._snapshot

    def drop(self: ShareState, start: int, count: int, batches: Sequence[Any], *others: Any) -> Any:
        return make(self, start, count, batches[:-1] if len(batches) > 1 else batches, *others)

    patch.setattr(ShareState, "_snapshot", drop)


@bug("shares")
def let_the_older_state_win(patch: pytest.MonkeyPatch) -> None:
    """A write does not replace states that are stored for the same records."""
    combine = StateBatches.combine

    def keep(self: StateBatches, added: Iterable[Any], start_offset: int) -> None:
        known = list(self.ranges)
        new = [
            batch
            for batch in added
            if not any(
                each.first_offset <= batch.last_offset and batch.first_offset <= each.last_offset
                for each in known
            )
        ]
        combine(self, new, start_offset)

    patch.setattr(StateBatches, "combine", keep)


@bug("shares", first=3, is_long=True)
def prune_states_that_are_needed(patch: pytest.MonkeyPatch) -> None:
    """Updates after the last snapshot are deleted with it."""
    from barnabas.broker.coordinators.share_host import ShareHost

    prune = ShareHost._prune
    patch.setattr(ShareHost, "_prune", lambda self, offset: prune(self, self.partition.high_watermark))


# -- on a cluster ------------------------------------------------------------------------------------


@cluster_bug(away_from_the_controller(Kind.CUT_NODES, 3.2), history=ClusterSharesHistory, is_long=True)
def take_states_of_a_leader_that_was_replaced(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(deciding, "check_leader_epoch", lambda *_: None)


@cluster_bug(one_after_another(Kind.CLOCK, 0.5), history=ClusterSharesHistory, is_long=True)
def measure_locks_with_a_clock_that_jumps(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SharePartitions, "now_ms", lambda self: self.broker.clock.now_ms())
