"""Changing configurations and modes of subjects, contexts and the whole registry.

In: the fields of a request. Out: records, and the setting that was or that is.
Does not know: the log.
"""

from __future__ import annotations

from barnabas.registry.state import records, refusals
from barnabas.registry.state.commands import ChangeConfig, ChangeMode, Decision, DeleteConfig, DeleteMode
from barnabas.registry.state.config import EMPTY, Config, Mode
from barnabas.registry.state.deleting import check_unreferenced, check_writable
from barnabas.registry.state.model import Subject
from barnabas.registry.state.names import subject_name, why_invalid
from barnabas.registry.state.state import GLOBAL, State


def change_config(command: ChangeConfig, state: State) -> Decision[Config]:
    """The reply is the configuration as it will be; fields of wider scopes are not in it."""
    check_scope(command.subject)
    check_writable(command.subject, state)
    changed = state.configs.get(command.subject, EMPTY).changed(command.changes)
    for rules in changed.rule_sets:
        why = rules.why_invalid()
        if why is not None:
            raise refusals.invalid_rule_set(why)
    return Decision((records.config_record(command.subject, changed),), changed)


def delete_config(command: DeleteConfig, state: State) -> Decision[Config]:
    """The reply is the configuration that was in force."""
    check_writable(command.subject, state)
    own = state.configs.get(command.subject)
    if command.subject is not None and own is None:
        raise refusals.subject_not_found(command.subject)
    before = own if own is not None and own.level is not None else state.config_in_force(command.subject)
    if own is None:
        return Decision((), before)
    return Decision((records.config_record(command.subject, None),), before)


def change_mode(command: ChangeMode, state: State, *, is_mutable: bool = True) -> Decision[Mode | None]:
    name = command.subject
    check_scope(name)
    check_mutable(is_mutable)
    if command.mode is None:
        return Decision((records.mode_record(name, None),) if name in state.modes else (), None)
    try:
        mode = Mode(command.mode.upper())
    except ValueError:
        raise refusals.invalid_mode(command.mode) from None
    if mode is Mode.FORWARD and name != GLOBAL:
        raise refusals.invalid_mode(command.mode)
    if mode is Mode.READONLY_OVERRIDE and name is not None:
        raise refusals.invalid_mode(command.mode)
    written = []
    if mode is Mode.IMPORT and state.mode_in_force(name) is not Mode.IMPORT and not command.force:
        written += wiped(name, state)
    written.append(records.mode_record(name, mode))
    return Decision(tuple(written), mode)


def wiped(name: str | None, state: State) -> list[records.Record]:
    """Importing begins without subjects: live ones are in its way, soft-deleted ones go."""
    subjects = state.subjects_in_scope(name)
    live = next((each for each in subjects if each.latest is not None), None)
    if live is not None:
        raise refusals.not_permitted(
            f"Cannot import since found existing subjects ('{live.name}'). Delete them, or set force=true"
        )
    for subject in subjects:
        check_unreferenced_outside(subject, subjects, state)
    return [records.clear_subject_record(name)] if subjects else []


def check_unreferenced_outside(subject: Subject, subjects: list[Subject], state: State) -> None:
    for version in subject.sorted(live=False, deleted=True):
        referring = {each.subject.name for each in state.references.referring(version)}
        if referring - {each.name for each in subjects}:
            check_unreferenced(version, state, by_deleted=True, forgiven=subject)


def delete_mode(command: DeleteMode, state: State, *, is_mutable: bool = True) -> Decision[Mode]:
    """The reply is the mode that was in force."""
    name = command.subject
    check_mutable(is_mutable)
    if name is not None and name not in state.modes and not command.recursive:
        raise refusals.subject_not_found(name)
    before = state.modes.get(name) or state.mode_in_force(name)
    gone: list[str | None] = [name] if name in state.modes else []
    if command.recursive:
        gone += [each for each in list(state.modes) if each != name and is_inside(each, name)]
    return Decision(tuple(records.mode_record(each, None) for each in gone), before)


def is_inside(name: str | None, scope: str | None) -> bool:
    """Whether a mode of `name` lies in the context that `scope` stands for."""
    if scope == GLOBAL:
        return True
    outer = subject_name(scope or "")
    return outer.is_context and name is not None and subject_name(name).context == outer.context


def check_scope(name: str | None) -> None:
    why = why_invalid(subject_name(name), is_setting=True) if name is not None else None
    if name is not None and why is not None:
        raise refusals.invalid_subject(name, why)


def check_mutable(is_mutable: bool) -> None:
    if not is_mutable:
        raise refusals.not_permitted("Mode changes are not allowed: the setting mode.mutability is false")
