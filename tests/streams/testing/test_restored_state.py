"""State that is restored from changelogs again and again gives what Kafka Streams gives without any loss."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from tests.streams.testing import oracle
from tests.streams.testing.topologies import TOPOLOGIES, plan_of

from barnabas.plans.interpreter.records import Output
from barnabas.plans.interpreter.task import NUMBERS, TASK_STORE, TIME, Task, state_of
from barnabas.plans.stores import MemoryBackend, StoreKind
from barnabas.streams import TestDriver

RECORDED = json.loads(oracle.RECORDED.read_text())
TOLD_BY_CHANGELOGS = sorted(TOPOLOGIES.keys() - {"process"})  # its timers by wall clock begin anew


class LosesState(TestDriver):
    """Now and then its tasks get a state that was made anew from the changelogs, which were compacted."""

    rng = random.Random(7)

    def lose(self) -> None:
        # Changelogs of versioned stores keep their history: min.compaction.lag.ms.
        stores = [spec for task in self.tasks for spec in task.subtopology.stores]
        kept = {spec.changelog_topic("app") for spec in stores if spec.kind == StoreKind.VERSIONED}
        compacted: dict[tuple[str, bytes | None, int], Output] = {}
        for at, each in enumerate(self.changelog):
            place = (each.topic, each.key, at if each.topic in kept else 0)
            compacted.pop(place, None)
            compacted[place] = each
        states: dict[str, Any] = {}
        for at, old in enumerate(self.tasks):
            if old.subtopology.is_global:
                states.update(old.states)
                continue
            backend = MemoryBackend()
            for spec in old.subtopology.stores:
                state = state_of(spec, backend, old.application_id)
                topic = spec.changelog_topic(old.application_id)
                for (name, _, _), each in compacted.items():
                    if name == topic and each.key is not None:
                        state.restore(each.key, each.value, each.timestamp)
                state.flush()
            for name in (TIME, NUMBERS):
                kept = old.backend.get(TASK_STORE, name)
                if kept is not None:
                    backend.put(TASK_STORE, name, kept)
            self.tasks[at] = Task(
                old.subtopology,
                backend,
                application_id=old.application_id,
                global_states=states,
                now_ms=self.now_ms,
            )


@pytest.mark.parametrize("name", TOLD_BY_CHANGELOGS)
def test_results_are_those_without_a_loss(name: str) -> None:
    recorded = RECORDED[name]
    with LosesState(plan_of(name)) as driver:
        output = driver.output("out", value=str)
        for step, expected in zip(recorded["steps"], recorded["results"], strict=True):
            if driver.rng.random() < 0.2:
                driver.lose()
            driver.input(step[1], value=str).pipe(*step[2:])
            assert [[each.key, each.value, each.timestamp] for each in output.read()] == expected, step
