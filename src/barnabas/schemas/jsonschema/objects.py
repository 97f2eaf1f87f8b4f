"""The comparison of schemas of objects: properties, what is required, dependencies, content models.

In: two nodes of objects. Out: differences.
Does not know: other kinds.
"""

from __future__ import annotations

from barnabas.schemas.jsonschema.contents import Content, content_of_object
from barnabas.schemas.jsonschema.differences import Difference, under
from barnabas.schemas.jsonschema.nodes import Kind, Node
from barnabas.schemas.jsonschema.scalars import limits
from barnabas.schemas.jsonschema.steps import Effort, Steps
from barnabas.schemas.jsonschema.texts import Json

LIMITS = {"maxProperties": "MAX_PROPERTIES", "minProperties": "MIN_PROPERTIES"}


def compare(writer: Node, reader: Node, effort: Effort) -> Steps:
    models = content_of_object(writer), content_of_object(reader)
    found = _required(writer, reader)
    found += yield from _properties(writer, reader, models, effort)
    found += _dependent_names(writer, reader)
    found += yield from _dependent_schemas(writer, reader)
    found += yield from compare_rest(
        "additionalProperties", "ADDITIONAL_PROPERTIES", models[0].rest, models[1].rest
    )
    found += yield from compare_rest(
        "unevaluatedProperties", "UNEVALUATED_PROPERTIES", models[0].unevaluated, models[1].unevaluated
    )
    return found + limits(writer, reader, LIMITS)


def _object(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def _names(value: Json) -> set[str]:
    return {str(name) for name in value} if isinstance(value, list) else set()


def _required_names(node: Node) -> set[str]:
    return _names(node.raw.get("required"))


def _has_default(node: Node, name: str) -> bool:
    schema = _object(node.raw.get("properties"))[name]
    return isinstance(schema, dict) and ("default" in schema or "default" in node.inner(schema).raw)


def _required(writer: Node, reader: Node) -> list[Difference]:
    """Only properties that both sides declare: a name that one side only requires is not compared."""
    found = []
    before, after = _required_names(writer), _required_names(reader)
    of_reader = _object(reader.raw.get("properties"))
    for name in _object(writer.raw.get("properties")):
        if name not in of_reader or (name in before) == (name in after):
            continue
        if name in before:
            kind = "REQUIRED_ATTRIBUTE_REMOVED"
        elif _has_default(reader, name):
            kind = "REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED"
        else:
            kind = "REQUIRED_ATTRIBUTE_ADDED"
        found.append(Difference(kind, ("required", name)))
    return found


def _properties(writer: Node, reader: Node, models: tuple[Content, Content], effort: Effort) -> Steps:
    found: list[Difference] = []
    before, after = _object(writer.raw.get("properties")), _object(reader.raw.get("properties"))
    for name in {**before, **after}:
        path = ("properties", name)
        if name not in after:
            inner = yield from _removed(writer.inner(before[name]), name, models[1], effort)
        elif name not in before:
            inner = yield from _added(reader, name, models[0], effort)
        else:
            inner = yield writer.inner(before[name]), reader.inner(after[name])
        found += under(path, inner)
    return found


def _removed(property_: Node, name: str, model: Content, effort: Effort) -> Steps:
    """The reader no longer declares a property: its model must accept what the writer writes there."""
    if model.is_open:
        return [Difference("PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL")]
    effort.spend(len(model.by_pattern))
    covering, is_certain = model.covering(name)
    if not covering or (model.is_closed and not is_certain):
        if property_.kind is Kind.FALSE:
            return [Difference("PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL")]
        return [Difference("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL")]
    found: list[Difference] = []
    for schema in covering:
        found += yield property_, schema
    covered = "IS" if effort.accepts(found) else "NOT"
    return [*found, Difference(f"PROPERTY_REMOVED_{covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL")]


def _added(reader: Node, name: str, model: Content, effort: Effort) -> Steps:
    """The reader declares a property that is new: it must accept what the writer's model allowed there."""
    property_ = reader.inner(_object(reader.raw.get("properties"))[name])
    if name not in _required_names(reader):
        added = "OPTIONAL_PROPERTY_ADDED"
    elif _has_default(reader, name):
        added = "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED"
    else:
        added = "REQUIRED_PROPERTY_ADDED"
    if model.is_open:
        if property_.kind is Kind.EMPTY and added != "REQUIRED_PROPERTY_ADDED":
            return [Difference("PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL")]
        return [Difference(f"{added}_TO_OPEN_CONTENT_MODEL")]
    effort.spend(len(model.by_pattern))
    found: list[Difference] = []
    covering, _ = model.covering(name)
    for schema in covering:
        found += yield schema, property_
    if covering:
        covered = "IS" if effort.accepts(found) else "NOT"
        found.append(Difference(f"PROPERTY_ADDED_{covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"))
    return [*found, Difference(f"{added}_TO_UNOPEN_CONTENT_MODEL")]


def _dependent_names(writer: Node, reader: Node) -> list[Difference]:
    found = []
    before, after = _lists_of(writer), _lists_of(reader)
    for name in {**before, **after}:
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        if new is None:
            change = "REMOVED"
        elif old is None:
            change = "ADDED"
        else:
            change = "EXTENDED" if new > old else "NARROWED" if old > new else "CHANGED"
        found.append(Difference(f"DEPENDENCY_ARRAY_{change}", ("dependencies", name)))
    return found


def _lists_of(node: Node) -> dict[str, set[str]]:
    key = "dependencies" if node.draft.number < 2019 else "dependentRequired"
    return {
        name: _names(value) for name, value in _object(node.raw.get(key)).items() if isinstance(value, list)
    }


def _dependent_schemas(writer: Node, reader: Node) -> Steps:
    found: list[Difference] = []
    before, after = _schemas_of(writer), _schemas_of(reader)
    for name in {**before, **after}:
        path = ("dependencies", name)
        if name not in after:
            found.append(Difference("DEPENDENCY_SCHEMA_REMOVED", path))
        elif name not in before:
            found.append(Difference("DEPENDENCY_SCHEMA_ADDED", path))
        else:
            found += under(path, (yield before[name], after[name]))
    return found


def _schemas_of(node: Node) -> dict[str, Node]:
    key = "dependencies" if node.draft.number < 2019 else "dependentSchemas"
    return {
        name: node.inner(value)
        for name, value in _object(node.raw.get(key)).items()
        if isinstance(value, dict | bool)
    }


def compare_rest(key: str, what: str, writer: Node | None, reader: Node | None) -> Steps:
    """Schemas of additional or unevaluated values: None is open, FALSE is closed."""
    closed_before = writer is not None and writer.kind is Kind.FALSE
    closed_after = reader is not None and reader.kind is Kind.FALSE
    if closed_before != closed_after:
        return [Difference(f"{what}_{'REMOVED' if closed_after else 'ADDED'}", (key,))]
    if writer is None or reader is None:
        if writer is reader:
            return []
        return [Difference(f"{what}_{'EXTENDED' if reader is None else 'NARROWED'}", (key,))]
    return under((key,), (yield writer, reader))
