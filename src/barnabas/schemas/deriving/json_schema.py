"""The JSON Schema of a dataclass or a pydantic model, as pydantic derives it.

In: a class. Out: the text of a schema, of draft 2020-12. Does not know: registries, values.
"""

from __future__ import annotations

import json
from typing import Any

from barnabas.schemas.deriving.classes import UnknownType, is_described
from barnabas.schemas.deriving.values import adapter_of

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def json_schema_of(kind: Any) -> str:
    """The schema as text: `title` is the name of the class, fields without a default are required."""
    from pydantic.errors import PydanticUserError

    if not is_described(kind):
        raise UnknownType(f"{kind!r} is neither a dataclass nor a pydantic model")
    try:
        schema = adapter_of(kind).json_schema(by_alias=True)
    except PydanticUserError as error:
        raise UnknownType(f"{kind.__qualname__} has no JSON Schema: {error.message}") from None
    return json.dumps({"$schema": DRAFT, **schema}, separators=(",", ":"))
