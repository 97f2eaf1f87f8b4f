"""Nodes that are killed and paused under writes: no id twice, nothing lost, all nodes agree."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from .processes import SESSION_MS, NodeProcess, Writers, check_promises, primary_of

Nodes = Callable[[int], list[NodeProcess]]


@pytest.fixture
def nodes(broker: str, topic: str, tmp_path: Path) -> Iterator[Nodes]:
    made: list[NodeProcess] = []

    def start(count: int) -> list[NodeProcess]:
        made.extend(NodeProcess(broker, topic, tmp_path) for _ in range(count))
        for node in made:
            node.wait_until_ready()
        primary_of(made)
        httpx.put(f"{made[0].url}/config", json={"compatibility": "NONE"}, timeout=20).raise_for_status()
        return made

    yield start
    for node in made:
        node.stop()


def test_a_paused_primary_does_not_write_when_it_goes_on(nodes: Nodes) -> None:
    """The old primary is stopped in the middle of its work, another takes over, then it goes on."""
    both = nodes(2)
    writers = Writers(both).start()
    writers.wait_for(20)
    old = primary_of(both)
    (other,) = (node for node in both if node is not old)
    old.pause()
    assert primary_of([other]) is other
    writers.wait_for(20)
    old.resume()
    writers.wait_for(20)
    writers.stop()
    check_promises(both, writers.told)


@pytest.mark.long
@pytest.mark.parametrize("count", [2, 3])
def test_primaries_are_killed_and_paused_again_and_again(nodes: Nodes, count: int) -> None:
    everybody = nodes(count)
    writers = Writers(everybody, count=6).start()
    writers.wait_for(50)
    for turn in range(6):
        victim = primary_of(everybody)
        if turn % 2 == 0:
            victim.kill()
            writers.wait_for(20)
            victim.restart()
            victim.wait_until_ready()
        else:
            victim.pause()
            # Longer than the session, so that another node takes over in the middle of its work.
            time.sleep(SESSION_MS / 1000 + (turn % 3))
            victim.resume()
        writers.wait_for(30)
    writers.stop()
    check_promises(everybody, writers.told)


@pytest.mark.long
def test_short_pauses_of_the_primary_do_not_change_it_for_long(nodes: Nodes) -> None:
    both = nodes(2)
    writers = Writers(both).start()
    for _ in range(10):
        writers.wait_for(10)
        victim = primary_of(both)
        victim.pause()
        time.sleep(0.3)
        victim.resume()
    writers.stop()
    check_promises(both, writers.told)
