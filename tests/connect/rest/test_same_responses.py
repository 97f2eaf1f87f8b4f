"""Our worker responds to requests as an Apache worker did: recorded scenarios, replayed.

`pytest --long` asks an Apache worker again and compares it with the recordings. With the environment variable
BARNABAS_RECORD=1 that test writes them anew.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from barnabas.testing import Broker
from connect.rest.deliberate import DIFFERENCES
from connect.rest.scenarios import OF_TWO_WORKERS, SCENARIOS
from connect.rest.talk import Talk
from connect.worker_processes import WorkerProcess, apache_jars

RECORDED = Path(__file__).with_name("recorded")


def recorded(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((RECORDED / f"{name}.json").read_text())
    return found


def spoken(
    scenario: Callable[[Talk], None], worker: WorkerProcess, folder: Path, *others: WorkerProcess
) -> list[dict[str, Any]]:
    talk = Talk(worker, folder, others)
    try:
        scenario(talk)
    except BaseException:
        print(json.dumps(talk.exchanges, indent=1)[-3000:])
        raise
    return talk.exchanges


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerProcess]:
    with Broker() as broker:
        found = WorkerProcess(tmp_path_factory.mktemp("ours"), broker.bootstrap, "rest", is_apache=False)
        try:
            found.wait()
            yield found
        finally:
            found.stop()


def different(ours: list[dict[str, Any]], theirs: list[dict[str, Any]], name: str) -> list[Any]:
    """Exchanges that differ in more than what is written down as a deliberate difference."""
    found: list[Any] = []
    allowed = DIFFERENCES.get(name, {})
    for number, (own, other) in enumerate(zip(ours, theirs, strict=True)):
        parts = {part for part in {*own, *other} if own.get(part) != other.get(part)}
        if parts != (allowed[number].parts if number in allowed else set()):
            shown = {part: (own.get(part), other.get(part)) for part in sorted(parts)}
            found.append((number, own["request"], own.get("sent"), shown))
    return found


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.__name__)
def test_our_worker_responds_as_recorded(
    scenario: Callable[[Talk], None], worker: WorkerProcess, tmp_path: Path
) -> None:
    name = scenario.__name__
    wrong = different(spoken(scenario, worker, tmp_path), recorded(name), name)
    assert not wrong, "\n".join(json.dumps(each, indent=1) for each in wrong)


@contextmanager
def two_workers(folder: Path, *, is_apache: bool) -> Iterator[tuple[WorkerProcess, WorkerProcess]]:
    """A leader and a follower: the first one that joins leads."""
    with Broker() as broker, ExitStack() as stack:
        found = []
        for number in range(2):
            worker = WorkerProcess(folder / f"w{number}", broker.bootstrap, "two", is_apache=is_apache)
            stack.callback(worker.stop)
            worker.wait()
            found.append(worker)
        yield found[0], found[1]


@pytest.mark.long
@pytest.mark.parametrize("scenario", OF_TWO_WORKERS, ids=lambda each: each.__name__)
def test_our_follower_responds_as_recorded(scenario: Callable[[Talk], None], tmp_path: Path) -> None:
    name = scenario.__name__
    with two_workers(tmp_path, is_apache=False) as (leader, follower):
        wrong = different(spoken(scenario, follower, tmp_path, leader), recorded(name), name)
    assert not wrong, "\n".join(json.dumps(each, indent=1) for each in wrong)


@pytest.mark.long
@pytest.mark.parametrize("scenario", OF_TWO_WORKERS, ids=lambda each: each.__name__)
def test_an_apache_follower_still_responds_as_recorded(
    scenario: Callable[[Talk], None], tmp_path: Path
) -> None:
    apache_jars()
    with two_workers(tmp_path, is_apache=True) as (leader, follower):
        said = spoken(scenario, follower, tmp_path, leader)
    path = RECORDED / f"{scenario.__name__}.json"
    if os.environ.get("BARNABAS_RECORD") == "1":
        path.write_text(json.dumps(said, indent=1, ensure_ascii=False, sort_keys=True) + "\n")
    assert said == recorded(scenario.__name__)


@pytest.mark.long
def test_an_apache_worker_still_responds_as_recorded(tmp_path: Path) -> None:
    apache_jars()
    wrong = {}
    with Broker() as broker:
        found = WorkerProcess(tmp_path / "worker", broker.bootstrap, "rest", is_apache=True)
        try:
            found.wait()
            for scenario in SCENARIOS:
                folder = tmp_path / scenario.__name__
                folder.mkdir()
                said = spoken(scenario, found, folder)
                path = RECORDED / f"{scenario.__name__}.json"
                if os.environ.get("BARNABAS_RECORD") == "1":
                    path.write_text(json.dumps(said, indent=1, ensure_ascii=False, sort_keys=True) + "\n")
                elif said != recorded(scenario.__name__):
                    wrong[scenario.__name__] = said
        finally:
            found.stop()
    assert not wrong, json.dumps(wrong, indent=1)
