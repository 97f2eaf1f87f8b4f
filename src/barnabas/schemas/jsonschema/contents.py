"""Content models: which properties or items a schema allows beyond those that it declares.

Open: any. Closed: none. Partially open: those that a schema accepts, or properties with names of a pattern.
In: a node of an object or of an array. Out: its content model.
Does not know: comparing.
"""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.schemas.jsonschema import patterns
from barnabas.schemas.jsonschema.nodes import Kind, Node
from barnabas.schemas.jsonschema.texts import Json


@dataclass(frozen=True, slots=True)
class Content:
    """`rest` is None if any value is allowed, and a node of kind FALSE if none is."""

    rest: Node | None  # beyond what is declared: additionalProperties, additionalItems
    unevaluated: Node | None  # beyond what anything else has evaluated
    by_pattern: tuple[tuple[str, Node], ...] = ()

    @property
    def is_closed(self) -> bool:
        return self.rest is not None and self.rest.kind is Kind.FALSE

    @property
    def is_open(self) -> bool:
        return self.rest is None and not self.by_pattern and self.unevaluated is None

    @property
    def schema_of_rest(self) -> Node | None:
        """The schema of a partially open model, as far as it does not depend on names."""
        rest = self.rest or self.unevaluated
        return rest if rest is not None and rest.kind is not Kind.FALSE else None

    def covering(self, name: str) -> tuple[list[Node], bool]:
        """The schemas that an undeclared property of that name must satisfy, and whether that is certain.

        It is not certain if nobody can tell in bounded time whether a pattern matches. Its schema then counts
        beside the one of names that match no pattern.
        """
        doubtful: list[Node] = []
        for pattern, node in self.by_pattern:
            is_match = patterns.found_in(pattern, name)
            if is_match:
                return [*doubtful, node], not doubtful
            if is_match is None:
                doubtful.append(node)
        rest = self.schema_of_rest
        return [*doubtful, *([rest] if rest is not None else [])], not doubtful


def _unless_open(node: Node, schema: Json) -> Node | None:
    return None if schema is None or schema is True or schema == {} else node.inner(schema)


def content_of_object(node: Node) -> Content:
    unevaluated = node.raw.get("unevaluatedProperties") if node.draft.number >= 2019 else None
    by_pattern = node.raw.get("patternProperties")
    rest = node.raw.get("additionalProperties")
    return Content(
        _unless_open(node, rest),
        _unless_open(node, unevaluated) if rest is None else None,
        tuple((key, node.inner(schema)) for key, schema in by_pattern.items())
        if isinstance(by_pattern, dict)
        else (),
    )


def content_of_array(node: Node) -> Content:
    if node.draft.number >= 2020:
        rest = node.raw.get("items") if "prefixItems" in node.raw else None
    else:
        rest = node.raw.get("additionalItems")
    unevaluated = node.raw.get("unevaluatedItems") if node.draft.number >= 2019 else None
    return Content(_unless_open(node, rest), _unless_open(node, unevaluated) if rest is None else None)
