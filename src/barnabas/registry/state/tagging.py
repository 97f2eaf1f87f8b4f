"""Tags inside a schema's text: the attribute `confluent:tags` of records and fields.

In: the text of an Avro or a JSON schema, tags to add and to remove. Out: the text with them.
Does not know: versions, subjects. Protobuf keeps tags in options, which this does not write.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from barnabas.registry.state import refusals
from barnabas.registry.state.commands import SchemaRequest, TagChange
from barnabas.registry.state.model import Content
from barnabas.schemas.model import SchemaType

TAGS = "confluent:tags"


def with_tags(request: SchemaRequest, added: Iterable[TagChange], removed: Iterable[TagChange]) -> str:
    """The text of the request, changed. Code 42201 if an entity is not there."""
    schema_type = request.schema_type or SchemaType.AVRO
    if schema_type == SchemaType.PROTOBUF:
        raise refusals.invalid_schema("tags of Protobuf schemas are options of the text: register a new text")
    try:
        schema = json.loads(request.text)
    except (ValueError, RecursionError):
        raise refusals.invalid_schema("the text is no JSON") from None
    for change in added:
        entity = found_entity(schema, schema_type, change)
        entity[TAGS] = sorted({*entity.get(TAGS, ()), *change.tags})
    for change in removed:
        entity = found_entity(schema, schema_type, change)
        left = [tag for tag in entity.get(TAGS, ()) if tag not in change.tags]
        entity.pop(TAGS, None)
        if left:
            entity[TAGS] = left
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":"))


def tags_in(content: Content, wanted: Iterable[str]) -> list[TagChange]:
    """Entities of a stored schema with their tags: those that are wanted, or all with `*`."""
    names = {*wanted}
    if content.schema_type == SchemaType.PROTOBUF:
        return []
    try:
        schema = json.loads(content.text)
    except (ValueError, RecursionError):
        return []
    found = []
    for path, is_field, entity in entities_of(schema, content.schema_type):
        tags = entity.get(TAGS)
        kept = [tag for tag in tags if tag in names or "*" in names] if isinstance(tags, list) else []
        if kept:
            found.append(TagChange(path, is_field, tuple(kept)))
    return found


def entities_of(schema: Any, schema_type: str) -> Iterator[tuple[str, bool, dict[str, Any]]]:
    return avro_entities(schema, "") if schema_type == SchemaType.AVRO else json_entities(schema, "object")


def found_entity(schema: Any, schema_type: str, change: TagChange) -> dict[str, Any]:
    for path, is_field, entity in entities_of(schema, schema_type):
        if is_field == change.is_field and path == change.path:
            return entity
    sort = "field" if change.is_field else "record"
    raise refusals.invalid_schema(f"it has no {sort} with the path {change.path[:200]!r}")


def avro_entities(schema: Any, namespace: str) -> Iterator[tuple[str, bool, dict[str, Any]]]:
    """Records and fields with their paths: the full name of the record, then the name of the field."""
    if isinstance(schema, list):
        for branch in schema:
            yield from avro_entities(branch, namespace)
    if not isinstance(schema, dict):
        return
    if schema.get("type") in ("record", "error"):
        name = str(schema.get("name", ""))
        namespace = name.rpartition(".")[0] or str(schema.get("namespace", namespace))
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        yield full, False, schema
        for field in schema.get("fields", ()):
            yield f"{full}.{field.get('name')}", True, field
            yield from avro_entities(field.get("type"), namespace)
        return
    for inner in ("type", "items", "values"):
        yield from avro_entities(schema.get(inner), namespace)


def json_entities(schema: Any, path: str) -> Iterator[tuple[str, bool, dict[str, Any]]]:
    """Objects and properties: `object`, `object.a`, `object.a.object.b`."""
    if not isinstance(schema, dict):
        return
    yield path, False, schema
    properties = schema.get("properties")
    for name, inner in properties.items() if isinstance(properties, dict) else ():
        if isinstance(inner, dict):
            yield f"{path}.{name}", True, inner
            yield from json_entities(inner, f"{path}.{name}.object")
