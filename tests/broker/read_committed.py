"""A consumer that reads committed records only, as clients do it: with the list of aborted transactions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from barnabas.records.batch import headers
from barnabas.records.control import read_end_marker
from barnabas.records.record import Record, iter_records


class ReadCommitted:
    """Takes fetch responses one after the other and gives the records that an application sees."""

    def __init__(self, offset: int = 0) -> None:
        self.offset = offset

    def feed(self, data: bytes, aborted: Iterable[tuple[int, int]]) -> Iterator[Record]:
        """`aborted`: producer id and first offset of each transaction to be skipped in this response."""
        coming = sorted(aborted, key=lambda each: each[1])
        skipped: set[int] = set()
        for position, header in headers(data):
            while coming and coming[0][1] <= header.last_offset:
                skipped.add(coming.pop(0)[0])
            batch = data[position : position + header.size]
            next_offset = max(self.offset, header.next_offset)
            if header.is_control:
                marker = read_end_marker(batch)
                if marker is not None and marker.aborted:
                    skipped.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in skipped):
                yield from (record for record in iter_records(batch) if record.offset >= self.offset)
            self.offset = next_offset
