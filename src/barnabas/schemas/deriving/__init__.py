"""Schemas from Python classes: what a dataclass or a pydantic model becomes in Avro and JSON Schema."""

from barnabas.schemas.deriving.avro import avro_schema_of
from barnabas.schemas.deriving.classes import UnknownType
from barnabas.schemas.deriving.json_schema import json_schema_of
from barnabas.schemas.deriving.values import json_value, object_of, plain

__all__ = ["UnknownType", "avro_schema_of", "json_schema_of", "json_value", "object_of", "plain"]
