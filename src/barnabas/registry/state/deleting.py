"""Deleting subjects, versions and contexts: first softly, then permanently.

In: names and numbers. Out: records and the numbers that they delete.
Does not know: the log.
"""

from __future__ import annotations

from barnabas.registry.state import records, refusals
from barnabas.registry.state.commands import Decision, DeleteContext, DeleteSubject, DeleteVersion
from barnabas.registry.state.model import Subject, Version
from barnabas.registry.state.names import DEFAULT_CONTEXT
from barnabas.registry.state.references import LATEST
from barnabas.registry.state.state import State


def delete_subject(command: DeleteSubject, state: State) -> Decision[list[int]]:
    name = command.subject
    subject = state.subject(name)
    if subject is None:
        raise refusals.subject_not_found(name)
    if not command.permanent and subject.latest is None:
        raise refusals.subject_soft_deleted(name)
    check_writable(name, state)
    versions = subject.sorted(deleted=command.permanent)
    if command.permanent and subject.latest is not None:
        raise refusals.subject_not_soft_deleted(name)
    for version in versions:
        check_unreferenced(version, state, by_deleted=command.permanent, forgiven=subject)
    if command.permanent:
        written = [records.schema_tombstone(name, version.number) for version in versions]
    else:
        written = [records.delete_subject_record(name, versions[-1].number)]
    return Decision((*written, *settings_tombstones(name, state)), [each.number for each in versions])


def delete_version(command: DeleteVersion, state: State) -> Decision[int]:
    name = command.subject
    subject = state.subject(name)
    if subject is None:
        raise refusals.subject_not_found(name)
    version = wanted(subject, command)
    if version is None:
        raise refusals.version_not_found("latest" if command.version == LATEST else command.version)
    if not command.permanent and version.is_deleted:
        raise refusals.version_soft_deleted(name, version.number)
    check_writable(name, state)
    check_unreferenced(version, state, by_deleted=command.permanent, forgiven=None)
    if command.permanent:
        if not version.is_deleted:
            raise refusals.version_not_soft_deleted(name, version.number)
        written = records.schema_tombstone(name, version.number)
        is_last = len(subject.versions) == 1
    else:
        written = records.schema_record(
            name, version.number, version.schema_id, version.content, deleted=True
        )
        is_last = len(subject.sorted()) == 1
    rest = settings_tombstones(name, state) if is_last else []
    return Decision((written, *rest), version.number)


def wanted(subject: Subject, command: DeleteVersion) -> Version | None:
    if command.version != LATEST:
        return subject.versions.get(command.version)
    if command.permanent and subject.latest is None:
        return subject.versions.get(subject.version_max)
    return subject.latest


def delete_context(command: DeleteContext, state: State) -> Decision[None]:
    context = state.context(command.context)
    if command.context == DEFAULT_CONTEXT or (context is not None and context.subjects):
        raise refusals.context_not_empty(command.context)
    check_writable(f":{command.context}:", state)
    if context is None or not context.is_recorded:
        return Decision((), None)
    return Decision((records.context_record(command.context, is_gone=True),), None)


def check_writable(name: str | None, state: State) -> None:
    if state.mode_in_force(name).is_read_only:
        raise refusals.not_permitted(
            "The registry is in read-only mode" if name is None else f"Subject {name} is in read-only mode"
        )


def check_unreferenced(version: Version, state: State, *, by_deleted: bool, forgiven: Subject | None) -> None:
    """Code 42206 while a live version, or with `by_deleted` any version, refers to this one."""
    for each in state.references.referring(version):
        if each.subject is not forgiven and (by_deleted or not each.is_deleted):
            raise refusals.reference_exists(
                version.subject.name, version.number, f"'{each.subject.name}' version {each.number}"
            )


def settings_tombstones(name: str, state: State) -> list[records.Record]:
    """A subject without versions has no configuration and no mode either."""
    found = []
    if name in state.modes:
        found.append(records.mode_record(name, None))
    if name in state.configs:
        found.append(records.config_record(name, None))
    return found
