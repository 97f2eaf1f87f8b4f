"""The result of a decision about groups, after a request or a timer.

The records are appended together. Once they are committed, `reply` is the response to the request, and
`responses` are those to requests that waited. If `waiting_token` is set, the request gets no reply now: a
later outcome answers that token, once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, NewType

from barnabas.groups.basics.records import Entry, KeyAndValue
from barnabas.protocol import Message
from barnabas.protocol.messages.delete_share_group_state import DeleteShareGroupStateRequest
from barnabas.protocol.messages.initialize_share_group_state import InitializeShareGroupStateRequest

Token = NewType("Token", int)
"""Identifies one waiting request. A shard never uses one twice."""


MayDescribe = Callable[[str], bool]
"""Whether the sender of a request may know that a topic exists."""


class Caller(NamedTuple):
    """The sender of a request, and the request's version. Descriptions of members show it."""

    client_id: str = ""
    client_host: str = ""
    version: int = 0
    may_describe: MayDescribe | None = None  # None: it may describe every topic


class StateCall(NamedTuple):
    """A request to share coordinators. The shard gets the response with the same number."""

    number: int
    request: InitializeShareGroupStateRequest | DeleteShareGroupStateRequest


@dataclass(slots=True)
class Outcome:
    """For a request either `reply` or `waiting_token` is set; for a timer neither."""

    records: list[Entry] = field(default_factory=list)
    reply: Message | None = None
    waiting_token: Token | None = None
    responses: list[tuple[Token, Message]] = field(default_factory=list)
    encoded: list[KeyAndValue] | None = None  # the encoded records, if the decision made them
    state_calls: tuple[StateCall, ...] = ()  # to send when the records are committed

    @property
    def is_empty(self) -> bool:
        return not self.records and self.reply is None and self.waiting_token is None and not self.responses


class Tokens:
    """Counts the tokens of a shard, which all its kinds of groups share."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last = 0

    def next(self) -> Token:
        self._last += 1
        return Token(self._last)
