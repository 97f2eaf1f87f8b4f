"""The result of a decision about share state, after a request or by time.

The records are appended together. Once they are committed, `reply` is the response to the request, and
records below `prune_offset` may be deleted. The first five fields are those of a group's outcome, so that one
host serves all. No request about share state waits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from barnabas.protocol import Message
from barnabas.shares.state.records import Entry


@dataclass(slots=True)
class ShareOutcome:
    """`reply` is set for a request, and only then."""

    records: list[Entry] = field(default_factory=list)
    reply: Message | None = None
    waiting_token: None = None
    responses: tuple[tuple[Any, Message], ...] = ()
    encoded: None = None  # the host encodes the records
    prune_offset: int | None = None
