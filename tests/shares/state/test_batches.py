"""State batches: overlaps are resolved as Apache Kafka's combiner does, whatever order writes come in."""

from __future__ import annotations

import random

import pytest

from barnabas.shares.state.batches import StateBatch, StateBatches, combined, sweep

AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4


def batches(*parts: tuple[int, int, int, int]) -> list[StateBatch]:
    return [StateBatch(*part) for part in parts]


def test_batches_that_do_not_touch_stay_as_they_are() -> None:
    assert combined(batches((10, 14, 1, 0), (0, 4, 1, 0)), -1) == batches((0, 4, 1, 0), (10, 14, 1, 0))


def test_neighbours_of_the_same_state_become_one() -> None:
    assert combined(batches((0, 4, 1, 2), (5, 9, 1, 2)), -1) == batches((0, 9, 1, 2))


def test_the_higher_delivery_count_wins_where_batches_overlap() -> None:
    found = combined(batches((0, 9, 1, ARCHIVED), (3, 6, 2, AVAILABLE)), -1)
    assert found == batches((0, 2, 1, ARCHIVED), (3, 6, 2, AVAILABLE), (7, 9, 1, ARCHIVED))


def test_the_higher_state_wins_at_the_same_delivery_count() -> None:
    found = combined(batches((0, 9, 1, ACKNOWLEDGED), (5, 14, 1, AVAILABLE)), -1)
    assert found == batches((0, 9, 1, ACKNOWLEDGED), (10, 14, 1, AVAILABLE))


def test_batches_below_the_start_offset_are_dropped_and_one_across_it_is_cut() -> None:
    state = StateBatches(batches((0, 4, 1, 2), (5, 9, 2, 0), (10, 14, 1, 2)))
    state.combine([], 7)
    assert state.ranges == batches((7, 9, 2, 0), (10, 14, 1, 2))


def test_a_neighbour_to_the_left_is_joined_by_the_next_write_only() -> None:
    """As in Apache Kafka, whose combiner has passed the left one already."""
    state = StateBatches(batches((0, 9, 2, 2), (10, 19, 1, 0)))
    state.combine(batches((10, 19, 2, 2)), -1)
    assert state.ranges == batches((0, 9, 2, 2), (10, 19, 2, 2))
    state.combine([], -1)
    assert state.ranges == batches((0, 19, 2, 2))


@pytest.mark.parametrize("start_offset", [9, 10, 15, 25, 50])
def test_a_neighbour_that_is_gone_when_it_would_be_joined_is_forgotten(start_offset: int) -> None:
    known = batches((0, 9, 2, 2), (10, 19, 2, 2), (30, 39, 1, 0))
    state = StateBatches(known)
    state.combine([], start_offset)
    state.combine(batches((60, 60, 1, 0)), start_offset)
    assert state.ranges == combined([*known, StateBatch(60, 60, 1, 0)], start_offset)


def test_batches_of_a_snapshot_that_overlap_are_put_in_order() -> None:
    state = StateBatches(batches((5, 14, 1, 0), (0, 9, 1, 2), (7, 3, 9, 4)))
    assert state.ranges == batches((0, 9, 1, 2), (10, 14, 1, 0))


@pytest.mark.parametrize("seed", range(60))
def test_a_write_changes_only_what_it_touches_and_all_comes_out_as_if_everything_was_combined(
    seed: int,
) -> None:
    rng = random.Random(seed)
    state, everything = StateBatches(), list[StateBatch]()
    start_offset = -1
    for _ in range(40):
        new = []
        for _ in range(rng.choice((0, 1, 1, 1, 3))):
            first = rng.randrange(60)
            new.append(
                StateBatch(first, first + rng.randrange(12), rng.randrange(1, 4), rng.choice((0, 2, 4)))
            )
        if rng.random() < 0.1:
            start_offset = max(start_offset, rng.randrange(20))
        state.combine(new, start_offset)
        kept = [*everything, *new]
        if start_offset != -1:
            kept = [
                batch._replace(first_offset=max(batch.first_offset, start_offset))
                for batch in kept
                if batch.last_offset >= start_offset
            ]
        everything = sweep(kept)
        assert state.ranges == everything
