"""What deciding gives: records to write, and the answer once they are committed.

In: nothing. Out: `Decision`, the shape that every core in decide/apply form shares.
Does not know: what the records mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from barnabas.protocol import Message

Reply = TypeVar("Reply", covariant=True)


@dataclass(frozen=True, slots=True)
class Decision(Generic[Reply]):
    """Records take effect together or not at all; without records it is just an answer."""

    reply: Reply
    records: Sequence[Message] = ()
