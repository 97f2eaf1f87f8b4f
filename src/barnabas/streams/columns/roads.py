"""The road of each step of a plan, with the reason: for explanations.

In: a plan. Out: for each node, columns or record by record, with the reason. A sub-topology takes one road:
a single step without columns sends all of its steps record by record. Does not know: batches.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from barnabas.plans import nodes as n
from barnabas.plans.description import describe
from barnabas.plans.expressions import Expression
from barnabas.plans.interpreter import loading as operators
from barnabas.plans.interpreter.task import State, Task
from barnabas.plans.plan import Plan, Subtopology
from barnabas.plans.stores import MemoryBackend
from barnabas.streams.columns import loading
from barnabas.streams.columns.aggregates import aggregate_reasons
from barnabas.streams.columns.column import NotColumnar
from barnabas.streams.columns.expressions import reasons
from barnabas.streams.columns.formats import form_of, is_columnar
from barnabas.streams.columns.task import BUILDERS, ColumnTask

assert loading.STEPS
assert operators.OPERATORS


@dataclass(frozen=True, slots=True)
class Road:
    """How a node runs. `obstacle` says what keeps it from columns; `python` which parts of a step over
    columns are functions of Python."""

    node: str
    obstacle: str | None = None
    python: tuple[str, ...] = ()
    follows: bool = False  # the obstacle is another step's

    def __str__(self) -> str:
        if self.obstacle is not None:
            return f"record by record: {self.obstacle}"
        return f"columns, with Python for each value: {'; '.join(self.python)}" if self.python else "columns"


def roads(plan: Plan) -> dict[int, list[Road]]:
    """The road of each node, by sub-topology; without those of global tables, which are only loaded."""
    shared: dict[str, State] = {}
    for each in plan.subtopologies:
        if each.is_global:
            shared |= Task(each, MemoryBackend(), application_id=plan.application_id).states
    return {
        each.number: _roads(each, plan.application_id, shared)
        for each in plan.subtopologies
        if not each.is_global
    }


def _roads(subtopology: Subtopology, application_id: str, shared: dict[str, State]) -> list[Road]:
    task = Task(subtopology, MemoryBackend(), application_id=application_id, global_states=shared)
    columns = ColumnTask(task)
    found: dict[str, str | None] = {}
    for node in subtopology.nodes:
        try:
            if type(node) not in BUILDERS:
                raise NotColumnar(f"{type(node).__name__} has no step over columns")
            BUILDERS[type(node)](columns, node)
            found[node.name] = "a timer runs between records" if task.punctuations else None
        except NotColumnar as error:
            found[node.name] = str(error)
    first = next((name for name, obstacle in found.items() if obstacle is not None), None)
    if first is None:
        has_fields = any(
            isinstance(node, n.Source) and form_of(node.value_serde, "", False) is not None
            for node in subtopology.nodes
        )
        return [Road(node.name, None, tuple(_python(node, has_fields))) for node in subtopology.nodes]
    return [
        Road(name, obstacle)
        if obstacle is not None
        else Road(name, f"{first} of the same sub-topology is", follows=True)
        for name, obstacle in found.items()
    ]


def _python(node: n.Node, has_fields: bool) -> list[str]:
    found = []
    for field in fields(node):
        found += _functions(getattr(node, field.name), field.name, has_fields)
    if isinstance(node, n.Source | n.Sink):
        for name, serde in (("keys", node.key_serde), ("values", node.value_serde)):
            if not is_columnar(serde):
                found.append(f"{name} are {serde.format}" if serde is not None else name)
    return found


def _functions(value: Any, name: str, has_fields: bool) -> list[str]:
    if isinstance(value, Expression):
        return reasons(value, has_fields=has_fields)
    if name == "aggregate" and (found := aggregate_reasons(value)):
        return found
    if isinstance(value, tuple):
        return [each for item in value for each in _functions(item, name, has_fields)]
    if callable(value) and not isinstance(value, type):
        return [f"{getattr(value, '__name__', type(value).__name__)}()"]
    return []


def explain(plan: Plan) -> str:
    """The topology as Kafka Streams describes it, and the road of each step on Spark."""
    lines = [describe(plan).rstrip(), "", "On Spark:"]
    for number, some in roads(plan).items():
        lines.append(f"   Sub-topology: {number}, a task of a job for each partition")
        lines += [f"    {road.node}: {road}" for road in some]
    return "\n".join(lines) + "\n"
