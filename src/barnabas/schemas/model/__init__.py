"""Schemas as values: what parsers, registries and serializers say to each other."""

from barnabas.schemas.model.values import (
    READER,
    WRITER,
    CompatibilityPolicy,
    Incompatibility,
    InvalidSchema,
    ParsedSchema,
    Reference,
    ResolvedReference,
    SchemaType,
)

__all__ = [
    "READER",
    "WRITER",
    "CompatibilityPolicy",
    "Incompatibility",
    "InvalidSchema",
    "ParsedSchema",
    "Reference",
    "ResolvedReference",
    "SchemaType",
]
