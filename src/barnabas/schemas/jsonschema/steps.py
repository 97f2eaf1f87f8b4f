"""How parts of a comparison ask for inner comparisons, and how much all of them may do.

In: kinds that count as compatible. Out: whether differences are compatible; InvalidSchema if it is too much.
Does not know: what is compared.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import TypeAlias, TypeVar

from barnabas.schemas.jsonschema.differences import Difference
from barnabas.schemas.jsonschema.nodes import Node
from barnabas.schemas.model import InvalidSchema

STEPS_MAX = 500_000

Result = TypeVar("Result")
# Yields pairs of writer's and reader's nodes, is sent their differences, and returns its own.
StepsTo: TypeAlias = Generator[tuple[Node, Node], list[Difference], Result]
Steps: TypeAlias = StepsTo[list[Difference]]


class Effort:
    def __init__(self, compatible: frozenset[str]) -> None:
        self._compatible = compatible
        self._left = STEPS_MAX

    def accepts(self, found: Iterable[Difference]) -> bool:
        return all(difference.kind in self._compatible for difference in found)

    def spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise InvalidSchema(
                f"The schemas are too complex to compare: it takes more than {STEPS_MAX} steps. "
                f"Fewer members in oneOf, anyOf and allOf, or fewer references between them, would help"
            )
