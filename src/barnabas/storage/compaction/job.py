"""Messages between broker and cleaner process, sent as lines of JSON.

The broker sends a `CleaningJob`. The cleaner sends a `CleanedGroup` for every segment that it wrote, and
`CleaningStats` at the end.
Does not know: processes, pipes.
"""

import json
from collections.abc import Generator
from dataclasses import dataclass, field, fields
from typing import Any

NO_DATA = -1
RECORDS_A_STEP = 500


@dataclass(frozen=True, slots=True)
class CleaningJob:
    """Everything that cleaning a log depends on, at one moment. All offsets below `first_uncleanable_offset`
    (the base offset of a segment) are stable. Segments above it are only read for aborted transactions."""

    directory: str
    segments: tuple[tuple[int, int], ...]  # base offset and size, in order; the active one last
    first_dirty_offset: int
    first_uncleanable_offset: int
    now_ms: int
    delete_retention_ms: int = 86_400_000
    segment_bytes: int = 1 << 30
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    last_records: tuple[tuple[int, int, int], ...] = ()  # active producers: id, last data offset or -1, epoch
    key_bytes_max: int = 115 << 20
    io_buffer_bytes: int = 256 << 10
    io_bytes_per_second: float = float("inf")
    keys: dict[str, Any] | None = field(default=None, repr=False)  # of the log dir, if it is encrypted

    def encode(self) -> Generator[None, None, str]:
        """The job as one line, in steps: there may be a hundred thousand producers."""
        content = {each.name: getattr(self, each.name) for each in fields(self)}
        del content["last_records"]
        parts = []
        for start in range(0, len(self.last_records), RECORDS_A_STEP):
            parts.append(json.dumps(self.last_records[start : start + RECORDS_A_STEP])[1:-1])
            yield
        return f'{json.dumps(content)[:-1]}, "last_records": [{", ".join(parts)}]}}'

    @classmethod
    def decode(cls, text: str) -> "CleaningJob":
        content: dict[str, Any] = json.loads(text)
        for name in ("segments", "last_records"):
            content[name] = tuple(tuple(each) for each in content[name])
        return cls(**content)


@dataclass(frozen=True, slots=True)
class CleanedGroup:
    """Neighbouring segments and the one segment, in `.cleaned` files, that replaces them. It has the base
    offset of the first."""

    base_offsets: tuple[int, ...]
    size: int


@dataclass(slots=True)
class CleaningStats:
    """The result of one pass over a log."""

    end_offset: int = 0  # everything below is clean now
    map_bytes_read: int = 0
    map_records_read: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    records_read: int = 0
    records_written: int = 0
    invalid_records: int = 0  # without a key
    key_bytes: int = 0
    buffer_utilization: float = 0.0
    map_seconds: float = 0.0
    seconds: float = 0.0
