"""The way from a schema of any type to a Python module.

In: a schema's type and text, with its references. Out: source. Does not know: registries, files.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

from barnabas.schemas.codegen.model import Module
from barnabas.schemas.codegen.printing import printed
from barnabas.schemas.model import InvalidSchema, ResolvedReference, SchemaType
from barnabas.schemas.parsing import parse


def generate(schema_type: str, text: str, references: Sequence[ResolvedReference] = ()) -> str:
    """Dataclasses for a schema, each with `to_dict` and `from_dict`."""
    parsed = parse(schema_type, text, references)
    module = _module(parsed, text, references)
    if not module.classes:
        raise InvalidSchema(
            "the schema has no record, message, enum or object with properties: no class is needed"
        )
    return printed(module)


def _module(parsed: Any, text: str, references: Sequence[ResolvedReference]) -> Module:
    match parsed.schema_type:
        case SchemaType.AVRO:
            from barnabas.schemas.codegen.avro import AvroClasses

            return AvroClasses().add(parsed.root)
        case SchemaType.JSON:
            from barnabas.schemas.codegen.json_schema import JsonClasses

            return JsonClasses(references).add(json.loads(parsed.canonical))
        case _:
            from google.protobuf.descriptor_pb2 import FileDescriptorProto

            from barnabas.schemas.codegen.protobuf import ProtobufClasses

            file = FileDescriptorProto.FromString(base64.b64decode(parsed.formatted("serialized")))
            return ProtobufClasses(file).add()
