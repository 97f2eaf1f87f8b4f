"""Associations of subjects with resources: which are allowed, and what they change.

In: a resource and what it shall have with subjects. Out: records and the associations as they will be.
A STRONG association makes the resource the subject's only owner; with WEAK ones a subject has many.
Does not know: whether the resource exists.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from uuid import NAMESPACE_URL, uuid5

from barnabas.registry.state import refusals
from barnabas.registry.state.association_records import STRONG, WEAK, Association, AssociationKey
from barnabas.registry.state.commands import (
    Associate,
    AssociationChange,
    Decision,
    DeleteSubject,
    Dissociate,
    Registered,
    RegisterSchema,
)
from barnabas.registry.state.deleting import check_writable, delete_subject
from barnabas.registry.state.model import Content
from barnabas.registry.state.names import subject_name, why_invalid
from barnabas.registry.state.parsed import SchemaReader
from barnabas.registry.state.records import Record
from barnabas.registry.state.registering import register
from barnabas.registry.state.state import State

TOPIC = "topic"
TYPES = ("key", "value")
ASSOCIATIONS_MAX = 1000  # of one subject
NAME_LENGTH_MAX = 1000


@dataclass(frozen=True, slots=True)
class Associated:
    association: Association
    schema: Registered | None = None


@dataclass(slots=True)
class Draft:
    """Records of one command. New schemas of one command must not get the same id."""

    written: list[Record] = field(default_factory=list)
    new_ids: dict[tuple[str, bytes], int] = field(default_factory=dict)


def associate(
    command: Associate, state: State, reader: SchemaReader, now_ms: int
) -> Decision[list[Associated]]:
    name, namespace, resource_id = resource_of(command)
    types = [each.association_type or "value" for each in command.associations]
    if not types:
        raise refusals.invalid_association("associations is empty")
    if len({*types}) != len(types):
        raise refusals.invalid_association("an association type appears twice")
    draft = Draft()
    made = []
    for change, kind in zip(command.associations, types, strict=True):
        key = AssociationKey(name, namespace, TOPIC, kind, subject_of(change, command, kind))
        made.append(one(change, key, resource_id, command.may_exist, state, reader, draft, now_ms))
    return Decision(() if command.dry_run else tuple(draft.written), made)


def resource_of(command: Associate) -> tuple[str, str, str]:
    wanted = {
        "resourceName": command.resource_name,
        "resourceNamespace": command.resource_namespace,
        "resourceId": command.resource_id,
    }
    for name, value in wanted.items():
        if not value or len(value) > NAME_LENGTH_MAX:
            raise refusals.invalid_association(f"{name} must have 1 to {NAME_LENGTH_MAX} characters")
    if (command.resource_type or TOPIC) != TOPIC:
        raise refusals.invalid_association(f"resourceType must be {TOPIC}")
    return command.resource_name or "", command.resource_namespace or "", command.resource_id or ""


def subject_of(change: AssociationChange, command: Associate, kind: str) -> str:
    if kind not in TYPES:
        raise refusals.invalid_association(f"associationType must be one of {', '.join(TYPES)}")
    if change.lifecycle not in (None, STRONG, WEAK):
        raise refusals.invalid_association(f"lifecycle must be {STRONG} or {WEAK}")
    given = change.subject or f"{command.resource_name}-{kind}"
    found = subject_name(given, command.context)
    why = why_invalid(found)
    if why is not None:
        raise refusals.invalid_association(f"subject {given[:200]!r}: {why}")
    return found.qualified


def one(
    change: AssociationChange,
    key: AssociationKey,
    resource_id: str,
    may_exist: bool,
    state: State,
    reader: SchemaReader,
    draft: Draft,
    now_ms: int,
) -> Associated:
    mine = [
        each
        for each in state.associations.of_resource(resource_id)
        if each.key.association_type == key.association_type
    ]
    before = mine[0] if mine else None
    lifecycle = change.lifecycle or (before.lifecycle if before is not None else WEAK)
    frozen = change.frozen if change.frozen is not None else before is not None and before.frozen
    if frozen and lifecycle == WEAK:
        raise refusals.invalid_association("a WEAK association cannot be frozen")
    after = Association(
        key=key,
        guid=before.guid if before is not None else str(uuid5(NAMESPACE_URL, f"{resource_id} {key}")),
        resource_id=resource_id,
        lifecycle=lifecycle,
        frozen=frozen,
        create_ms=before.create_ms if before is not None else now_ms,
        update_ms=now_ms,
    )
    is_same = before is not None and replace(after, update_ms=before.update_ms) == before
    if before is not None and not is_same:
        if not may_exist:
            raise refusals.association_conflict(
                40903, f"resource {resource_id} has an association of type {key.association_type} already"
            )
        if before.frozen:
            raise refusals.association_conflict(40908, f"the association of {resource_id} is frozen")
    check_writable(key.subject, state)
    check_other_resources(after, state)
    registered = None
    if change.schema is not None:
        registered = register_schema(change, key.subject, state, reader, draft)
    else:
        subject = state.subject(key.subject)
        if subject is None or subject.latest is None:
            raise refusals.association_conflict(
                40907, f"subject '{key.subject}' has no version, and none is sent"
            )
    if not is_same:
        if before is not None and before.key != key:
            draft.written.append(before.tombstone())
        draft.written.append(after.record())
    return Associated(after, registered)


def check_other_resources(after: Association, state: State) -> None:
    others = [
        each
        for each in state.associations.of_subject(after.key.subject)
        if each.resource_id != after.resource_id
    ]
    owner = next((each for each in others if each.lifecycle == STRONG), None)
    if owner is not None:
        raise refusals.association_conflict(
            40905, f"subject '{after.key.subject}' belongs to resource {owner.resource_id}"
        )
    if others and after.lifecycle == STRONG:
        raise refusals.association_conflict(
            40904, f"subject '{after.key.subject}' has an association with resource {others[0].resource_id}"
        )
    if len(others) >= ASSOCIATIONS_MAX:
        raise refusals.association_conflict(
            40902, f"subject '{after.key.subject}' has {len(others)} associations already"
        )


def register_schema(
    change: AssociationChange, subject: str, state: State, reader: SchemaReader, draft: Draft
) -> Registered:
    assert change.schema is not None
    command = RegisterSchema(subject, change.schema, change.normalize)
    context = subject_name(subject).context

    def new_id(content: Content, following: int) -> int:
        place = (context, content.digest)
        taken = [each for (owner, _), each in draft.new_ids.items() if owner == context]
        return draft.new_ids.setdefault(place, max([following - 1, *taken]) + 1)

    decision = register(command, state, reader, new_id)
    draft.written += decision.records
    return decision.reply


def dissociate(command: Dissociate, state: State) -> Decision[list[Association]]:
    found = [
        each
        for each in state.associations.of_resource(command.resource_id)
        if command.resource_type in (None, each.key.resource_type)
        and (not command.association_types or each.key.association_type in command.association_types)
    ]
    if not found:
        raise refusals.association_not_found(f"resource {command.resource_id}")
    written: list[Record] = []
    for each in found:
        if each.frozen and not command.cascade:
            raise refusals.association_conflict(
                40908, f"the association with '{each.key.subject}' is frozen: set cascadeLifecycle=true"
            )
        check_writable(each.key.subject, state)
        written.append(each.tombstone())
        subject = state.subject(each.key.subject)
        if (
            command.cascade
            and each.lifecycle == STRONG
            and subject is not None
            and subject.latest is not None
        ):
            written += delete_subject(DeleteSubject(each.key.subject), state).records
    return Decision(() if command.dry_run else tuple(written), found)
