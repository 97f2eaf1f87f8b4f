"""Data under a JSON Schema: checked, then stored as JSON text.

In: a JSON Schema of any draft. Out: a codec. `jsonschema-rs` compiles the schema and checks data with regular
expressions in bounded time, so no pattern of a schema can stop the service. Nothing is downloaded:
references of the schema come from the registry.
"""

from __future__ import annotations

from typing import Any

import jsonschema_rs

from barnabas.rest.formats import json_text
from barnabas.rest.formats.errors import DataMismatch, SchemaRefused
from barnabas.rest.formats.source import KnownSchema

BACKTRACKS_MAX = 50_000  # of an expression with look-around; others need linear time
MESSAGE_CHARS_MAX = 300


class JsonSchemaCodec:
    def __init__(self, schema: KnownSchema) -> None:
        try:
            resources = [(each.reference.name, json_text.loads(each.text)) for each in schema.references]
            self._validator = jsonschema_rs.validator_for(
                json_text.loads(schema.text),
                registry=jsonschema_rs.Registry(resources) if resources else None,
                pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=BACKTRACKS_MAX),
                offline=True,
            )
        except (ValueError, jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError) as error:
            reason = str(error).splitlines()[0]
            raise SchemaRefused(f"The JSON Schema {schema.schema_id} cannot be used: {reason}") from None

    def encode(self, data: Any) -> bytes:
        try:
            text = json_text.dumps(data)  # first: it finds data that are nested too deeply
            self._validator.validate(data)
        except jsonschema_rs.ValidationError as error:
            path = "".join(f"/{step}" for step in error.instance_path)
            message = error.message[:MESSAGE_CHARS_MAX]
            raise DataMismatch(f"#{path}: {message}") from None
        except (ValueError, RecursionError) as error:
            raise DataMismatch(str(error).splitlines()[0]) from None
        return text

    def decode(self, payload: bytes) -> Any:
        try:
            return json_text.loads(payload)
        except ValueError as error:
            raise DataMismatch(f"the record holds no JSON: {error}") from None
