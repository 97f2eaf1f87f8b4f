"""The lowest needed offset: that of the oldest of the latest snapshots, at a bounded price."""

from __future__ import annotations

import random

from barnabas.shares.state.keys import ShareKey
from barnabas.shares.state.needed_offsets import STALE_MAX, NeededOffsets

KEYS = [ShareKey("g", bytes(16), number) for number in range(5)]


def test_nothing_is_known_of_an_empty_log() -> None:
    assert NeededOffsets().lowest() is None


def test_a_share_partition_that_is_not_written_holds_the_others_back() -> None:
    needed = NeededOffsets()
    for offset, key in enumerate((KEYS[0], KEYS[1], KEYS[1], KEYS[2], KEYS[1])):
        needed.snapshot_written(key, offset)
    assert needed.lowest() == 0
    needed.snapshot_written(KEYS[0], 5)
    assert needed.lowest() == 3
    needed.deleted(KEYS[2], 6)
    assert needed.lowest() == 4


def test_entries_that_are_out_of_date_do_not_add_up() -> None:
    needed = NeededOffsets()
    needed.snapshot_written(KEYS[0], 0)
    sizes = []
    for offset in range(1, 1000):
        needed.snapshot_written(KEYS[offset % 3 + 1], offset)
        sizes.append(len(needed._heap))
        assert needed.lowest() == 0
    assert max(sizes) == 2 * 4 + STALE_MAX


def test_the_lowest_is_right_whatever_was_written() -> None:
    rng = random.Random(4)
    needed, known = NeededOffsets(), dict[ShareKey, int]()
    for offset in range(3000):
        key = rng.choice(KEYS[: rng.choice((2, 5))])
        if rng.random() < 0.1:
            known.pop(key, None)
            needed.deleted(key, offset)
            expected = min(known.values(), default=offset)
        else:
            known[key] = offset
            needed.snapshot_written(key, offset)
            expected = min(known.values())
        if rng.random() < 0.05:
            assert needed.lowest() == expected
