"""A small state in place of schemas: it counts. A number that is given twice is seen at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from barnabas.registry.log.changes import KeyValue


@dataclass(frozen=True, slots=True)
class Change:
    records: Sequence[KeyValue]
    reply: int


class Numbers:
    def __init__(self) -> None:
        self.seen: list[bytes] = []
        self.keys: list[bytes | None] = []

    def apply(self, key: bytes | None, value: bytes | None, timestamp_ms: int) -> None:
        self.keys.append(key)
        if value is not None:
            assert timestamp_ms > 0
            self.seen.append(value)

    def adds(self, name: bytes) -> Callable[[], Awaitable[Change]]:
        """Decide to add the next number."""

        async def decide() -> Change:
            number = len(self.seen) + 1
            return Change([(b"%s-%d" % (name, number), b"%d" % number)], number)

        return decide
