"""The comparison of schemas of arrays: one schema for all items, or one for each of the first items.

In: two nodes of arrays. Out: differences.
Does not know: other kinds.
"""

from __future__ import annotations

from decimal import Decimal

from barnabas.schemas.jsonschema.contents import Content, content_of_array
from barnabas.schemas.jsonschema.differences import Difference, under
from barnabas.schemas.jsonschema.nodes import Kind, Node
from barnabas.schemas.jsonschema.objects import compare_rest
from barnabas.schemas.jsonschema.scalars import compare_limit, limits
from barnabas.schemas.jsonschema.steps import Effort, Steps
from barnabas.schemas.jsonschema.texts import Json, exact

LIMITS = {"maxItems": "MAX_ITEMS", "minItems": "MIN_ITEMS"}


def compare(writer: Node, reader: Node, effort: Effort) -> Steps:
    models = content_of_array(writer), content_of_array(reader)
    found = yield from _all_items(writer, reader)
    found += yield from _first_items(writer, reader, models, effort)
    found += yield from compare_rest("additionalItems", "ADDITIONAL_ITEMS", models[0].rest, models[1].rest)
    found += yield from compare_rest(
        "unevaluatedItems", "UNEVALUATED_ITEMS", models[0].unevaluated, models[1].unevaluated
    )
    found += limits(writer, reader, LIMITS)
    unique_before, unique_after = (node.raw.get("uniqueItems") is True for node in (writer, reader))
    if unique_before != unique_after:
        found.append(Difference(f"UNIQUE_ITEMS_{'ADDED' if unique_after else 'REMOVED'}", ("uniqueItems",)))
    return found + _contained(writer, reader)


def _schema_of_all(node: Node) -> Node | None:
    items = node.raw.get("items")
    if isinstance(items, list) or items is None:
        return None
    return None if node.draft.number >= 2020 and "prefixItems" in node.raw else node.inner(items)


def _all_items(writer: Node, reader: Node) -> Steps:
    before, after = _schema_of_all(writer), _schema_of_all(reader)
    if before is not None and after is not None:
        return under(("items",), (yield before, after))
    if before is after:
        return []
    return [Difference("SCHEMA_ADDED" if before is None else "SCHEMA_REMOVED", ("items",))]


def _schemas_of_first(node: Node) -> list[Json]:
    items = node.raw.get("prefixItems" if node.draft.number >= 2020 else "items")
    return items if isinstance(items, list) else []


def _first_items(writer: Node, reader: Node, models: tuple[Content, Content], effort: Effort) -> Steps:
    found: list[Difference] = []
    before, after = _schemas_of_first(writer), _schemas_of_first(reader)
    for index in range(max(len(before), len(after))):
        if index >= len(after):
            inner = yield from _removed(writer.inner(before[index]), models[1], effort)
        elif index >= len(before):
            inner = yield from _added(reader.inner(after[index]), models[0], effort)
        else:
            inner = yield writer.inner(before[index]), reader.inner(after[index])
        found += under(("items", str(index)), inner)
    return found


def _removed(item: Node, model: Content, effort: Effort) -> Steps:
    if model.is_open:
        return [Difference("ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL")]
    schema = model.schema_of_rest
    if schema is None:
        with_false = "_WITH_FALSE" if item.kind is Kind.FALSE else ""
        return [Difference(f"ITEM{with_false}_REMOVED_FROM_CLOSED_CONTENT_MODEL")]
    found = yield item, schema
    covered = "IS" if effort.accepts(found) else "NOT"
    return [*found, Difference(f"ITEM_REMOVED_{covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL")]


def _added(item: Node, model: Content, effort: Effort) -> Steps:
    if model.is_open:
        with_empty = "_WITH_EMPTY_SCHEMA" if item.kind is Kind.EMPTY else ""
        return [Difference(f"ITEM{with_empty}_ADDED_TO_OPEN_CONTENT_MODEL")]
    schema = model.schema_of_rest
    if schema is None:
        return [Difference("ITEM_ADDED_TO_CLOSED_CONTENT_MODEL")]
    found = yield schema, item
    covered = "IS" if effort.accepts(found) else "NOT"
    return [*found, Difference(f"ITEM_ADDED_{covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL")]


def _contained(writer: Node, reader: Node) -> list[Difference]:
    """How many items `contains` must accept. What it accepts is not compared."""
    found: list[Difference] = []
    for key, what in (("maxContains", "MAX_CONTAINS"), ("minContains", "MIN_CONTAINS")):
        found += compare_limit(key, what, _count(writer, key), _count(reader, key))
    return found


def _count(node: Node, key: str) -> Decimal | None:
    if "contains" not in node.raw or node.draft.number < 6:
        return None
    count = node.raw.get(key) if node.draft.number >= 2019 else None
    if isinstance(count, int | float):
        return exact(count)
    return Decimal(1) if key == "minContains" else None
