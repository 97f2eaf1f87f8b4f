"""An Avro schema from its text and the texts that it refers to.

In: a text, references with their texts (those of references first). Out: an AvroSchema, or InvalidSchema.
Does not know: where references come from, subjects, versions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from barnabas.schemas.avro import json_text
from barnabas.schemas.avro.building import Builder
from barnabas.schemas.avro.comparing import compare
from barnabas.schemas.avro.printing import printed
from barnabas.schemas.avro.types import Named, Record, Type
from barnabas.schemas.model import (
    CompatibilityPolicy,
    Incompatibility,
    InvalidSchema,
    Reference,
    ResolvedReference,
    SchemaType,
)

RESOLVED = "resolved"  # the `format` that has references inlined


@dataclass(frozen=True, slots=True)
class AvroSchema:
    """A parsed Avro schema. Two are equal if their canonical texts and references are."""

    canonical: str
    references: tuple[Reference, ...]
    root: Type = field(compare=False, repr=False)
    # Full names of the types that references are. Java's library prints those inside of them in full.
    referred: frozenset[str] = field(compare=False, repr=False)
    is_normal: bool = field(default=False, compare=False, repr=False)

    @property
    def schema_type(self) -> SchemaType:
        return SchemaType.AVRO

    @property
    def name(self) -> str | None:
        return self.root.name.full if isinstance(self.root, Named) else None

    def normalized(self) -> AvroSchema:
        references = sorted(set(self.references), key=lambda one: (one.subject, one.version, one.name))
        text = printed(self.root, self.referred, normal=True)
        return replace(self, canonical=text, references=tuple(references), is_normal=True)

    def formatted(self, form: str) -> str:
        if form.strip().lower() == RESOLVED:
            return printed(self.root, normal=self.is_normal)
        return self.canonical

    def field_names(self) -> frozenset[str]:
        return (
            frozenset(one.name for one in self.root.fields) if isinstance(self.root, Record) else frozenset()
        )

    def incompatibilities(self, writer: AvroSchema, policy: CompatibilityPolicy) -> list[Incompatibility]:
        return compare(self.root, writer.root)


def parse(text: str, references: Sequence[ResolvedReference] = (), *, strict: bool = False) -> AvroSchema:
    """Parse a text. `strict` also checks defaults, and names by Avro's specification."""
    known: dict[str, Named] = {}
    referred: set[str] = set()
    for resolved in references:
        try:
            root = _add(known, resolved.text)
        except InvalidSchema as error:
            one = resolved.reference
            raise InvalidSchema(
                f'the reference "{one.name}" (subject {one.subject} version {one.version}): {error}'
            ) from None
        if isinstance(root, Named):
            referred.add(root.name.full)
    builder = Builder(known, strict)
    root = builder.build_text(json_text.read(text))
    _check_same(known, builder.own)
    return AvroSchema(printed(root, referred), direct(references), root, frozenset(referred))


def direct(references: Sequence[ResolvedReference]) -> tuple[Reference, ...]:
    """References of the text itself: those that no other reference brings along."""
    brought = {inner for one in references for inner in one.references}
    return tuple(one.reference for one in references if one.reference not in brought)


def _add(known: dict[str, Named], text: str) -> Type:
    """Add what a referenced text defines."""
    builder = Builder(known, strict=False)
    root = builder.build_text(json_text.read(text))
    _check_same(known, builder.own)
    for full, node in builder.own.items():
        known.setdefault(full, node)
    return root


def _check_same(known: dict[str, Named], own: dict[str, Named]) -> None:
    """A text may define a type again only as it was defined: two references may hold the same type."""
    for full in own.keys() & known.keys():
        if printed(own[full]) != printed(known[full]):
            raise InvalidSchema(f"Can't redefine: {full}; a reference defines it with other content")
