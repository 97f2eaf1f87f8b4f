"""What a cleaner is told, and what it tells: values that travel between processes as lines of JSON.

In: what the broker knows of a log. Out: a `CleaningJob` for the cleaner; a `CleanedGroup` for every segment
that it made, and `CleaningStats` at the end. Does not know: who sends them to whom.
"""

import json
from dataclasses import asdict, dataclass
from typing import Any

NO_DATA = -1


@dataclass(frozen=True, slots=True)
class CleaningJob:
    """Everything that cleaning a log depends on, as of one moment. All offsets below
    `first_uncleanable_offset`, which begins a segment, are stable; what lies above is looked at for
    aborted transactions only."""

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

    def encode(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def decode(cls, text: str) -> "CleaningJob":
        fields: dict[str, Any] = json.loads(text)
        for name in ("segments", "last_records"):
            fields[name] = tuple(tuple(each) for each in fields[name])
        return cls(**fields)


@dataclass(frozen=True, slots=True)
class CleanedGroup:
    """Segments next to each other, and the one in a `.cleaned` file that stands for them all: it begins
    where the first of them does."""

    base_offsets: tuple[int, ...]
    size: int


@dataclass(slots=True)
class CleaningStats:
    """What a pass over a log came to."""

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
