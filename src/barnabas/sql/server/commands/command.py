"""A command: a statement in the command topic, and its JSON.

In: statements with their properties. Out: keys and values of records, and back. A record's number is its
place among the commands, from 0 on; ids of queries end with it. Commands that ksqlDB wrote are read
too: their statements count, their plans do not. Does not know: what statements mean.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

VERSION = 1
NOOP: tuple[bytes, bytes | None] = (b'{"barnabas":"noop"}', None)

log = logging.getLogger("barnabas.sql")


@dataclass(frozen=True, slots=True)
class CommandId:
    """`kind` is stream, table, type, terminate, pause, resume, topic or cluster."""

    kind: str
    name: str
    action: str

    def __str__(self) -> str:
        """As status messages and paths have it; names of sources are in back quotes."""
        name = f"`{self.name}`" if self.kind in ("stream", "table") else self.name
        return f"{self.kind}/{name}/{self.action}"

    @classmethod
    def parse(cls, text: str) -> CommandId | None:
        kind, _, rest = text.partition("/")
        name, _, action = rest.rpartition("/")
        return cls(kind, name.strip("`"), action) if kind and name and action else None


@dataclass(frozen=True, slots=True)
class Command:
    """`properties` are those of the session, `defaults` the server's own when the statement was taken."""

    id: CommandId
    statement: str
    properties: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, str] = field(default_factory=dict)
    number: int = -1

    @property
    def all_properties(self) -> dict[str, str]:
        return {**self.defaults, **self.properties}


def encode(command: Command) -> tuple[bytes, bytes]:
    body = {
        "statement": command.statement,
        "streamsProperties": dict(command.properties),
        "originalProperties": dict(command.defaults),
        "plan": None,
        "version": VERSION,
    }
    key = json.dumps(str(command.id), ensure_ascii=False).encode()
    return key, json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def decode(key: bytes | None, value: bytes | None, number: int) -> Command | None:
    """Read a record of the command topic. None if it is no command: of a writer that begins, or damaged."""
    if value is None or key is None:
        return None
    try:
        name, body = json.loads(key), json.loads(value)
        found = CommandId.parse(name if isinstance(name, str) else "")
        if found is None:
            raise ValueError("its key names no command")
        return Command(
            found,
            statement_of(body),
            texts(body.get("streamsProperties")),
            texts(body.get("originalProperties")),
            number,
        )
    except (ValueError, TypeError, AttributeError) as error:
        log.error("a record of the command topic is left out, it is no command: %s", error)
        return None


def statement_of(body: Mapping[str, Any]) -> str:
    text = body.get("statement")
    if not isinstance(text, str) or not text.strip():
        text = (body.get("plan") or {}).get("statementText")
    if not isinstance(text, str) or not text.strip():
        raise ValueError("it has no statement")
    return text


def texts(given: Any) -> dict[str, str]:
    """Properties as texts, as JSON of any client may have them."""
    if not isinstance(given, dict):
        return {}
    return {str(name): text_of(value) for name, value in given.items() if value is not None}


def text_of(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return (
        value
        if isinstance(value, str)
        else json.dumps(value)
        if isinstance(value, dict | list)
        else str(value)
    )
