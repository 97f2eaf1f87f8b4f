"""Reading the state: schemas by id, guid, subject and version; lists with prefixes, filters and pages.

In: names and numbers of a request. Out: versions and names, or an ApiError.
Does not know: HTTP, how responses look.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple, TypeVar
from uuid import UUID

from barnabas.registry.state import refusals
from barnabas.registry.state.model import Context, Subject, Version
from barnabas.registry.state.names import (
    ALL_CONTEXTS,
    DEFAULT_CONTEXT,
    SubjectName,
    is_qualified,
    subject_name,
)
from barnabas.registry.state.references import LATEST
from barnabas.registry.state.state import State

T = TypeVar("T")
VERSION = re.compile(r"[+-]?[0-9]{1,10}")  # int() takes more: spaces, underscores, digits of any script
VERSION_MAX = 2**31 - 1


class Page(NamedTuple):
    offset: int = 0
    limit: int = -1  # below 0: as many as are allowed

    def of(self, found: Iterator[T], limits: tuple[int, int]) -> list[T]:
        """This page of a list. `limits`: how many entries unless `limit` says it, and how many at most."""
        limit = limits[0] if self.limit < 0 else min(self.limit, limits[1])
        return list(islice(found, max(self.offset, 0), max(self.offset, 0) + limit))


def version_number(text: str) -> int:
    """The number of a version in a path; -1 is the latest."""
    if text == "latest":
        return LATEST
    number = int(text) if VERSION.fullmatch(text) else 0
    if number != LATEST and not 1 <= number <= VERSION_MAX:
        raise refusals.invalid_version(text)
    return number


def version_in(state: State, name: str, number: int, *, include_deleted: bool = False) -> Version:
    """A version of a subject. An unqualified subject that the default context lacks is sought in others."""
    subject = subject_or_namesake(state, name, include_deleted)
    if subject is None:
        raise refusals.subject_not_found(name)
    if number == LATEST:
        found = subject.latest
        if found is None and include_deleted:
            found = subject.versions.get(subject.version_max)
    else:
        found = subject.versions.get(number)
    if found is None or (found.is_deleted and not include_deleted):
        raise refusals.version_not_found("latest" if number == LATEST else number)
    return found


def subject_or_namesake(state: State, name: str, include_deleted: bool) -> Subject | None:
    def is_there(subject: Subject | None) -> bool:
        return subject is not None and (include_deleted or subject.latest is not None)

    subject = state.subject(name)
    if is_there(subject):
        return subject
    if not is_qualified(name):
        for context in other_contexts(state):
            namesake = context.subjects.get(SubjectName(context.name, name).qualified)
            if is_there(namesake):
                return namesake
    return None


def other_contexts(state: State) -> list[Context]:
    return [state.contexts[each] for each in sorted(state.contexts) if each != DEFAULT_CONTEXT]


def existing_subject(state: State, name: str, *, include_deleted: bool = False) -> Subject:
    subject = state.subject(name)
    if subject is None or (subject.latest is None and not include_deleted):
        raise refusals.subject_not_found(name)
    return subject


def by_id(state: State, schema_id: int, subject: str | None = None) -> Version:
    """The version to show for an id: the given subject's if it has the id, else the first of the context. An
    unqualified subject is looked for in all contexts."""
    name = subject_name(subject or "")
    context = state.context(name.context)
    if not name.is_context:
        found = of_subject(context, schema_id, name.qualified) if context is not None else None
        if found is not None:
            return found
        if name.context == DEFAULT_CONTEXT:
            for other in other_contexts(state):
                found = of_subject(other, schema_id, SubjectName(other.name, name.subject).qualified)
                if found is not None:
                    return found
    users = context.versions_by_id.get(schema_id) if context is not None else None
    if not users:
        raise refusals.schema_not_found(schema_id)
    return users[0]


def of_subject(context: Context, schema_id: int, name: str) -> Version | None:
    """A subject's first version with an id. An id may have many subjects, a subject many versions."""
    users = context.versions_by_id.get(schema_id)
    subject = context.subjects.get(name)
    if not users or subject is None:
        return None
    if len(users) > len(subject.versions):
        return next((each for each in subject.sorted(deleted=True) if each.schema_id == schema_id), None)
    return next((each for each in list(users) if each.subject is subject), None)


def users_of_id(
    state: State, schema_id: int, subject: str | None, *, include_deleted: bool
) -> Iterator[Version]:
    """Versions that have an id, those of one subject if it is named."""
    shown = by_id(state, schema_id, subject)
    name = subject_name(subject or "")
    users = list(shown.subject.context.versions_by_id.get(schema_id, ()))
    users.sort(key=lambda each: (each.subject.name, each.number))
    for each in users:
        is_named = name.is_context or each.subject.name == shown.subject.name
        if is_named and (include_deleted or not each.is_deleted):
            yield each


def by_guid(state: State, guid: str) -> list[Version]:
    """The first version of a schema in each context that has it."""
    try:
        digest = UUID(guid).bytes
    except ValueError:
        raise refusals.schema_not_found(guid[:100]) from None
    found = []
    for name in sorted(state.contexts):
        context = state.contexts[name]
        schema_id = context.ids_by_digest.get(digest)
        users = context.versions_by_id.get(schema_id) if schema_id is not None else None
        if users:
            found.append(users[0])
    if not found:
        raise refusals.schema_not_found(guid[:100])
    return found


def subjects(state: State, prefix: str, *, live: bool = True, deleted: bool = False) -> Iterator[Subject]:
    """Subjects whose names begin so, sorted; `:*:` in front stands for all contexts. `deleted` adds those of
    which all versions are soft-deleted."""
    wanted: SubjectName | None = None
    if prefix.startswith(ALL_CONTEXTS):
        prefix = prefix[len(ALL_CONTEXTS) :]
    else:
        wanted = subject_name(prefix)
        prefix = wanted.subject
    for subject in state.subjects():
        if wanted is not None and subject.context.name != wanted.context:
            continue
        if subject.bare_name.startswith(prefix) and (deleted if subject.latest is None else live):
            yield subject


def latest_with_properties(
    subject: Subject, wanted: dict[str, str], *, include_deleted: bool
) -> Version | None:
    """The newest version whose metadata has these properties."""
    for version in reversed(subject.sorted(deleted=include_deleted)):
        metadata = version.content.metadata
        properties = (metadata.properties if metadata is not None else None) or {}
        if all(properties.get(name) == value for name, value in wanted.items()):
            return version
    return None


def contexts(state: State, prefix: str = "") -> Iterator[str]:
    """Names of contexts; the default one is first."""
    names = [each for each in list(state.contexts.values()) if each.is_recorded or each.subjects]
    for name in [DEFAULT_CONTEXT, *sorted(each.name for each in names if each.name != DEFAULT_CONTEXT)]:
        if name.startswith(prefix):
            yield name


def aliases_of(state: State, name: str) -> list[str]:
    """Subjects whose configuration names this one as their alias."""
    return sorted(
        each
        for each in list(state.configs)
        if each is not None and state.alias_of(each) == name and each != name
    )
