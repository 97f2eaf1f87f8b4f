"""The comparison of two schemas: what a reader must live with when it reads a writer's values.

Pairs of nodes are compared depth first. Each comparison is a generator that yields the inner pairs it needs.
So schemas may refer to each other as deeply as they like without deep calls. A pair that is met again inside
itself is taken as compatible at first. If it turns out not to be, everything is compared again with that
knowledge, until nothing changes. A pair is compared once a round, so the work grows with the number of pairs.
In: the nodes of reader and writer, and the kinds that count as compatible. Out: differences.
Does not know: texts, messages.
"""

from __future__ import annotations

from barnabas.schemas.jsonschema import arrays, combinations, objects, scalars
from barnabas.schemas.jsonschema.differences import Difference
from barnabas.schemas.jsonschema.nodes import ALL_OF, Kind, Node
from barnabas.schemas.jsonschema.steps import Effort, Steps, StepsTo
from barnabas.schemas.jsonschema.texts import frozen

REFUTED = Difference("")  # stands for the differences of a pair that is known to be incompatible

COMPARISONS = {
    Kind.STRING: scalars.compare_texts,
    Kind.NUMBER: scalars.compare_numbers,
    Kind.ENUM: scalars.compare_enums,
    Kind.CONST: scalars.compare_constants,
}
NESTED_COMPARISONS = {
    Kind.OBJECT: objects.compare,
    Kind.ARRAY: arrays.compare,
    Kind.COMBINED: combinations.compare,
    Kind.NOT: combinations.compare_negations,
}
# Changes of these never matter; they are found for people who want to see what changed.
ANNOTATIONS = {"title": "TITLE_CHANGED", "description": "DESCRIPTION_CHANGED", "default": "DEFAULT_CHANGED"}


def differences(writer: Node, reader: Node, compatible: frozenset[str]) -> list[Difference]:
    """All differences, with their paths from the top."""
    return Comparison(compatible).run(writer, reader)


class Comparison:
    def __init__(self, compatible: frozenset[str]) -> None:
        self.effort = Effort(compatible)
        self._refuted: set[tuple[Node, Node]] = set()

    def run(self, writer: Node, reader: Node) -> list[Difference]:
        while True:
            known = len(self._refuted)
            found = self._round(writer, reader)
            if len(self._refuted) == known:
                return [difference for difference in found if difference.kind != REFUTED.kind]

    def _round(self, writer: Node, reader: Node) -> list[Difference]:
        compared: dict[tuple[Node, Node], list[Difference]] = {}
        open_: dict[tuple[Node, Node], Steps] = {}
        assumed: set[tuple[Node, Node]] = set()
        pair = (writer, reader)
        open_[pair] = self._compare(writer, reader)
        stack = [pair]
        found: list[Difference] | None = None
        while stack:
            self.effort.spend(1)
            try:
                inner = next(open_[stack[-1]]) if found is None else open_[stack[-1]].send(found)
            except StopIteration as end:
                found = end.value
                assert found is not None
                done = stack.pop()
                del open_[done]
                compared[done] = found
                if done in assumed and not self.effort.accepts(found):
                    self._refuted.add(done)
                continue
            found = compared.get(inner)
            if found is None and inner in open_:
                assumed.add(inner)
                found = [REFUTED] if inner in self._refuted else []
            if found is None:
                open_[inner] = self._compare(*inner)
                stack.append(inner)
        return compared[pair]

    def _compare(self, writer: Node, reader: Node) -> Steps:
        found = yield from self._beside_combinations(writer, reader)
        if found is not None:
            return found
        if writer.kind is not reader.kind:
            if writer.kind is Kind.FALSE or reader.kind is Kind.EMPTY or _are_bytes(writer, reader):
                return []
            return [Difference("TYPE_CHANGED")]
        found = _annotations(writer, reader)
        if reader.kind in COMPARISONS:
            found += COMPARISONS[reader.kind](writer, reader)
        elif reader.kind in NESTED_COMPARISONS:
            found += yield from NESTED_COMPARISONS[reader.kind](writer, reader, self.effort)
        return found

    def _beside_combinations(self, writer: Node, reader: Node) -> StepsTo[list[Difference] | None]:
        """A plain schema and a combination: one member may do. None if none does, or if both are alike."""
        if (writer.kind is Kind.COMBINED) == (reader.kind is Kind.COMBINED):
            return None
        if reader.kind is Kind.COMBINED:
            members = reader.members()
            pairs = [(writer, member) for member in members]
            one_is_enough, kind = reader.criterion != ALL_OF, "SUM_TYPE_EXTENDED"
        else:
            members = writer.members()
            pairs = [(member, reader) for member in members]
            one_is_enough, kind = writer.criterion == ALL_OF, "PRODUCT_TYPE_NARROWED"
        if len(members) > 1 and not one_is_enough:
            return None
        for pair in pairs:
            found = yield pair
            if self.effort.accepts(found):
                return found if len(members) == 1 else [*found, Difference(kind)]
        return None


def _annotations(writer: Node, reader: Node) -> list[Difference]:
    found = []
    if writer.raw.get(writer.draft.id_key) != reader.raw.get(reader.draft.id_key):
        found.append(Difference("ID_CHANGED"))
    for key, kind in ANNOTATIONS.items():
        if (key in writer.raw) != (key in reader.raw) or (
            key in reader.raw and frozen(writer.raw[key]) != frozen(reader.raw[key])
        ):
            found.append(Difference(kind))
    return found


def _are_bytes(writer: Node, reader: Node) -> bool:
    """Kafka Connect writes bytes as texts or as numbers, and says so."""
    return writer.raw.get("connect.type") == "bytes" == reader.raw.get("connect.type")
