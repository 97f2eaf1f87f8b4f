"""Two versions of a schema compared: the changes, and whether each reads data of the other.

In: two schemas with their references. Out: lines for people. Does not know: registries, levels.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from itertools import islice

from barnabas.schemas.differences import avro, json_values, protobuf
from barnabas.schemas.model import CompatibilityPolicy, ParsedSchema, SchemaType

LINES_MAX = 1_000


def told(old: ParsedSchema, new: ParsedSchema) -> list[str]:
    """The changes in words, then both directions of compatibility with their reasons."""
    if old.schema_type is not new.schema_type:
        return [f"the type {old.schema_type} became {new.schema_type}: nothing else can be compared"]
    changes = list(islice(changed(old, new), LINES_MAX))
    lines = changes or ["nothing changed"]
    for reader, writer, words, new_reads_old in (
        (new, old, "the new schema reads data of the old one", True),
        (old, new, "the old schema reads data of the new one", False),
    ):
        reasons = reader.incompatibilities(writer, CompatibilityPolicy.STRICT)
        lines.append(f"{words}: {'no' if reasons else 'yes'}")
        lines += [f"  {one.printed(new_reads_old=new_reads_old)}" for one in reasons]
    return lines


def changed(old: ParsedSchema, new: ParsedSchema) -> Iterator[str]:
    match new.schema_type:
        case SchemaType.AVRO:
            return avro.differences(old.root, new.root)  # type: ignore[attr-defined]
        case SchemaType.JSON:
            return json_values.differences(json.loads(old.canonical), json.loads(new.canonical))
        case SchemaType.PROTOBUF:
            from google.protobuf.descriptor_pb2 import FileDescriptorProto

            files = [
                FileDescriptorProto.FromString(base64.b64decode(one.formatted("serialized")))
                for one in (old, new)
            ]
            return protobuf.differences(*files)
