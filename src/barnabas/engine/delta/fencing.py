"""Fences a table: commits that a former holder of the lease began, or begins later, are refused.

The number of each transaction id has the epoch of the lease in its high bits. A fence is a commit that
repeats the last number of each writer with the new epoch. Delta then skips ids of the former epoch, because
their numbers are lower, and refuses a commit under way, because a commit with the same writer came between.
The low bits stay, so that the new holder's commits of batches that exist are still skipped.

In: a table's path, names of writers, an epoch. Out: one commit, through Delta's own transaction; where its
classes cannot be called (Spark Connect), one commit for each writer. Does not know: leases, zones.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from barnabas.engine.delta import commits
from barnabas.engine.session import apart, is_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOG = logging.getLogger(__name__)
TXN = "txn struct<appId: string, version: bigint>"
LOG_FORMATS = (("json", "*.json"), ("parquet", "*.checkpoint*.parquet"))


def fence(spark: SparkSession, path: str, apps: Sequence[str], epoch: int, metadata: str = "") -> None:
    """Let the table refuse commits of these writers with earlier epochs. It can be repeated."""
    if fence_by_transaction(spark, path, apps, epoch, metadata):
        return
    last = last_numbers(spark, path)
    empty = spark.read.format("delta").load(path).limit(0)
    for app in apps:
        number = last.get(app, 0)
        if number // commits.EPOCH < epoch:
            txn = commits.Txn.of(app, epoch, number % commits.EPOCH)
            commits.append(empty, path, txn, metadata=metadata)


def fence_by_transaction(
    spark: SparkSession, path: str, apps: Sequence[str], epoch: int, metadata: str = ""
) -> bool:
    """Fence all writers in one commit, without a Spark job; False if Delta's classes cannot be called."""
    if is_remote(spark):
        return False
    from py4j.protocol import Py4JError, Py4JJavaError

    session: Any = apart(spark)  # its settings and its active session are of this thread alone
    if metadata:
        session.conf.set(commits.METADATA_CONF, metadata)
    try:
        jvm, jsession = session._jvm, session._jsparkSession
        session._get_j_spark_session_class(jvm).setActiveSession(jsession)
        delta = jvm.org.apache.spark.sql.delta
        transaction = delta.DeltaLog.forTable(jsession, path).startTransaction()
        # A commit of one of them that comes between is a conflict.
        last = {app: max(0, transaction.txnVersion(app)) for app in apps}
        nothing = jvm.scala.Option.empty()
        raised = [
            delta.actions.SetTransaction(app, epoch * commits.EPOCH + number % commits.EPOCH, nothing)
            for app, number in last.items()
            if number // commits.EPOCH < epoch
        ]
        operation = getattr(getattr(delta, "DeltaOperations$ManualUpdate$"), "MODULE$")
        actions = jvm.PythonUtils.toSeq(raised)
    except (AttributeError, TypeError, Py4JError) as problem:
        if isinstance(problem, Py4JJavaError):  # of Delta, not of the way to it
            raise
        LOG.warning("tables are fenced by a commit for each writer: %s", problem)
        return False
    if raised:
        transaction.commit(actions, operation)
    return True


def last_number(spark: SparkSession, path: str, app: str) -> int:
    """The highest number of a writer, with its epoch; -1 if it never committed."""
    if not is_remote(spark):
        from py4j.protocol import Py4JError, Py4JJavaError

        session: Any = apart(spark)
        try:
            jvm, jsession = session._jvm, session._jsparkSession
            session._get_j_spark_session_class(jvm).setActiveSession(jsession)
            log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(jsession, path)
            return int(log.startTransaction().txnVersion(app))
        except (AttributeError, TypeError, Py4JError) as problem:
            if isinstance(problem, Py4JJavaError):
                raise
            LOG.warning("numbers of writers are read from the log by Spark: %s", problem)
    return last_numbers(spark, path).get(app, -1)


def last_numbers(spark: SparkSession, path: str) -> dict[str, int]:
    """The highest number of each writer, from the files of the table's log."""
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as F

    found: dict[str, int] = {}
    for form, pattern in LOG_FORMATS:
        try:
            log = spark.read.schema(TXN).format(form).load(f"{path}/_delta_log/{pattern}")
            rows: list[Any] = log.groupBy("txn.appId").agg(F.max("txn.version")).collect()
        except AnalysisException:  # no checkpoint yet
            continue
        for app, number in rows:
            if app is not None:
                found[app] = max(found.get(app, 0), number)
    return found
