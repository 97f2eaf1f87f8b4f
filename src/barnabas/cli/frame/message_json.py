"""Protocol messages as JSON, with the names and the order of Kafka's own JSON converters.

In: a message and its version. Out: plain Python values that `json` can write. Names are camelCase, ids and
bytes are base64, and a tagged field appears only if it differs from its default.
"""

import base64
import json
import re
from typing import Any

from barnabas.protocol import Struct, uuid
from barnabas.protocol.message import default_of
from barnabas.protocol.schema import Field


def to_json(message: Struct, version: int) -> dict[str, Any]:
    """The fields of a message, or of a struct in it, that exist in this version."""
    found = {}
    for field in message.schema.fields:
        if version not in field.versions:
            continue
        value = getattr(message, field.name)
        if field.tag is not None and value == default_of(field):
            continue
        found[camel_case(field.name)] = value_to_json(field, value, version)
    return found


def value_to_json(field: Field, value: Any, version: int) -> Any:
    if value is None:
        return None
    if field.is_array:
        return [element_to_json(field, each, version) for each in value]
    return element_to_json(field, value, version)


def element_to_json(field: Field, value: Any, version: int) -> Any:
    if isinstance(value, Struct):
        return to_json(value, version)
    if field.type == "Uuid":
        return uuid.to_text(value)
    if field.type in ("Bytes", "Records"):
        return base64.b64encode(value).decode()
    return value


def camel_case(name: str) -> str:
    return re.sub(r"_([a-z0-9])", lambda match: match[1].upper(), name)


def compact(value: Any) -> str:
    """JSON text as Kafka's tools print it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
