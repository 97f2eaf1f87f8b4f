"""A tiny round of the rows about stalls, on our broker alone; no assertion depends on times."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pytest
from bench.brokers import Barnabas
from bench.probe import Wait
from bench.rounds import Comparison
from bench.rows import ROWS

from bench import loads, loop_watch, stalls


@pytest.mark.long
def test_every_row_has_a_value() -> None:
    names = [name for name in ROWS if name in stalls.DISTURBANCES]
    found = Comparison(loads.TINY, 1, lambda _: None, alone="barnabas").run(names)
    assert [result.row.name for result in found] == names
    assert all(len(result.ours) == 1 and result.ours[0] > 0 for result in found)


def test_turns_of_a_watched_loop_are_recorded_with_their_processor_time() -> None:
    with tempfile.TemporaryDirectory() as folder:
        turns = Path(folder) / "turns"
        broker = Barnabas(prefix=[sys.executable, str(Path(loop_watch.__file__)), str(turns)])
        try:
            broker.start()
        finally:
            broker.close()
        found = loop_watch.read_turns(turns)
    assert found  # starting takes longer than a millisecond
    assert all(turn.wall_ms > 0 and turn.cpu_ms >= 0 and turn.delayed_ms >= 0 for turn in found)


def test_waits_before_the_disturbance_do_not_count() -> None:
    stage = stalls.Stage.__new__(stalls.Stage)
    stage.idle_s, stage.settle_s, stage._turns = 2.0, 1.0, None
    waits = [Wait(9.0, 0.001), Wait(9.5, 0.003), Wait(9.98, 0.050), Wait(10.5, 0.020), Wait(12.0, 0.002)]
    found = stage._judge(waits, began=10.0, ended=11.0)
    assert found.longest_ms == pytest.approx(50)  # it began before, and ended during it
    assert found.idle_longest_ms == pytest.approx(3)
