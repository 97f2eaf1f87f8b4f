"""Prints records up to a limit. A record that cannot be printed is an error, or is skipped.

In: records, a formatter. Out: bytes on standard output. Does not know: the consumer.
"""

from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError
from barnabas.cli.records.formatters import Formatter
from barnabas.client.core.fetching import ConsumerRecord

UNLIMITED = -1


class Printer:
    def __init__(self, write: Formatter, out: Output, *, limit: int | None, skip_errors: bool) -> None:
        self._write = write
        self._skip = skip_errors
        self._limit = None if limit == UNLIMITED else limit
        self._out = out
        self.count = 0

    @property
    def is_done(self) -> bool:
        return self._limit is not None and self.count >= self._limit

    def at_most(self, count: int) -> int:
        """The number of records, at most `count`, that may still be printed."""
        return count if self._limit is None else min(count, self._limit - self.count)

    def note(self, text: str) -> None:
        self._out.note(text)

    def show(self, records: list[ConsumerRecord]) -> None:
        records = records[: self.at_most(len(records))]
        written = []
        try:
            for record in records:
                self.count += 1
                try:
                    written.append(self._write(record))
                except ToolError as error:
                    where = f"{record.topic}-{record.partition}, offset {record.offset}"
                    if not self._skip:
                        raise ToolError(f"cannot print the record at {where}: {error}") from None
                    self._out.note(f"skipped the record at {where}: {error}")
        finally:
            self._out.bytes(b"".join(written))
            self._out.flush()
