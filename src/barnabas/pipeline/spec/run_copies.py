"""The copy of a pipeline's run in its lake: timeline, schedule and applied file, for the next host.

In: a pipeline. Out: its copy; None where the state of a run lies in the lake already, or where the lake's
store is not known. Does not know: when it is written.
"""

from __future__ import annotations

from barnabas.engine.handover.run_copy import RunCopy
from barnabas.engine.lease_status import NotOurLease, check_lease, lease_status
from barnabas.engine.places.object_store import NoRecords
from barnabas.pipeline.spec.lake_lock import state_place
from barnabas.pipeline.spec.model import Pipeline
from barnabas.pipeline.spec.state_folder import state_folder

FILES = ("schedule.json", "applied.json")


def run_copy(pipeline: Pipeline) -> RunCopy | None:
    """Made under the lease by the host that works, else by readers."""
    if pipeline.lake_location.is_local:
        return None
    try:
        place = state_place(pipeline)
    except NoRecords:
        return None
    folder = state_folder(pipeline)
    epoch = lease_status(folder).epoch

    def may_write() -> bool:
        try:
            return check_lease(folder, epoch).is_held
        except NotOurLease:
            return False

    return RunCopy(place, folder, FILES, may_write)
