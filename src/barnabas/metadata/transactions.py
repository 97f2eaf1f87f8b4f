"""Metadata transactions (KIP-868): records take effect together when theirs ends, or never when it aborts.

In: records in the order of the log. Out: the records that take effect, once they do.
Does not know: the image; a reader of the log puts this between the log and a delta.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from barnabas.protocol import Message
from barnabas.protocol.log_records.metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)


class TransactionFilter:
    """Holds back the records of an open transaction. Bounded by what one transaction may hold in the log."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: list[Message] | None = None

    @property
    def is_open(self) -> bool:
        return self._held is not None

    def copy(self) -> TransactionFilter:
        """The same state; what passes through one does not change the other."""
        other = TransactionFilter()
        other._held = None if self._held is None else list(self._held)
        return other

    def pass_on(self, records: Iterable[Message]) -> Iterator[Message]:
        for record in records:
            kind = type(record)
            if kind is BeginTransactionRecord:
                if self._held is not None:
                    raise ValueError("a metadata transaction begins inside another one")
                self._held = []
            elif kind is EndTransactionRecord or kind is AbortTransactionRecord:
                if self._held is None:
                    raise ValueError("a metadata transaction ends that never began")
                held, self._held = self._held, None
                if kind is EndTransactionRecord:
                    yield from held
            elif self._held is None:
                yield record
            else:
                self._held.append(record)
