"""Response bodies of the API: versions and schemas as JSON objects. Empty fields are left out.

In: values of the state. Out: dictionaries in the fields of newer servers, or with `is_classic` in those of
servers before 8.0: strict old clients refuse unknown fields.
Does not know: which endpoint responds.
"""

from __future__ import annotations

from typing import Any

from barnabas.registry.state.commands import Registered
from barnabas.registry.state.model import Content, Version
from barnabas.registry.state.records import reference_json
from barnabas.registry.state.tagging import tags_in
from barnabas.schemas.model import SchemaType
from barnabas.services.errors import ApiError


def contents(content: Content, text: str | None, is_classic: bool) -> dict[str, Any]:
    """The fields of the schema itself. `text` is the one in another format, if the request asks for it."""
    found: dict[str, Any] = {}
    if not is_classic:
        found["guid"] = content.guid
    if not is_classic or content.schema_type != SchemaType.AVRO:
        found["schemaType"] = content.schema_type
    if content.references:
        found["references"] = [reference_json(each) for each in content.references]
    if content.metadata is not None:
        found["metadata"] = content.metadata.to_json()
    if content.rules is not None:
        found["ruleSet"] = content.rules.to_json()
    found["schema"] = content.text if text is None else text
    return found


def tags(content: Content, wanted: list[str]) -> dict[str, Any]:
    """The field `schemaTags`, if the request asks for tags."""
    found = tags_in(content, wanted) if wanted else []
    if not found:
        return {}
    return {
        "schemaTags": [
            {
                "schemaEntity": {
                    "entityPath": each.path,
                    "entityType": "sr_field" if each.is_field else "sr_record",
                },
                "tags": list(each.tags),
            }
            for each in found
        ]
    }


def status(version: Version, is_classic: bool) -> dict[str, Any]:
    return {} if is_classic else {"ts": version.timestamp_ms, "deleted": version.is_deleted}


def by_id(version: Version, text: str | None, id_max: int | None, is_classic: bool) -> dict[str, Any]:
    place = {} if is_classic else {"subject": version.subject.name, "version": version.number}
    found = {**place, **contents(version.content, text, is_classic), **status(version, is_classic)}
    return found if id_max is None else {**found, "maxId": id_max}


def whole(version: Version, text: str | None, is_classic: bool) -> dict[str, Any]:
    """A version with its subject, number and id."""
    return {
        "subject": version.subject.name,
        "version": version.number,
        "id": version.schema_id,
        **contents(version.content, text, is_classic),
        **status(version, is_classic),
    }


def classic_error(error: ApiError) -> object:
    """An error as servers before 8.0 print it: an incompatible schema has the code 409."""
    return {"error_code": 409 if error.code == 40901 else error.code, "message": error.message}


def registered(reply: Registered, text: str | None, is_classic: bool) -> dict[str, Any]:
    if is_classic:
        return {"id": reply.schema_id}
    return {"id": reply.schema_id, "version": reply.version, **contents(reply.content, text, is_classic)}
