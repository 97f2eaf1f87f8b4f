"""Single records that a store does not take: given to `errors.tolerance`, or left out with a line in the log.

Does not know: stores.
"""

from __future__ import annotations

import logging

from barnabas.connect.data import Records
from barnabas.connect.plugins import SinkContext

log = logging.getLogger("barnabas.connect")


def tolerates_all(context: SinkContext) -> bool:
    """Whether Connect itself leaves records out, and keeps them as dead letters where it should."""
    return context.config.get("errors.tolerance", "none").strip().lower() == "all"


def refuse(
    context: SinkContext, records: Records, index: int, error: Exception, *, ignored_by: str | None
) -> None:
    """Treat a record that the store refuses. `ignored_by` is the connector's own setting that says to go on
    without it, if one does; Connect's own tolerance comes first."""
    if ignored_by is not None and not tolerates_all(context):
        leave_out(context, records, index, error, ignored_by)
    else:
        context.errant(records, [index], error)


def leave_out(context: SinkContext, records: Records, index: int, error: Exception, setting: str) -> None:
    """Go on without the record, because `setting` says so."""
    partitions, offsets = records.partitions, records.offsets
    log.warning(
        "task %s-%d leaves out %s-%s offset %s (%s): %s",
        context.connector,
        context.task,
        records.topics[index].as_py(),
        None if partitions is None else partitions[index].as_py(),
        None if offsets is None else offsets[index].as_py(),
        setting,
        error,
    )
