"""The execution plan of a query as text, in ksqlDB's form: one line a step, sources at the bottom.

Does not know: plans.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """A step with its schema; `before` are the steps whose rows it takes."""

    name: str
    schema: str = ""
    logger: str = ""
    before: tuple[Step, ...] = ()


def execution_plan(step: Step, depth: int = 0) -> str:
    indent = "\t\t" * depth
    logger = f" | Logger: {step.logger}" if step.logger else ""
    line = f"{indent} > [ {step.name} ] | Schema: {step.schema}{logger}\n"
    return line + "".join(execution_plan(each, depth + 1) for each in step.before)
