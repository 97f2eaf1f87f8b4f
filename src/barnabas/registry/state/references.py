"""Schemas that refer to others: which versions refer to a version, and the texts behind references.

In: versions as they come and go; references of a schema. Out: referring versions; references with their
texts, those of references first.
Does not know: what a reference means to Avro, JSON Schema or Protobuf.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from barnabas.registry.state.model import Version
from barnabas.registry.state.names import qualified
from barnabas.schemas.model import Reference, ResolvedReference

LATEST = -1
REFERENCES_MAX = 1000  # of one schema, those of its references included
DEPTH_MAX = 100


class ReferenceIndex:
    """Referring versions, by the subject and the number that they refer to. A number of -1 is the latest."""

    def __init__(self) -> None:
        self._referring: dict[tuple[str, int], list[Version]] = {}

    def add(self, version: Version) -> None:
        for place in places(version):
            self._referring.setdefault(place, []).append(version)

    def remove(self, version: Version) -> None:
        for place in places(version):
            found = self._referring.get(place, [])
            if version in found:
                found.remove(version)
            if not found:
                self._referring.pop(place, None)

    def referring(self, version: Version) -> list[Version]:
        """Versions that refer to this one, soft-deleted ones included."""
        name = version.subject.name
        found = list(self._referring.get((name, version.number), ()))
        if version.subject.latest is version:
            found += self._referring.get((name, LATEST), ())
        return found


def places(version: Version) -> set[tuple[str, int]]:
    context = version.subject.context.name
    return {(qualified(each.subject, context), each.version) for each in version.content.references}


class MissingReference(ValueError):
    """A reference to a version that does not exist, or more references than are allowed."""


def resolved(
    references: Sequence[Reference], context: str, find: Callable[[str, int], Version | None]
) -> list[ResolvedReference]:
    """References with their texts, depth first, each name once. `find` gets a qualified name and a number."""
    found: dict[str, ResolvedReference] = {}
    resolve_into(found, references, context, find, set(), 0)
    return list(found.values())


def resolve_into(
    found: dict[str, ResolvedReference],
    references: Sequence[Reference],
    context: str,
    find: Callable[[str, int], Version | None],
    open_names: set[str],
    depth: int,
) -> None:
    if depth > DEPTH_MAX:
        raise MissingReference(f"references are nested more than {DEPTH_MAX} deep")
    for reference in references:
        if reference.name in found or reference.name in open_names:
            continue
        subject = qualified(reference.subject, context)
        version = find(subject, reference.version)
        if version is None:
            raise MissingReference(
                f'No schema reference found for subject "{reference.subject}" and version {reference.version}'
            )
        open_names.add(reference.name)
        inner = version.content.references
        resolve_into(found, inner, version.subject.context.name, find, open_names, depth + 1)
        found[reference.name] = ResolvedReference(reference, version.content.text, inner)
        if len(found) > REFERENCES_MAX:
            raise MissingReference(f"the schema has more than {REFERENCES_MAX} references")
