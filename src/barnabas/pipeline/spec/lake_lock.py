"""The lock of a pipeline's lake, with the lease that lies in the lake, and the place of the engine's files.

In: a pipeline. Out: a lock, not held yet; a place. Does not know: what is done under the lock.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from barnabas.engine.lease_records import FolderRecords, ObjectRecords, Records
from barnabas.engine.lock import LakeLock
from barnabas.engine.places.object_store import NoRecords
from barnabas.engine.places.place import FILE_URL, FolderPlace, Place, place_at
from barnabas.engine.secrets import revealed
from barnabas.pipeline.spec.model import Pipeline
from barnabas.pipeline.spec.state_folder import state_folder

FOLDER = "lease"


def lease_records(pipeline: Pipeline) -> Records:
    """The place of the lake's lease: in the lake."""
    lake = pipeline.lake_location
    if lake.root.startswith(FILE_URL) or lake.is_local:
        return FolderRecords(Path(lake.own_path(FOLDER).removeprefix(FILE_URL)))
    return ObjectRecords(lake.own_path(FOLDER), revealed(pipeline.spark.settings))


def state_place(pipeline: Pipeline) -> Place:
    """The place of the engine's files: in the lake, where all hosts see them."""
    return place_at(pipeline.lake_location.own_path().rstrip("/"), revealed(pipeline.spark.settings))


def shared_place(pipeline: Pipeline) -> Place:
    """The place of the lake's own small files; a folder of this machine where its store is not known."""
    try:
        return state_place(pipeline)
    except NoRecords:
        return FolderPlace(state_folder(pipeline))


def lake_lock(
    pipeline: Pipeline,
    what: str,
    *,
    waits: bool = False,
    is_stopping: Callable[[], bool] = lambda: False,
) -> LakeLock:
    """`waits`: wait while another host works on the lake, and take over when it stops or dies."""
    return LakeLock(
        state_folder(pipeline), what, lease_records(pipeline), waits=waits, is_stopping=is_stopping
    )
