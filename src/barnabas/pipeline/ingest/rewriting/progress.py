"""How far a replay or a backfill came: a killed command goes on behind its last chunk when it is repeated.

In: what the command does, and the definition of the tables. Out: the batch to go on at. The record lies in
the lake, so the command can be repeated on another host. It counts only for the same command on the same
definition, and for a day: otherwise the command begins anew, which gives the same rows.
Does not know: chunks, tables.
"""

from __future__ import annotations

import hashlib
import json
import time

from barnabas.engine.errors import LakeUnavailable
from barnabas.engine.places.place import PlaceUnavailable
from barnabas.pipeline.spec.lake_lock import shared_place
from barnabas.pipeline.spec.model import Pipeline, Source

FOLDER = "rewriting"
RESUMES_WITHIN_S = 86_400.0


class Progress:
    def __init__(self, pipeline: Pipeline, source: Source, command: str) -> None:
        self._place = shared_place(pipeline)
        self._name = f"{FOLDER}/{source.name}.json"
        self._meaning = fingerprint(pipeline, source, command)
        self.resumes_at = self._read()

    def _read(self) -> int | None:
        """The batch behind the last chunk of an interrupted run; None if there was none."""
        try:
            found = json.loads(self._place.read(self._name) or b"")
            fits = found["meaning"] == self._meaning and time.time() - found["at"] < RESUMES_WITHIN_S
            return int(found["batch"]) if fits else None
        except PlaceUnavailable as error:
            raise LakeUnavailable(str(error)) from error
        except (ValueError, KeyError, TypeError):
            return None

    def note(self, batch: int) -> None:
        """All batches before this one are rewritten."""
        data = json.dumps({"meaning": self._meaning, "batch": batch, "at": time.time()}).encode()
        try:
            self._place.write(self._name, data)
        except PlaceUnavailable as error:
            raise LakeUnavailable(str(error)) from error

    def finish(self) -> None:
        try:
            self._place.delete(self._name)
        except PlaceUnavailable as error:
            raise LakeUnavailable(str(error)) from error


def fingerprint(pipeline: Pipeline, source: Source, command: str) -> str:
    """Differs where the command, the source or the tables behind it differ. Secrets show as references."""
    stagings = pipeline.staging_of(source.name)
    trusteds = [each for staging in stagings for each in pipeline.trusted_of(staging.name)]
    return hashlib.sha256(repr((command, source, stagings, trusteds)).encode()).hexdigest()
