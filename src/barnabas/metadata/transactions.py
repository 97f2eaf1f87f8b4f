"""Metadata transactions (KIP-868): their records take effect together at the end, or never after an abort.

In: records in the order of the log. Out: the records that take effect.
Does not know: the image. A reader of the log puts this between the log and a delta.
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
    """Buffers the records of an open transaction. The log's limit on a transaction bounds the buffer."""

    __slots__ = ("_buffered",)

    def __init__(self) -> None:
        self._buffered: list[Message] | None = None

    @property
    def is_open(self) -> bool:
        return self._buffered is not None

    def copy(self) -> TransactionFilter:
        """An independent copy."""
        other = TransactionFilter()
        other._buffered = None if self._buffered is None else list(self._buffered)
        return other

    def pass_on(self, records: Iterable[Message]) -> Iterator[Message]:
        for record in records:
            kind = type(record)
            if kind is BeginTransactionRecord:
                if self._buffered is not None:
                    raise ValueError("a metadata transaction begins before the previous one ended")
                self._buffered = []
            elif kind is EndTransactionRecord or kind is AbortTransactionRecord:
                if self._buffered is None:
                    raise ValueError("a metadata transaction ends without a begin record")
                buffered, self._buffered = self._buffered, None
                if kind is EndTransactionRecord:
                    yield from buffered
            elif self._buffered is None:
                yield record
            else:
                self._buffered.append(record)
