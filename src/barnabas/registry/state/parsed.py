"""Parsed schemas: stored texts are parsed when they are first needed, and kept while there is room.

In: a stored schema or the text of a request, with the state that holds its references. Out: a ParsedSchema.
Does not know: how schemas are parsed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence

from barnabas.registry.state import refusals
from barnabas.registry.state.model import Content, Version
from barnabas.registry.state.references import LATEST, MissingReference, resolved
from barnabas.registry.state.state import State
from barnabas.schemas.model import InvalidSchema, ParsedSchema, Reference, ResolvedReference
from barnabas.schemas.parsing import parse

COUNT_MAX = 1000
TEXT_BYTES_MAX = 16 << 20  # of all texts whose parsed form is kept; a parsed form is some ten times larger
Parse = Callable[..., ParsedSchema]
CacheKey = tuple[str, str, tuple[ResolvedReference, ...]]


class ParsedSchemas:
    """A bounded cache, the least recently used leave first. Threads may share it.

    A text is parsed strictly first, because most texts pass: then the parsed schema serves for lookups, which
    are not strict, and for registering alike.
    """

    def __init__(self, parse: Parse = parse) -> None:
        self._parse = parse
        self._kept: OrderedDict[CacheKey, tuple[ParsedSchema, bool]] = OrderedDict()  # and: is it strict
        self._bytes = 0

    def get(
        self, schema_type: str, text: str, references: Sequence[ResolvedReference], *, strict: bool
    ) -> ParsedSchema:
        key = (str(schema_type), text, tuple(references))
        found = self._kept.get(key)
        if found is not None and (found[1] or not strict):
            try:
                self._kept.move_to_end(key)
            except KeyError:  # another thread dropped it
                pass
            return found[0]
        try:
            found = self._parse(schema_type, text, references, strict=True), True
        except InvalidSchema:
            if strict:
                raise
            found = self._parse(schema_type, text, references, strict=False), False
        self._keep(key, found)
        return found[0]

    def _keep(self, key: CacheKey, found: tuple[ParsedSchema, bool]) -> None:
        if weight(key) > TEXT_BYTES_MAX // 4 or key in self._kept:
            return
        self._kept[key] = found
        self._bytes += weight(key)
        while len(self._kept) > COUNT_MAX or self._bytes > TEXT_BYTES_MAX:
            try:
                dropped, _ = self._kept.popitem(last=False)
            except KeyError:
                return
            self._bytes -= weight(dropped)


def weight(key: CacheKey) -> int:
    return len(key[1]) + sum(len(each.text) for each in key[2])


class SchemaReader:
    """Parses schemas that lie in a state."""

    def __init__(self, state: State, schemas: ParsedSchemas) -> None:
        self._state = state
        self._schemas = schemas

    def stored(self, version: Version) -> ParsedSchema:
        """A stored schema. One that does not parse any more is an InvalidSchema."""
        content = version.content
        return self._get(content.schema_type, content.text, content.references, version.subject.context.name)

    def stored_content(self, content: Content, context: str) -> ParsedSchema:
        return self._get(content.schema_type, content.text, content.references, context)

    def new(
        self, schema_type: str, text: str, references: Sequence[Reference], context: str, *, strict: bool
    ) -> ParsedSchema:
        """A schema that somebody sent. Code 42201 says what is wrong with it."""
        try:
            return self._get(schema_type, text, references, context, strict=strict)
        except InvalidSchema as error:
            raise refusals.invalid_schema(str(error)) from None
        except RecursionError:
            raise refusals.invalid_schema("it is nested too deeply") from None

    def _get(
        self,
        schema_type: str,
        text: str,
        references: Sequence[Reference],
        context: str,
        *,
        strict: bool = False,
    ) -> ParsedSchema:
        try:
            with_texts = resolved(references, context, self.find)
        except MissingReference as error:
            raise InvalidSchema(str(error)) from None
        return self._schemas.get(schema_type, text, with_texts, strict=strict)

    def find(self, subject: str, number: int) -> Version | None:
        """A version by the qualified name of its subject, soft-deleted ones included."""
        found = self._state.subject(subject)
        if found is None:
            return None
        if number == LATEST:
            return found.latest or found.versions.get(found.version_max)
        return found.versions.get(number)
