"""Random histories of a shop: after each step serving answers what a plain model answers from the accepted
orders.

By default one history with the steps in which zones and views meet; the store alone goes through thousands of
steps without Spark in `test_serving_store`. `--long` takes every step, at random; `--histories` runs more."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barnabas.pipeline.serving.store import merging
from barnabas.pipeline.serving.store.view_updates import Updates
from barnabas.pipeline.views.layout import Merge
from pipeline.views_world import Place, World, live, meet

pytestmark = pytest.mark.timeout(1800)
STEPS = 16  # ten kinds, each at least once


@pytest.fixture
def world(
    spark: Any, broker: Any, topic: Callable[..., str], produce: Callable[..., None], tmp_path: Path
) -> Callable[[random.Random], World]:
    def begin(rng: random.Random) -> World:
        place = Place(spark, broker.bootstrap, topic("orders", partitions=1), produce, tmp_path)
        return World(place, rng)

    return begin


@pytest.mark.long
def test_serving_answers_what_the_model_answers_after_each_step(
    world: Callable[[random.Random], World], request: pytest.FixtureRequest
) -> None:
    for seed in range(request.config.getoption("--histories")):
        rng = random.Random(seed)
        made = world(rng)
        try:
            made.produce()
            made.ingest()
            made.catch_up()
            made.check()
            done = live(made, rng, STEPS) if request.config.getoption("--long") else meet(made)
        finally:
            made.store.close()
        assert done


def counted_twice(patch: pytest.MonkeyPatch) -> None:
    """Speed parts that the new horizon covers are merged onto it once more."""
    beyond = Updates._beyond
    patch.setattr(Updates, "_beyond", lambda self, entry, covered: beyond(self, entry, -1))


def forgotten(patch: pytest.MonkeyPatch) -> None:
    """A planted bug: rows after the new horizon are lost when it moves."""
    beyond = Updates._beyond
    patch.setattr(Updates, "_beyond", lambda self, entry, covered: beyond(self, entry, 10**9))


def maxima_added(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(merging.AGGREGATES, Merge.MAX, merging.added)


@pytest.mark.long
def test_planted_bugs_are_found(
    world: Callable[[random.Random], World], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One history; at its end each bug is planted in turn, for a few steps. Without one they pass."""
    rng = random.Random(1)
    made = world(rng)
    made.produce()
    made.ingest()
    made.catch_up()
    for bug in (maxima_added, counted_twice, forgotten):
        with monkeypatch.context() as patch, pytest.raises(AssertionError):
            bug(patch)
            for _ in range(5):
                made.produce()
                made.ingest()
                made.catch_up()
                made.check()
                made.refresh_meanwhile()
                made.check()
        made.refresh()  # what the bug left behind is put right by the next horizon
        made.check()
    made.store.close()
