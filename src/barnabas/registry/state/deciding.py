"""Decides on commands: the one way to change the registry.

In: a command, the state, the time. Out: records to append and the reply, or an ApiError. Nothing is changed:
a host appends the records, applies them to the state and then gives the reply.
Does not know: the log, the network.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from barnabas.registry.state import commands
from barnabas.registry.state.associating import associate, dissociate
from barnabas.registry.state.commands import Command, Decision
from barnabas.registry.state.deleting import delete_context, delete_subject, delete_version
from barnabas.registry.state.parsed import ParsedSchemas, SchemaReader
from barnabas.registry.state.registering import register
from barnabas.registry.state.retagging import tag_version
from barnabas.registry.state.settings_changes import change_config, change_mode, delete_config, delete_mode
from barnabas.registry.state.state import State


@dataclass(frozen=True, slots=True)
class Rules:
    """Settings of the registry that decisions depend on."""

    mode_is_mutable: bool = True


class Decider:
    """A state with what deciding needs besides: parsed schemas and rules."""

    def __init__(
        self, state: State, schemas: ParsedSchemas | None = None, rules: Rules | None = None
    ) -> None:
        self.state = state
        self.reader = SchemaReader(state, schemas or ParsedSchemas())
        self.rules = rules or Rules()

    def decide(self, command: Command, now_ms: int) -> Decision[Any]:
        state, reader = self.state, self.reader
        is_mutable = self.rules.mode_is_mutable
        match command:
            case commands.RegisterSchema():
                return register(command, state, reader)
            case commands.TagVersion():
                return tag_version(command, state, reader)
            case commands.DeleteSubject():
                return delete_subject(command, state)
            case commands.DeleteVersion():
                return delete_version(command, state)
            case commands.ChangeConfig():
                return change_config(command, state)
            case commands.DeleteConfig():
                return delete_config(command, state)
            case commands.ChangeMode():
                return change_mode(command, state, is_mutable=is_mutable)
            case commands.DeleteMode():
                return delete_mode(command, state, is_mutable=is_mutable)
            case commands.DeleteContext():
                return delete_context(command, state)
            case commands.Associate():
                return associate(command, state, reader, now_ms)
            case commands.Dissociate():
                return dissociate(command, state)
