"""Evaluators that follow each other: no target misses an alert or its end, and none is told twice."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.client.core.errors import ClientError
from barnabas.client.producer import NewRecord
from barnabas.monitor.alert_service.alert_topics import STATE_TOPIC, AlertTopics, KeptState
from barnabas.monitor.alert_service.evaluator import Evaluator
from barnabas.monitor.alert_service.file import alerts_file
from barnabas.monitor.alert_service.measuring import Measurements
from barnabas.monitor.alerts.rule import Finding, labels_of
from barnabas.monitor.alerts.states import State

from .receiving import Hook, hook

HOUR_MS = 3_600_000


class Topics(AlertTopics):
    """The topics' records, kept in memory."""

    def __init__(self) -> None:
        self.records: list[tuple[str, bytes | None, bytes | None]] = []
        self.is_away = False

    async def _send(self, topic: str, records: list[NewRecord]) -> None:
        if self.is_away:
            raise ClientError("the cluster is away")
        self.records += [(topic, each.key, each.value) for each in records]

    @property
    def kept(self) -> KeptState:
        found = KeptState()
        for topic, key, value in self.records:
            if topic == STATE_TOPIC:
                found.apply(key, value)
        return found


class Groups:
    """What is measured: so many groups have the status of an error."""

    def __init__(self) -> None:
        self.failing: set[str] = set()

    async def measure(self, now_ms: int) -> Measurements:
        found = Measurements()
        found.add("group_status", [Finding(3, labels_of(group=each)) for each in sorted(self.failing)])
        return found


class World:
    """Evaluators in one place, of which one at a time leads, and two targets."""

    def __init__(self, runner: asyncio.Runner, hooks: dict[str, Hook]) -> None:
        self.hooks = hooks
        self.topics = Topics()
        self.groups = Groups()
        self.now_ms = 1_000_000
        self._runner = runner
        self._evaluators: list[Evaluator] = []
        self._leader: Evaluator | None = None

    def evaluator(self) -> Evaluator:
        given = {
            "targets": {name: {"webhook": {"url": each.url}} for name, each in self.hooks.items()},
            "group": {"by": ["group"], "wait": "0s", "interval": "1m", "repeat": "4h"},
            "rules": [
                {"name": "GroupFailing", "for": "0s", "keep": "0s"},
                {"name": "GroupFallsBehind", "enabled": False},
            ],
        }

        async def make() -> Evaluator:
            return Evaluator(
                alerts_file(given, "test"), self.groups, lambda: self._leader is made, lambda: self.now_ms
            )

        made = self._runner.run(make())
        self._evaluators.append(made)
        return made

    def lead(self, evaluator: Evaluator) -> None:
        evaluator.remember(self.topics, self.topics.kept)
        self._leader = evaluator

    def look(self, *evaluators: Evaluator, after_ms: int = 1_000) -> None:
        """One round of each, and all deliveries that are due."""
        self.now_ms += after_ms

        async def round() -> None:
            for each in evaluators:
                await each.evaluate()
                each.tell()
                while each._tasks:
                    await asyncio.gather(*each._tasks)

        self._runner.run(round())

    def told(self, target: str) -> list[tuple[str, str]]:
        return [
            (each["labels"]["group"], each["status"])
            for _, body in self.hooks[target].bodies
            for each in body["alerts"]
        ]

    def end(self) -> None:
        for each in self._evaluators:
            self._runner.run(each.stop())


@pytest.fixture
def world() -> Iterator[World]:
    with hook() as first, hook() as second, asyncio.Runner() as runner:
        found = World(runner, {"first": first, "second": second})
        yield found
        found.end()


@pytest.fixture
def two(world: World) -> Any:
    """A leader and a follower, after a look of each."""
    leader, follower = world.evaluator(), world.evaluator()
    follower.remember(world.topics, world.topics.kept)
    world.lead(leader)
    world.look(leader, follower)
    return leader, follower


FIRING, RESOLVED = ("readers", "firing"), ("readers", "resolved")


def test_an_end_is_told_though_the_leader_died_before_it_stored_whom_it_told(world: World, two: Any) -> None:
    leader, follower = two
    world.groups.failing = {"readers"}
    world.look(leader, follower)
    assert world.told("first") == world.told("second") == [FIRING]
    for _ in "12":
        _, key, value = world.topics.records.pop()  # the process dies between message and record
        assert key is not None and key.startswith(b"told/") and value is not None
    world.groups.failing = set()
    world.lead(follower)
    world.look(follower)
    world.look(follower, after_ms=60_000)
    assert world.told("first")[-1] == world.told("second")[-1] == RESOLVED
    assert not any(world.topics.kept.underway.values())


def test_a_target_that_failed_under_the_old_leader_is_told_by_the_new_one(world: World, two: Any) -> None:
    leader, follower = two
    world.hooks["second"].status = 500
    world.groups.failing = {"readers"}
    world.look(leader, follower)
    assert (world.told("first"), world.told("second")) == ([FIRING], [])
    world.hooks["second"].status = 200
    world.lead(follower)
    world.look(follower)
    assert (world.told("first"), world.told("second")) == ([FIRING], [FIRING])


def test_an_end_that_the_old_leader_stored_and_did_not_tell_is_told(world: World, two: Any) -> None:
    leader, follower = two
    world.groups.failing = {"readers"}
    world.look(leader, follower)
    world.groups.failing = set()
    world.look(leader, follower)  # within the group's interval: nobody is told yet
    assert world.told("first") == [FIRING]
    world.lead(follower)
    world.look(follower, after_ms=HOUR_MS)
    world.look(follower, after_ms=HOUR_MS)
    assert world.told("first") == world.told("second") == [FIRING, RESOLVED]
    assert world.topics.kept.alerts == {}


def test_an_end_is_told_once_although_its_first_message_of_the_new_leader_fails(
    world: World, two: Any
) -> None:
    leader, follower = two
    world.groups.failing = {"readers"}
    world.look(leader, follower)
    world.groups.failing = set()
    world.look(leader, follower)
    world.lead(follower)
    world.hooks["first"].status = 500
    world.look(follower, after_ms=HOUR_MS)
    world.hooks["first"].status = 200
    world.look(follower, after_ms=HOUR_MS)
    world.look(follower, after_ms=HOUR_MS)
    assert world.told("first") == world.told("second") == [FIRING, RESOLVED]


def test_a_leader_that_comes_back_does_not_tell_an_old_end_again(world: World, two: Any) -> None:
    leader, follower = two
    world.groups.failing = {"readers"}
    world.look(leader, follower)
    world.lead(follower)
    world.groups.failing = set()
    world.look(follower, leader, after_ms=HOUR_MS)
    assert world.told("first") == [FIRING, RESOLVED]
    world.lead(leader)
    world.look(leader, after_ms=HOUR_MS)
    assert world.told("first") == world.told("second") == [FIRING, RESOLVED]


def test_an_alert_that_fires_again_under_another_leader_is_told_again(world: World, two: Any) -> None:
    leader, follower = two
    world.groups.failing = {"readers"}
    world.look(leader, follower)
    world.lead(follower)
    world.groups.failing = set()
    world.look(follower, leader, after_ms=HOUR_MS)
    world.lead(leader)
    world.groups.failing = {"readers"}
    world.look(leader, follower, after_ms=HOUR_MS)
    assert world.told("first") == world.told("second") == [FIRING, RESOLVED, FIRING]


def test_the_end_of_what_was_told_while_the_cluster_was_away_is_told(world: World) -> None:
    alone = world.evaluator()
    world._leader = alone  # without topics everybody tells
    world.groups.failing = {"readers"}
    world.look(alone)
    assert world.told("first") == [FIRING]
    world.lead(alone)  # the cluster is back
    world._leader = None  # and nobody is elected for a moment
    world.look(alone)
    world.lead(alone)
    world.groups.failing = set()
    world.look(alone, after_ms=HOUR_MS)
    assert world.told("first") == world.told("second") == [FIRING, RESOLVED]


def test_what_could_not_be_stored_is_stored_later(world: World, two: Any) -> None:
    leader, follower = two
    world.topics.is_away = True
    world.groups.failing = {"readers"}
    world.look(leader)
    assert world.told("first") == [FIRING]
    world.topics.is_away = False
    world.look(leader)
    kept = world.topics.kept
    assert [(each.rule, each.state) for each in kept.alerts.values()] == [("GroupFailing", State.FIRING)]
    assert kept.told == {"first": set(kept.alerts), "second": set(kept.alerts)}
    world.lead(follower)
    world.look(follower)
    assert world.told("first") == [FIRING]


def test_a_rule_that_is_gone_ends_its_alert(world: World, two: Any) -> None:
    leader, _ = two
    world.groups.failing = {"readers"}
    world.look(leader)
    heir = world.evaluator()
    heir.file = alerts_file(
        {
            "targets": {name: {"webhook": {"url": each.url}} for name, each in world.hooks.items()},
            "rules": [{"name": name, "enabled": False} for name in ("GroupFailing", "GroupFallsBehind")],
        },
        "test",
    )
    world.lead(heir)
    world.look(heir, after_ms=HOUR_MS)
    assert world.told("first") == world.told("second") == [FIRING, RESOLVED]
