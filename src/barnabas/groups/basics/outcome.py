"""What a shard of groups answers to a request or to the passing of time.

Records are appended together; once they are committed, `reply` answers the request and `answers` those who
waited. A request whose outcome has `waits_as` gets no reply now: a later outcome answers that token, once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, NewType

from barnabas.groups.basics.records import Entry, KeyAndValue
from barnabas.protocol import Message

Token = NewType("Token", int)
"""Names one waiting request; never used twice by a shard."""


class Caller(NamedTuple):
    """Who sent a request, and in which version; members are shown with it in descriptions."""

    client_id: str = ""
    client_host: str = ""
    version: int = 0


@dataclass(slots=True)
class Outcome:
    """Either `reply` or `waits_as` is set for a request; neither for time that passed."""

    records: list[Entry] = field(default_factory=list)
    reply: Message | None = None
    waits_as: Token | None = None
    answers: list[tuple[Token, Message]] = field(default_factory=list)
    encoded: list[KeyAndValue] | None = None  # the records' bytes, where they were made on the way

    @property
    def is_nothing(self) -> bool:
        return not self.records and self.reply is None and self.waits_as is None and not self.answers


class Tokens:
    """Counts tokens for a whole shard, so that all kinds of groups draw from one source."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last = 0

    def take(self) -> Token:
        self._last += 1
        return Token(self._last)
