"""The index by time gives the entries of a plain set, whatever is loaded, appended or rewritten."""

from __future__ import annotations

import random

import pytest

from barnabas.plans.interpreter.state import time_index
from barnabas.plans.interpreter.state.time_index import TimeIndex, packed
from barnabas.plans.stores import MemoryBackend

SEGMENT_MS = 10


class Reads(MemoryBackend):
    def __init__(self) -> None:
        super().__init__()
        self.bytes_read = 0

    def get(self, store: str, key: bytes) -> bytes | None:
        found = super().get(store, key)
        self.bytes_read += len(found or b"")
        return found


@pytest.mark.parametrize("seed", range(20))
def test_random_steps_give_what_a_set_gives(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_index, "PAGE_BYTES", 60)
    rng = random.Random(seed)
    backend = MemoryBackend()
    index, model = TimeIndex(backend, "s", SEGMENT_MS), set[tuple[int, bytes]]()
    for _ in range(300):
        time, key = rng.randrange(100), b"key %d" % rng.randrange(8)
        match rng.randrange(8):
            case 0 | 1 | 2:
                index.add(time, key)
                model.add((time, key))
            case 3:
                new = {(time, b"packed %d" % rng.randrange(99)) for _ in range(3)} - model
                index.add_packed(time // SEGMENT_MS, packed(sorted(new)))
                model |= new
            case 4:
                index.discard(time, key)
                model.discard((time, key))
            case 5:
                limit = rng.randrange(20)
                assert sorted(index.pop_before(limit)) == sorted(each for each in model if each[0] < limit)
                model = {each for each in model if each[0] >= limit}
            case 6:
                low, high = sorted((rng.randrange(100), rng.randrange(100)))
                assert index.between(low, high) == sorted(each for each in model if low <= each[0] <= high)
            case 7:
                index.flush()
                if rng.random() < 0.5:
                    index = TimeIndex(backend, "s", SEGMENT_MS)
    assert list(index.ordered()) == sorted(model)
    index.pop_before(1000)
    index.flush()
    assert set(backend.pages) == {("s", b"m")}


def test_a_batch_that_adds_reads_no_more_than_a_page() -> None:
    backend = Reads()
    for batch in range(50):
        index = TimeIndex(backend, "s", SEGMENT_MS)
        index.add_many((1, b"a key of some bytes %d" % (batch * 1000 + number)) for number in range(1000))
        backend.bytes_read = 0
        index.flush()
        assert backend.bytes_read < 60_000
    assert sum(map(len, backend.pages.values())) > 1_500_000
