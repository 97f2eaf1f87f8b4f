"""Bodies of requests: schemas, tags and associations out of JSON.

In: a JSON object. Out: values for commands. Unknown fields are ignored; ApiError 400 for fields of another
shape, 42209 for a schema beyond the limit.
Does not know: what becomes of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from barnabas.registry.state import refusals
from barnabas.registry.state.commands import AssociationChange, SchemaRequest, TagChange
from barnabas.registry.state.contracts import bounded, metadata_of, rule_set_of, shaped, strings
from barnabas.schemas.model import Reference
from barnabas.services.errors import ApiError

T = TypeVar("T")
NO_ID = -1
INT_MIN, INT_MAX = -(2**31), 2**31 - 1


def checked(read: Callable[[], T]) -> T:
    """The value, or code 400 with the reason."""
    try:
        return read()
    except ValueError as error:
        raise refusals.malformed(str(error)) from None


def schema_request(source: dict[str, Any], bytes_max: int) -> SchemaRequest:
    found = checked(lambda: read_schema_request(source))
    if len(found.text) > bytes_max:
        raise ApiError(
            422, 42209, f"The schema is too large: it has {len(found.text)} characters; allowed: {bytes_max}"
        )
    return found


def read_schema_request(source: dict[str, Any]) -> SchemaRequest:
    schema_id = whole(source, "id", NO_ID)
    references = listed(source, "references")
    return SchemaRequest(
        text=text(source, "schema") or "",
        schema_type=text(source, "schemaType") or None,
        references=tuple(reference(each) for each in references),
        metadata=metadata_of(source.get("metadata")),
        rules=rule_set_of(source.get("ruleSet")),
        version=whole(source, "version", 0),
        schema_id=None if schema_id <= NO_ID else schema_id,
        tags_to_add=tag_changes(source, "schemaTagsToAdd"),
        tags_to_remove=tag_changes(source, "schemaTagsToRemove"),
    )


def reference(source: Any) -> Reference:
    shaped(source, dict, "an entry of references")
    name, subject = text(source, "name"), text(source, "subject")
    if not name or not subject:
        raise ValueError("an entry of references lacks name or subject")
    return Reference(name, subject, whole(source, "version", -1))


def tag_changes(source: dict[str, Any], name: str) -> tuple[TagChange, ...]:
    found = []
    for each in listed(source, name):
        entity = shaped(shaped(each, dict, name).get("schemaEntity"), dict, f"{name}.schemaEntity")
        kind = text(entity, "entityType")
        if kind not in ("sr_record", "sr_field"):
            raise ValueError(f"{name}.schemaEntity.entityType must be sr_record or sr_field")
        tags = strings(each.get("tags") or [], f"{name}.tags")
        found.append(TagChange(text(entity, "entityPath") or "", kind == "sr_field", tags))
    return tuple(found)


def association_changes(source: dict[str, Any], bytes_max: int) -> tuple[AssociationChange, ...]:
    entries = checked(lambda: shaped(source.get("associations") or [], list, "associations"))
    if len(entries) > 100:
        raise refusals.invalid_association(f"{len(entries)} associations in one request; at most 100")
    return tuple(association_change(each, bytes_max) for each in entries)


def association_change(source: Any, bytes_max: int) -> AssociationChange:
    checked(lambda: shaped(source, dict, "an entry of associations"))
    schema = checked(
        lambda: None if source.get("schema") is None else shaped(source["schema"], dict, "schema")
    )
    return AssociationChange(
        subject=checked(lambda: text(source, "subject")),
        association_type=checked(lambda: text(source, "associationType")),
        lifecycle=checked(lambda: text(source, "lifecycle")),
        frozen=checked(lambda: flag(source, "frozen")),
        schema=None if schema is None else schema_request(schema, bytes_max),
        normalize=bool(checked(lambda: flag(source, "normalize"))),
    )


def listed(source: dict[str, Any], name: str) -> list[Any]:
    value = source.get(name)
    found: list[Any] = [] if value is None else bounded(shaped(value, list, name), name)
    return found


def text(source: dict[str, Any], name: str) -> str | None:
    value = source.get(name)
    if value is None:
        return None
    found: str = shaped(value, str, name)
    return found


def flag(source: dict[str, Any], name: str) -> bool | None:
    value = source.get(name)
    if value is None:
        return None
    found: bool = shaped(value, bool, name)
    return found


def whole(source: dict[str, Any], name: str, default: int) -> int:
    value = source.get(name)
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or not INT_MIN <= value <= INT_MAX:
        raise ValueError(f"{name} is no whole number between {INT_MIN} and {INT_MAX}")
    return value
