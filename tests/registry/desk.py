"""A registry without a log: decisions are applied at once, as a single node would."""

from __future__ import annotations

from typing import Any

from barnabas.registry.state.commands import Command, Registered, RegisterSchema, SchemaRequest
from barnabas.registry.state.deciding import Decider, Rules
from barnabas.registry.state.names import qualified
from barnabas.registry.state.parsed import ParsedSchemas
from barnabas.registry.state.records import Record
from barnabas.registry.state.state import State
from barnabas.services.errors import ApiError
from registry import plain_schemas


class Desk:
    def __init__(self, parse: Any = plain_schemas.parse, rules: Rules | None = None) -> None:
        self.state = State()
        self.decider = Decider(self.state, ParsedSchemas(parse), rules)
        self.log: list[Record] = []

    def do(self, command: Command) -> Any:
        decision = self.decider.decide(command, now_ms=len(self.log))
        self.put(*decision.records)
        return decision.reply

    def put(self, *records: Record) -> None:
        for record in records:
            self.state.apply(record.key, record.value, timestamp_ms=len(self.log))
            self.log.append(record)

    def register(self, subject: str, text: str = '{"a":1}', **given: Any) -> Registered:
        options = {name: given.pop(name) for name in ("normalize", "force") if name in given}
        found: Registered = self.do(
            RegisterSchema(qualified(subject), SchemaRequest(text, **given), **options)
        )
        return found

    def refusal(self, command: Command) -> int:
        """The code with which a command is refused. Nothing is written then."""
        written = len(self.log)
        try:
            self.decider.decide(command, now_ms=0)
        except ApiError as error:
            assert len(self.log) == written
            return error.code
        raise AssertionError(f"{command} was not refused")

    def again(self) -> Desk:
        """A registry that reads the same log."""
        other = Desk()
        other.put(*self.log)
        return other
