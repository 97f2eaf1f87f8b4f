"""The comparison of combinations (`allOf`, `anyOf`, `oneOf`) and of negations.

In: two nodes of combinations, or of negations. Out: differences.
Does not know: other kinds.
"""

from __future__ import annotations

from collections import deque

from barnabas.schemas.jsonschema.differences import Difference, under
from barnabas.schemas.jsonschema.nodes import ALL_OF, ANY_OF, ONE_OF, Node
from barnabas.schemas.jsonschema.steps import Effort, Steps


def compare(writer: Node, reader: Node, effort: Effort) -> Steps:
    before, after = writer.members(), reader.members()
    found: list[Difference] = []
    if writer.criterion != reader.criterion:
        if not _may_become(writer, reader):
            return [Difference("COMBINED_TYPE_CHANGED")]
        found.append(Difference("COMBINED_TYPE_EXTENDED"))
    if len(before) < len(after):
        found.append(Difference(f"{'PRODUCT' if reader.criterion == ALL_OF else 'SUM'}_TYPE_EXTENDED"))
    elif len(before) > len(after):
        found.append(Difference(f"{'PRODUCT' if writer.criterion == ALL_OF else 'SUM'}_TYPE_NARROWED"))
    edges: list[dict[int, list[Difference]]] = []
    for index, old in enumerate(before):
        accepted = {}
        for other, new in enumerate(after):
            inner = yield old, new
            if effort.accepts(inner):
                accepted[other] = under((writer.criterion, str(index)), inner)
        edges.append(accepted)
    matched = maximum_matching([list(accepted) for accepted in edges], effort)
    for index, other in sorted(matched.items()):
        found += edges[index][other]
    if len(matched) < min(len(before), len(after)):
        found.append(Difference("COMBINED_TYPE_SUBSCHEMAS_CHANGED"))
    return found


def _may_become(writer: Node, reader: Node) -> bool:
    """Anything may become `anyOf`. A combination with one member is that member, whatever combines it."""
    if reader.criterion == ANY_OF:
        return True
    if len(reader.members()) == 1:
        return writer.criterion == ALL_OF or len(writer.members()) == 1
    return reader.criterion == ONE_OF and len(writer.members()) == 1


def maximum_matching(edges: list[list[int]], effort: Effort) -> dict[int, int]:
    """As many pairs as possible, so that nobody is in two of them: left by index, right as `edges` names it.

    Grows the matching by one shortest alternating path at a time.
    """
    right_of: dict[int, int] = {}
    left_of: dict[int, int] = {}
    for start in range(len(edges)):
        came_from: dict[int, int] = {}
        waiting = deque([start])
        end = None
        while waiting and end is None:
            left = waiting.popleft()
            effort.spend(len(edges[left]))
            for right in edges[left]:
                if right in came_from:
                    continue
                came_from[right] = left
                if right not in left_of:
                    end = right
                    break
                waiting.append(left_of[right])
        while end is not None:
            left = came_from[end]
            previous = right_of.get(left)
            right_of[left], left_of[end] = end, left
            end = previous if left != start else None
    return right_of


def compare_negations(writer: Node, reader: Node, effort: Effort) -> Steps:
    """The reader may forbid less than the writer: forbidden schemas are compared the other way round."""
    found = yield reader.inner(reader.raw["not"]), writer.inner(writer.raw["not"])
    return [Difference(f"NOT_TYPE_{'NARROWED' if effort.accepts(found) else 'EXTENDED'}", ("not",))]
