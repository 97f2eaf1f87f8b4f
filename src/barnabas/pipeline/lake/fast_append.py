"""Appends of one batch after the other, without Delta reading a table's whole log before each of them.

Asked to write a transaction id, Delta first computes the state of the table, a Spark job over its log, to see
whether the id is there already. A table that stands where this writer's last commit left it cannot have the
next id: then only the write and the commit are done, with the id in the commit, by Delta's own transaction.
Two writers at once are still found by Delta, because the transaction says that it depends on the id.
In: rows, a table's path, an id, the version of the last commit. Out: a commit, and its version. Does not
know: zones. Not possible with Spark Connect, whose JVM is elsewhere: there Delta looks each time.
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
    """The version that the commit made; None where nothing was done: the table stands elsewhere, or Delta
    cannot be reached like this."""
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
    except (AttributeError, TypeError, Py4JError) as problem:  # a Delta of another shape
        LOG.warning("Delta looks through its log before each commit: %s", problem)
        return None
    found = write.writeAndReturnCommitData(transaction, jsession, nothing, False)
    committed = transaction.commitIfNeeded(found.actions(), operation, found.stringTags())
    return int(committed.get()) if committed.isDefined() else None
