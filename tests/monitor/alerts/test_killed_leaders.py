"""Several alert services, whose leader is killed again and again while alerts begin and end: every target
hears of every alert and of its end. A message is told twice only by a leader that died before it stored that
it was told.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest
import yaml

from barnabas.testing import Broker
from barnabas.testing.waiting import wait_until

from .endpoints import Pages, pages
from .receiving import Hook, hook
from .test_alert_service import Service, leaders

pytestmark = pytest.mark.long
PATIENCE_S = 120.0
KILLS = 3
RULE = {"name": "Hot", "check": "metric", "metric": "heat", "above": 5, "severity": "critical"}


def show(page: Pages, **heat: int) -> None:
    page.pages["/metrics"] = "".join(f'heat{{part="{part}"}} {value}\n' for part, value in heat.items())


def told(receiver: Hook, part: str) -> list[str]:
    return [
        each["status"]
        for _, body in list(receiver.bodies)
        for each in body["alerts"]
        if each["labels"].get("part") == part
    ]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[tuple[Path, Pages, list[Hook]]]:
    with Broker() as broker, pages() as page, hook() as first, hook() as second:
        show(page, a=0, b=0, c=0)
        path = tmp_path / "alerts.yaml"
        path.write_text(
            yaml.safe_dump(
                {
                    "clusters": [{"name": "main", "properties": {"bootstrap.servers": broker.bootstrap}}],
                    "metrics": [f"{page.url}/metrics"],
                    "interval": "1s",
                    "consumer_groups": {"deny": "."},
                    "targets": {
                        name: {"webhook": {"url": each.url}}
                        for name, each in (("first", first), ("second", second))
                    },
                    "group": {"by": ["part"], "wait": "0s", "interval": "2s", "repeat": "1h"},
                    "rules": [RULE, {"name": "DiskAlmostFull", "enabled": False}],
                }
            )
        )
        yield path, page, [first, second]


def test_no_alert_is_lost_and_none_told_again_when_leaders_die(
    world: tuple[Path, Pages, list[Hook]],
) -> None:
    path, page, receivers = world
    services = [Service(path.parent, path) for _ in range(3)]
    try:
        for each in services:
            each.wait()
        show(page, a=9, b=0, c=0)  # a burns all the time
        wait_until(lambda: all(told(each, "a") == ["firing"] for each in receivers), PATIENCE_S)
        for number in range(KILLS):
            wait_until(lambda: len(leaders(services)) == 1, PATIENCE_S)
            (leader,) = leaders(services)
            receivers[1].status = 500  # one target is away under this leader
            show(page, a=9, b=9, c=0)
            until_last(receivers[:1], "b", "firing")
            show(page, a=9, b=9 if number % 2 else 0, c=9)  # b may end while nobody leads
            leader.end(signal.SIGKILL)
            services.remove(leader)
            receivers[1].status = 200
            services.append(Service(path.parent, path))
            until_last(receivers, "c", "firing")
            show(page, a=9, b=0, c=0)
            until_last(receivers, "c", "resolved")
            until_last(receivers[:1], "b", "resolved")
        show(page, a=0, b=0, c=0)
        wait_until(lambda: all(told(each, "a")[-1:] == ["resolved"] for each in receivers), PATIENCE_S)
    finally:
        for each in services:
            each.end(signal.SIGKILL)
    for part in "abc":
        rounds = 1 if part == "a" else KILLS
        heard, late = told(receivers[0], part), told(receivers[1], part)
        assert runs(heard) == ["firing", "resolved"] * rounds
        assert len(heard) <= 2 * rounds + KILLS  # twice by a leader that died before it stored it
        # A leader that dies while it tells a target leaves it open whether the target has heard.
        ends = late[1:] if late[:1] == ["resolved"] else late
        assert runs(ends) == ["firing", "resolved"] * (len(runs(ends)) // 2)
    assert len(runs(told(receivers[1], "c"))) == 2 * KILLS


def runs(heard: list[str]) -> list[str]:
    return [status for status, _ in groupby(heard)]


def until_last(receivers: list[Hook], part: str, status: str) -> None:
    wait_until(lambda: all(told(each, part)[-1:] == [status] for each in receivers), PATIENCE_S)
