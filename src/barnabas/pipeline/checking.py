"""What is wrong with a pipeline, as far as it can be known without Spark: all of it at once.

In: a pipeline. Out: problems, each with the line, the name and a hint. Does not know: YAML, Spark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.pipeline.model import Pipeline


@dataclass(frozen=True, slots=True)
class Problem:
    """`path` is the name in the file, as in sources.orders.format; `line` is 0 where there is no file."""

    path: str
    message: str
    hint: str = ""
    line: int = 0

    def __str__(self) -> str:
        place = f"line {self.line}: " if self.line else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{place}{self.path}: {self.message}{hint}"


def problems_of(pipeline: Pipeline) -> list[Problem]:
    return []
