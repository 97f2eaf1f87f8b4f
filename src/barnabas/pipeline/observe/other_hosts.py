"""The run of a pipeline on another host, as this one sees it through the lake.

In: a pipeline. Out: its timeline, brought up to date where another host runs it; the name of that host. A
lake that does not answer leaves the timeline as it was. Does not know: how it is shown.
"""

from __future__ import annotations

import logging
import time

from barnabas.engine.catalogue.catalogue import Catalogue
from barnabas.engine.catalogue.statuses import ApplicationState
from barnabas.engine.lock import is_held
from barnabas.engine.places.object_store import NoRecords
from barnabas.engine.places.place import PlaceUnavailable
from barnabas.engine.timeline import Timeline, TimelineError
from barnabas.pipeline.spec.lake_lock import state_place
from barnabas.pipeline.spec.model import Pipeline
from barnabas.pipeline.spec.run_copies import run_copy
from barnabas.pipeline.spec.state_folder import logs_folder, state_folder

LOG = logging.getLogger(__name__)


def timeline_of(pipeline: Pipeline) -> Timeline:
    """The timeline of the pipeline's runs on all hosts."""
    folder = state_folder(pipeline)
    copy = None if is_held(folder) else run_copy(pipeline)
    if copy is not None:
        try:
            copy.fetch()
        except (PlaceUnavailable, TimelineError, ValueError) as error:
            LOG.warning("runs of other hosts are not shown: %s", error)
    return Timeline(folder)


def runner_elsewhere(pipeline: Pipeline) -> str:
    """The process and host that run the pipeline, if it is another host; else an empty text."""
    if is_held(state_folder(pipeline)):
        return ""
    try:
        entry = Catalogue(state_place(pipeline)).application(pipeline.name)
    except (NoRecords, PlaceUnavailable, ValueError):
        return ""
    if entry is None or entry.status.state != ApplicationState.RUNNING or not entry.status.host:
        return ""
    status = entry.status
    if status.logs == str(logs_folder(pipeline)):
        return ""  # it was this machine's, and has died
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(status.started))
    return f"pid {status.pid} on {status.host}, since {at}"
