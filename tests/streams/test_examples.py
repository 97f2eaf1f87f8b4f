"""The examples of docs/streams.md run: in the test driver, and on Spark with the same last values."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from tests.streams.spark.local import KEEPS_OLD_RECORDS
from tests.streams.spark.on_spark import own_topics, run_on_spark

from barnabas import streams
from barnabas.plans.interpreter.records import Headers, Output
from barnabas.plans.plan import Plan
from barnabas.streams import TestDriver
from barnabas.streams.run.topologies import send_by_value
from barnabas.testing.broker import Broker

PAGE = Path(__file__).parents[2] / "docs" / "streams.md"
SECTIONS = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1:]
EXAMPLES = {
    section.splitlines()[0]: found[1]
    for section in SECTIONS
    if (found := re.search(r"```python\n(.*?)```", section, re.DOTALL))
}
NAMES = [
    "Word count",
    "Favourite colours",
    "Bank balances",
    "User enrichment with a global table",
    "Page views per region",
    "Error counts per minute",
    "Possible fraud",
    "Processors",
]
BY_THE_WALL_CLOCK = "Processors"


class Recorded(TestDriver):
    """Remembers the plan, what was piped, and what came out."""

    def __init__(self, plan: Plan, **more: Any) -> None:
        super().__init__(plan, **more)
        self.plan = plan
        self.inputs: list[Output] = []
        self.outputs: list[Output] = []
        runs.append(self)

    def pipe(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        timestamp: int | None = None,
        headers: Headers = (),
    ) -> None:
        self.inputs.append(Output(topic, key, value, timestamp or 0, headers))
        before = {name: len(some) for name, some in self.written.items()}
        super().pipe(topic, key, value, timestamp, headers)
        for name, some in self.written.items():
            self.outputs += some[before.get(name, 0) :]


runs: list[Recorded] = []


def run_example(name: str, monkeypatch: pytest.MonkeyPatch) -> Recorded:
    module = types.ModuleType("example")
    monkeypatch.setitem(sys.modules, "example", module)  # dataclasses look their module up
    send_by_value(module)
    monkeypatch.setattr(streams, "TestDriver", Recorded)
    code = compile(EXAMPLES[name], f"{PAGE.name}: {name}", "exec", dont_inherit=True)
    exec(code, module.__dict__)
    return runs.pop()


def test_the_page_has_the_examples() -> None:
    assert list(EXAMPLES) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_an_example_gives_the_results_of_the_page(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = run_example(name, monkeypatch)
    assert ran.inputs
    assert ran.outputs


@pytest.mark.long
def test_examples_give_the_same_on_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = [run_example(name, monkeypatch) for name in NAMES if name != BY_THE_WALL_CLOCK]
    inputs = {each.plan.application_id: each.inputs for each in ran}
    with Broker(in_process=False, overrides=KEEPS_OLD_RECORDS) as broker:
        found = run_on_spark(broker, tmp_path, [each.plan for each in ran], inputs, once=True)
    for each in ran:
        for topic in own_topics(each.plan)[1]:
            wanted = {out.key: (out.value, out.timestamp) for out in each.outputs if out.topic == topic}
            rows = {record.key: (record.value, record.timestamp) for record in found[topic]}
            assert rows == wanted, topic
