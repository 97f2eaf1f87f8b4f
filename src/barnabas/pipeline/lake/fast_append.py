"""Appends batch after batch without Delta's search through the table's log.

To write a transaction id, Delta first computes the state of the table, a Spark job over its log, to see
whether the id exists. If the table is at the version of this writer's last commit, it cannot have the next
id. Then only the write and the commit are done, through Delta's own transaction. Delta still detects
concurrent writers, because the transaction declares that it depends on the id. In: rows, a table's path,
an id, the version of the last commit. Out: a commit and its version. Does not know: zones. Spark Connect
has its JVM elsewhere, so there Delta searches each time.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LOG = logging.getLogger(__name__)


def append_after(
    rows: DataFrame, path: str, version: int, app: str, number: int, metadata: str = ""
) -> int | None:
    """Append and commit; the new version. None if nothing was done: the table is at another version, or
    Delta's classes cannot be called."""
    session: Any = rows.sparkSession
    if type(session).__module__.startswith("pyspark.sql.connect"):
        return None
    from py4j.protocol import Py4JError

    try:
        jvm, jsession = session._jvm, session._jsparkSession
        session._get_j_spark_session_class(jvm).setActiveSession(jsession)  # of this thread
        delta = jvm.org.apache.spark.sql.delta
        log = delta.DeltaLog.forTable(jsession, path)
        transaction = log.startTransaction()
        if transaction.readVersion() != version:
            return None
        transaction.readTxn().addOne(app)
        nothing = jvm.scala.Option.empty()
        no_names = getattr(getattr(jvm.scala.collection.immutable, "Nil$"), "MODULE$")
        mode = jvm.org.apache.spark.sql.SaveMode.Append
        given = {
            "txnAppId": app,
            "txnVersion": str(number),
            **({"userMetadata": metadata} if metadata else {}),
        }
        to_map = jvm.PythonUtils.toScalaMap
        options = delta.DeltaOptions(to_map(given), jsession.sessionState().conf())
        write = delta.commands.WriteIntoDelta(
            log, mode, options, no_names, to_map({}), rows._jdf, nothing, nothing, False
        )
        noted = jvm.scala.Option.apply(metadata) if metadata else nothing
        operation = getattr(delta, "DeltaOperations$Write")(
            mode,
            jvm.scala.Option.apply(no_names),
            nothing,
            noted,
            nothing,
            nothing,
            nothing,
            nothing,
            nothing,
        )
    except (AttributeError, TypeError, Py4JError) as problem:  # another version of Delta
        LOG.warning("fast append is off, Delta searches its log before each commit: %s", problem)
        return None
    found = write.writeAndReturnCommitData(transaction, jsession, nothing, False)
    committed = transaction.commitIfNeeded(found.actions(), operation, found.stringTags())
    return int(committed.get()) if committed.isDefined() else None
