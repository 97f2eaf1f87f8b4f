"""Targets that hang: others do not wait for them, and what they missed is told again."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace

import pytest

from barnabas.monitor.alert_service import evaluator
from barnabas.monitor.alert_service.evaluator import Evaluator
from barnabas.monitor.alert_service.file import alerts_file
from barnabas.monitor.alert_service.measuring import Measurements
from barnabas.monitor.alerts.notices import Notice, Route
from barnabas.monitor.alerts.rule import Finding, labels_of

GROUPS = 12


class Failing:
    async def measure(self, now_ms: int) -> Measurements:
        found = Measurements()
        found.add("group_status", [Finding(3, labels_of(group=number)) for number in range(GROUPS)])
        return found


class Hanging:
    """A target that accepts nothing until it is let go."""

    name = "hanging"

    def __init__(self) -> None:
        self.is_let_go = threading.Event()

    def deliver(self, notice: Notice) -> None:
        self.is_let_go.wait(60)


class Quick:
    name = "quick"

    def __init__(self) -> None:
        self.notices: list[Notice] = []

    def deliver(self, notice: Notice) -> None:
        self.notices.append(notice)


def evaluator_of(hanging: Hanging, quick: Quick) -> Evaluator:
    given = {
        "group": {"by": ["group"], "wait": "0s"},
        "rules": [
            {"name": "GroupFailing", "for": "0s"},
            {"name": "GroupFallsBehind", "enabled": False},
        ],
    }
    targets = {"hanging": hanging, "quick": quick}
    return Evaluator(
        replace(alerts_file(given, "test"), targets=targets, routes=(Route(tuple(targets)),)), Failing()
    )


def test_a_target_that_hangs_holds_up_no_other() -> None:
    hanging, quick = Hanging(), Quick()

    async def main() -> None:
        found = evaluator_of(hanging, quick)
        try:
            await found.evaluate()
            found.tell()
            async with asyncio.timeout(30):
                while len(quick.notices) < GROUPS:
                    await asyncio.sleep(0.01)
        finally:
            hanging.is_let_go.set()
            await found.stop()

    asyncio.run(main())


def test_a_delivery_without_an_end_counts_as_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    hanging, quick = Hanging(), Quick()

    async def main() -> None:
        found = evaluator_of(hanging, quick)
        try:
            await found.evaluate()
            found.tell()
            await asyncio.gather(*found._tasks)
            assert (found.failures, found.deliveries) == (GROUPS, GROUPS)
        finally:
            hanging.is_let_go.set()
            await found.stop()

    monkeypatch.setattr(evaluator, "DELIVERY_S_MAX", 0.2)
    asyncio.run(main())
