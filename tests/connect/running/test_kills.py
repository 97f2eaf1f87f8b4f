"""Every connector by REST on a cluster of three workers that are killed, paused, stopped and restarted.

Sources write exactly once. Sinks keep their promises: by keys, by transactions with offsets, by names of
files; the HTTP and file sinks at least once.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.testing import Broker
from connect.running.workers import Workers, running_workers
from connect.running.world import World, running_world

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]
NAMES = (
    "pg-orders", "maria-orders", "pg-capture", "maria-capture", "lines", "log", "visits", "made-up", "api",
    "to-maria", "to-pg", "to-folder", "to-s3", "to-redis", "to-hook", "to-file",
)  # fmt: skip


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[World, Workers]]:
    """The world after everything that can happen to workers has happened."""
    folder: Path = tmp_path_factory.mktemp("world")
    with (
        Broker() as broker,
        running_world(folder, broker.bootstrap) as world,
        running_workers(folder, broker.bootstrap) as workers,
    ):
        world.feed()
        for name, config in world.connectors().items():
            workers.create(name, config)
        workers.all_are("RUNNING")
        world.feed()
        killed = workers.owner("pg-orders")
        killed.kill()
        workers.all_are("RUNNING")
        world.rotate()
        world.feed()
        killed.restart()
        killed.wait(240)
        for name in workers.connectors:
            workers.call("POST", f"/connectors/{name}/restart?includeTasks=true")
        world.feed()
        workers.all_are("RUNNING")
        for name in workers.connectors:
            workers.call("PUT", f"/connectors/{name}/pause")
        world.feed()
        workers.all_are("PAUSED")
        for name in workers.connectors:
            workers.call("PUT", f"/connectors/{name}/resume")
        workers.all_are("RUNNING")
        for name in workers.connectors:
            workers.call("PUT", f"/connectors/{name}/stop")
        world.rotate()
        world.feed()
        for name in workers.connectors:
            workers.call("PUT", f"/connectors/{name}/resume")
        workers.all_are("RUNNING")
        world.feed()
        for each in workers.all:
            each.kill()
        world.feed()
        for each in workers.all:
            each.restart()
        for each in workers.all:
            each.wait(240)
        workers.all_are("RUNNING")
        yield world, workers


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_lost_and_nothing_comes_beyond_the_promise(
    lived: tuple[World, Workers], name: str
) -> None:
    world, workers = lived
    workers.done(lambda: not world.problems(name), name)
    assert set(workers.states(name)) == {"RUNNING"}


def test_no_slot_is_left_behind_with_an_old_place(lived: tuple[World, Workers]) -> None:
    """The server may forget the log that topics have."""
    world, workers = lived
    workers.done(lambda: not world.problems("pg-capture"))
    query = "SELECT count(*) FROM pg_replication_slots WHERE slot_name = 'shown' AND active"
    workers.done(lambda: world.pg.rows(query) == [(1,)], "the slot is in use")


def test_offsets_that_are_reset_bring_everything_again(lived: tuple[World, Workers]) -> None:
    world, workers = lived
    for name in ("lines", "pg-orders"):
        workers.done(lambda name=name: not world.problems(name), name)  # type: ignore[misc]
        workers.call("PUT", f"/connectors/{name}/stop")
        workers.done(lambda name=name: workers.states(name) == ["STOPPED"])  # type: ignore[misc]
        workers.call("DELETE", f"/connectors/{name}/offsets")
        workers.call("PUT", f"/connectors/{name}/resume")
        twice = sorted(2 * world.wanted)
        workers.done(lambda name=name, twice=twice: world.numbers_in(name) == twice, name)  # type: ignore[misc]
    assert world.to_maria() == world.wanted  # by keys: rows that come again change nothing


def test_the_command_line_shows_all_of_them(lived: tuple[World, Workers]) -> None:
    _, workers = lived
    url = ["--url", f"http://{workers.one.id}"]
    found = [json.loads(line) for line in said("status", *url, "--json").splitlines()]
    assert {each["connector"] for each in found} == set(NAMES)
    assert {each["state"] for each in found} == {"RUNNING"}
    assert all(name in said("tail", *url, "--count", "1") for name in NAMES)
    for name in NAMES:
        assert name in said("explain", name, *url)


def said(*arguments: str) -> str:
    command = [sys.executable, "-m", "barnabas", "connect", *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout
