"""The way from a schema's type and text to a parsed schema.

In: type, text, references with their texts. Out: the ParsedSchema of that type, or InvalidSchema.
Does not know: how the types parse; their modules and libraries are imported when one is first used.
"""

from collections.abc import Callable, Sequence
from importlib import import_module

from barnabas.schemas.model import InvalidSchema, ParsedSchema, ResolvedReference, SchemaType

# Each module has `parse(text, references, *, strict) -> ParsedSchema`; strict also checks what only new
# schemas must keep (defaults that fit their type, names).
PARSERS = {
    SchemaType.AVRO: "barnabas.schemas.avro.parsing",
    SchemaType.JSON: "barnabas.schemas.jsonschema.parsing",
    SchemaType.PROTOBUF: "barnabas.schemas.protobuf.parsing",
}


def parse(
    schema_type: str,
    text: str,
    references: Sequence[ResolvedReference] = (),
    *,
    strict: bool = False,
) -> ParsedSchema:
    """A schema of any type, with the references it needs (those of references first)."""
    try:
        module = PARSERS[SchemaType(schema_type)]
    except ValueError:
        known = ", ".join(SchemaType)
        raise InvalidSchema(f"Invalid schema type {schema_type}. Known types: {known}") from None
    parser: Callable[..., ParsedSchema] = import_module(module).parse
    return parser(text, references, strict=strict)
