"""The last batch of a source that all zones have: a small file in the lake, so that any host finds it.

In: a pipeline, a source. Out: the number of that batch, with facts that a restart needs. A table has no
commit of a batch that gave it no rows, so tables alone do not show that a batch is complete. Judging such a
batch again would be wrong once a backfill gave rows its number, or once rules have changed. A missing file
is safe: the batch is judged again. Does not know: how batches are written.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from barnabas.engine.errors import LakeUnavailable
from barnabas.engine.places.place import PlaceUnavailable
from barnabas.pipeline.ingest.audit_mark import AuditMark
from barnabas.pipeline.spec.lake_lock import shared_place
from barnabas.pipeline.spec.model import Pipeline

FOLDER = "complete"


@dataclass(frozen=True, slots=True)
class CompleteBatch:
    """`newest` is the newest event time up to the batch; `audit` has the duplicates of the batch too."""

    batch: int
    newest: str | None = None
    audit: AuditMark | None = None

    def data(self) -> bytes:
        audit = self.audit.to_json() if self.audit is not None else None
        return json.dumps({"batch": self.batch, "newest": self.newest, "audit": audit}).encode()

    @classmethod
    def parse(cls, data: bytes | None) -> CompleteBatch | None:
        try:
            found: Any = json.loads(data or b"")
            return cls(int(found["batch"]), found["newest"], AuditMark.of_json(found["audit"]))
        except (ValueError, KeyError, TypeError):
            return None


class CompleteBatches:
    """The note about one source. Its lock keeps writers apart."""

    def __init__(self, pipeline: Pipeline, source: str) -> None:
        self._place = shared_place(pipeline)
        self._name = f"{FOLDER}/{source}.json"

    def last(self) -> CompleteBatch | None:
        try:
            return CompleteBatch.parse(self._place.read(self._name))
        except PlaceUnavailable as error:
            raise LakeUnavailable(str(error)) from error

    def note(self, complete: CompleteBatch) -> None:
        try:
            self._place.write(self._name, complete.data())
        except PlaceUnavailable as error:
            raise LakeUnavailable(str(error)) from error

    def forget(self) -> None:
        """Batches begin anew: the note is about tables that were deleted."""
        try:
            self._place.delete(self._name)
        except PlaceUnavailable as error:
            raise LakeUnavailable(str(error)) from error
