"""Targets of `$ref`: inside the schema, into schemas that it refers to, or into the drafts' own schemas.

In: a tree with its draft, and the trees of references by name. Out: the schema that a reference means, with
the place from which its own references are resolved; InvalidSchema if nothing is there. Nothing is fetched.
Does not know: what schemas mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urldefrag, urljoin

import jsonschema_specifications
from referencing import Registry
from referencing.exceptions import CannotDetermineSpecification, Unresolvable

from barnabas.schemas.jsonschema.drafts import Draft, draft_of
from barnabas.schemas.jsonschema.texts import Json
from barnabas.schemas.model import InvalidSchema

CHAIN_MAX = 100  # references that lead to references


@dataclass(frozen=True, slots=True)
class Scope:
    """The scope of a schema: its draft, and the address that its references are relative to."""

    documents: Documents
    resolver: Any  # of `referencing`, whose class is not public
    draft: Draft

    def entered(self, schema: dict[str, Json]) -> Scope:
        """The scope inside a schema, which may have an address or a draft of its own."""
        if self.draft.id_key not in schema and "$schema" not in schema:
            return self
        draft = draft_of(schema, self.draft)
        resource = draft.specification.create_resource(schema)
        try:
            return Scope(self.documents, self.resolver.in_subresource(resource), draft)
        except ValueError as error:  # no address
            raise InvalidSchema(f"{schema.get(draft.id_key)!r} is no URI: {error}") from None


class Documents:
    """A schema and the schemas that it refers to, by name."""

    def __init__(self, tree: Json, draft: Draft, references: Mapping[str, Json]) -> None:
        resources = {
            name: draft_of(found, draft).specification.create_resource(found)
            for name, found in references.items()
        }
        own = draft.specification.create_resource(tree)
        self._names = resources.keys()
        try:
            base = own.id() or ""
            relative = {urljoin(base, name): resource for name, resource in resources.items()}
            # References win over a part of the schema with the same address; the drafts come last.
            known: Registry[Any] = jsonschema_specifications.REGISTRY
            known = known.with_resources([("", own), *relative.items(), *resources.items()]).crawl()
        except (ValueError, AttributeError, TypeError, CannotDetermineSpecification) as error:
            raise InvalidSchema(
                f"The schema has an address that is no URI, or an unknown $schema: {error}"
            ) from None
        self._by_name = known.resolver()
        self.root = Scope(self, known.resolver(base_uri=base), draft)

    def target(self, reference: str, scope: Scope) -> tuple[Json, Scope]:
        """The schema that a `$ref` in some scope means."""
        try:
            # As registries do it, a name is compared with the text of `$ref` before addresses are.
            by_name = urldefrag(reference).url in self._names
            resolved = (self._by_name if by_name else scope.resolver).lookup(reference)
        except (Unresolvable, LookupError, TypeError, ValueError):
            raise InvalidSchema(
                f"Cannot resolve the reference {reference[:200]!r}: no schema and no reference has that name"
            ) from None
        found = resolved.contents
        if not isinstance(found, dict | bool):
            raise InvalidSchema(f"The reference {reference[:200]!r} does not lead to a schema")
        # A schema of another document may be of another draft, which its first `$schema` says.
        return found, Scope(self, resolved.resolver, self._draft_at(reference, scope))

    def _draft_at(self, reference: str, scope: Scope) -> Draft:
        if reference.startswith("#"):
            return scope.draft
        document = urldefrag(reference).url
        try:
            by_name = document in self._names
            return draft_of(
                (self._by_name if by_name else scope.resolver).lookup(document).contents, scope.draft
            )
        except (Unresolvable, LookupError, TypeError, ValueError):
            return scope.draft
