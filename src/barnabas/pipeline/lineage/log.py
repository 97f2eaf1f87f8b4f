"""The log of OpenLineage events: a file of JSON lines beside the lake, with a size limit.

In: events. Out: events, oldest first. A streaming job is logged at most once a minute, because its batches
all have the same lineage. Does not know: what an event says.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = "lineage"
FILE_NAME = "events.jsonl"
BYTES_MAX = 32 << 20
STREAM_EVERY_S = 60.0


class EventLog:
    """Appends each line with one write, so that two processes may write at once."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FOLDER / FILE_NAME
        self._told: dict[str, float] = {}

    def is_news(self, job: str) -> bool:
        """Whether a streaming job is due to be logged again."""
        now = time.monotonic()
        if now - self._told.get(job, -STREAM_EVERY_S) < STREAM_EVERY_S:
            return False
        self._told[job] = now
        return True

    def append(self, event: dict[str, Any]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.exists() and self.path.stat().st_size > BYTES_MAX:
            self.path.replace(self.path.with_suffix(".old.jsonl"))
        line = json.dumps(event, ensure_ascii=False).encode() + b"\n"
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(descriptor, line)
        finally:
            os.close(descriptor)

    def events(self) -> Iterator[dict[str, Any]]:
        for path in (self.path.with_suffix(".old.jsonl"), self.path):
            if path.exists():
                for line in path.read_text().splitlines():
                    try:
                        yield json.loads(line)
                    except ValueError:
                        continue  # a full disk cut the line off
