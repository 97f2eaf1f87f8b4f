"""How far a replay or a backfill came: a killed command goes on behind its last chunk when it is repeated.

In: what the command does, and the definition of the tables. Out: the batch to go on at. The record counts
only for the same command on the same definition, and for a day: otherwise the command begins anew, which
gives the same rows. Does not know: chunks, tables.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path

from barnabas.pipeline.spec.model import Pipeline, Source
from barnabas.pipeline.spec.state_folder import state_folder

FOLDER = "rewriting"
RESUMES_WITHIN_S = 86_400.0


class Progress:
    def __init__(self, pipeline: Pipeline, source: Source, command: str) -> None:
        self._path = state_folder(pipeline) / FOLDER / f"{source.name}.json"
        self._meaning = fingerprint(pipeline, source, command)
        self.resumes_at = self._read()

    def _read(self) -> int | None:
        """The batch behind the last chunk of an interrupted run; None if there was none."""
        try:
            found = json.loads(self._path.read_text())
            fits = found["meaning"] == self._meaning and time.time() - found["at"] < RESUMES_WITHIN_S
            return int(found["batch"]) if fits else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def note(self, batch: int) -> None:
        """All batches before this one are rewritten."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(f"{self._path}.new")
        with beside.open("w") as file:
            json.dump({"meaning": self._meaning, "batch": batch, "at": time.time()}, file)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self._path)

    def finish(self) -> None:
        self._path.unlink(missing_ok=True)


def fingerprint(pipeline: Pipeline, source: Source, command: str) -> str:
    """Differs where the command, the source or the tables behind it differ. Secrets show as references."""
    stagings = pipeline.staging_of(source.name)
    trusteds = [each for staging in stagings for each in pipeline.trusted_of(staging.name)]
    return hashlib.sha256(repr((command, source, stagings, trusteds)).encode()).hexdigest()
