"""Asking whether a schema could be registered, without registering it.

In: the schema of a request, one version or all of a subject. Out: messages; none if it is compatible.
Does not know: how schemas are compared.
"""

from __future__ import annotations

from dataclasses import replace

from barnabas.registry.state import refusals
from barnabas.registry.state.commands import SchemaRequest
from barnabas.registry.state.compatibility import problems
from barnabas.registry.state.model import Subject, Version
from barnabas.registry.state.parsed import SchemaReader
from barnabas.registry.state.references import LATEST
from barnabas.registry.state.registering import check_subject, read
from barnabas.registry.state.state import State


def incompatibilities(
    name: str,
    request: SchemaRequest,
    number: int | None,
    state: State,
    reader: SchemaReader,
    *,
    normalize: bool = False,
) -> list[str]:
    """Messages as registering would give them. `number` names one version; None: those of the level."""
    check_subject(name)
    subject = state.subject(name)
    config = state.config_in_force(name)
    earlier = compared(subject, number)
    if request.metadata is None and subject is not None and subject.latest is not None:
        request = replace(request, metadata=subject.latest.content.metadata)
    strict = config.validate_new_schemas is not False
    parsed, content = read(request, name, config, reader, normalize=normalize, strict=strict)
    return problems(parsed, content.metadata, earlier, config, reader)


def compared(subject: Subject | None, number: int | None) -> list[Version]:
    if number is None:
        return subject.sorted() if subject is not None else []
    if number == LATEST:
        latest = subject.latest if subject is not None else None
        return [] if latest is None else [latest]
    found = subject.versions.get(number) if subject is not None else None
    if found is None or found.is_deleted:
        raise refusals.version_not_found(number)
    return [found]
