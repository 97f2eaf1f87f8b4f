"""A schema as everybody who handles schemas sees it: its text, what it refers to, and how it compares.

In: a schema's type and text, with the schemas that it refers to. Out: a `ParsedSchema`, or InvalidSchema.
Does not know: subjects, versions, ids, HTTP.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, Self


class SchemaType(StrEnum):
    AVRO = "AVRO"
    JSON = "JSON"
    PROTOBUF = "PROTOBUF"


@dataclass(frozen=True, slots=True)
class Reference:
    """A schema that another one uses: `name` is how the text says it, subject and version say where it is."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class ResolvedReference:
    """A reference with its text. References of references come before it, each name once."""

    reference: Reference
    text: str
    references: tuple[Reference, ...] = ()  # those of the text itself


class InvalidSchema(ValueError):
    """The text is no schema; the message says where and why."""


class CompatibilityPolicy(StrEnum):
    """How strictly JSON Schema compares open content models."""

    STRICT = "STRICT"
    LENIENT = "LENIENT"


# Messages name a side by one of these: a comparison does not know which schema is the new one.
READER, WRITER = "<reader>", "<writer>"


@dataclass(frozen=True, slots=True)
class Incompatibility:
    """One reason why a reader cannot read what a writer wrote."""

    kind: str  # READER_FIELD_MISSING_DEFAULT_VALUE, PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL, ...
    path: str  # where in the reader's schema
    text: str  # as registries print it: {errorType:'...', description:'...', ...}, with READER and WRITER

    def printed(self, *, new_reads_old: bool = True) -> str:
        """The text with "new" and "old" for the sides: BACKWARD has the new schema read, FORWARD the old."""
        reader, writer = ("new", "old") if new_reads_old else ("old", "new")
        return self.text.replace(READER, reader).replace(WRITER, writer)


class ParsedSchema(Protocol):
    """A schema that was parsed and checked, with its references resolved. Immutable."""

    @property
    def schema_type(self) -> SchemaType: ...

    @property
    def canonical(self) -> str:
        """The text that a registry stores and compares."""

    @property
    def references(self) -> tuple[Reference, ...]: ...

    @property
    def name(self) -> str | None:
        """The full name of the record or message, or a JSON Schema's title: for subject name strategies."""

    def normalized(self) -> Self:
        """The same schema in the form that `normalize=true` asks for."""

    def formatted(self, form: str) -> str:
        """The text in a form that a client asks for by `format`; the canonical one if the form is unknown."""

    def field_names(self) -> frozenset[str]:
        """Names of the fields at the top, for rules on reserved names."""

    def incompatibilities(self, writer: Self, policy: CompatibilityPolicy) -> list[Incompatibility]:
        """Reasons why data of `writer` cannot be read with this schema; none if it can."""
