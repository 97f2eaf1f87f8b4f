"""The audit of one source's zones: batches are counted behind the pipeline, each exactly once.

In: batches whose commits are done, rows that were duplicates. Out: count messages, one range for each batch
(decision 0058). A thread counts the batches that came since the last time, every ten seconds. How far it got
is in raw's commits: after a crash the batches behind that are counted again, with the same ranges. If brokers
of the audit topic are away, batches wait in the lake, and the pipeline goes on.
Does not know: how rows are judged and written.
"""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING

from barnabas.audit.counters.audit_counter import AuditSettings
from barnabas.audit.counters.audit_topic import AUDIT_TOPIC
from barnabas.audit.lake.frames import Columns, grouped, in_thread, messages_of, send
from barnabas.engine.errors import brief
from barnabas.engine.session import apart
from barnabas.pipeline.ingest.audit_mark import AuditMark, Duplicates, WaitingDuplicates
from barnabas.pipeline.ingest.zone_counts import groups_of
from barnabas.pipeline.lake.columns import RAW_PREFIX
from barnabas.pipeline.lake.tables import TableName, Zone
from barnabas.pipeline.sources.topic import client_id_of, options_of
from barnabas.pipeline.spec.model import Pipeline, TopicSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

INTERVAL_S = 10.0
BATCHES_AT_ONCE = 200  # one job of Spark
DUPLICATES_MAX = 10_000  # groups that wait to be counted: so many fit raw's commit
PARSED = Columns(*(f"{RAW_PREFIX}{name}" for name in ("topic", "partition", "timestamp", "batch")))
LOG = logging.getLogger(__name__)


def zone_audit(spark: SparkSession, pipeline: Pipeline, name: str) -> ZoneAudit | None:
    """Make the audit of a source; None where the pipeline does not count, and for sources that are no
    topics."""
    source = pipeline.source(name)
    if not pipeline.audit.is_enabled or not isinstance(source, TopicSource):
        return None
    return ZoneAudit(spark, pipeline, source)


class ZoneAudit:
    """One thread for the tables of one source."""

    def __init__(self, spark: SparkSession, pipeline: Pipeline, source: TopicSource) -> None:
        self._spark = apart(spark)
        self._spark.conf.set("spark.sql.shuffle.partitions", "1")  # sums of few groups
        self._pipeline = pipeline
        self._source = source
        self._width_ms = int(pipeline.audit.bucket_s * 1000)
        self._mutex = threading.Lock()
        self._counted: int | None = None  # the last batch whose counts are stored
        self._complete = 0  # the last batch that all zones have
        self._duplicates = WaitingDuplicates(DUPLICATES_MAX)
        self._counted_at = time.monotonic()
        self._has_failed = False  # the last time
        self._has_lost = False  # duplicates, since the last time that succeeded
        self._stream = ""
        self._under_way: Future[None] | None = None
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="audit")

    # -- what the pipeline tells -------------------------------------------------------------------

    def begin(self, batch: int, mark: AuditMark | None) -> None:
        """Go on behind the mark of the last commit; without one, behind that commit."""
        with self._mutex:
            if self._counted is not None:
                return
            self._counted = batch if mark is None else mark.counted
            self._complete = self._counted
            self._duplicates.add(mark.duplicates if mark is not None else ())

    def duplicates(self, batch: int, staging: str, rows: DataFrame) -> None:
        """Rows of the batch, as they were parsed, that the staging table does not get."""
        found = grouped(rows, self._width_ms, PARSED).collect()
        groups = [
            Duplicates(batch, staging, row["topic"], row["partition"], row["bucket"], row["rows"])
            for row in found
        ]
        with self._mutex:
            self._duplicates.drop(batch, staging)  # the batch is judged again
            dropped = self._duplicates.add(groups)
            is_new, self._has_lost = dropped > 0 and not self._has_lost, self._has_lost or dropped > 0
        if is_new:
            LOG.warning(
                "%s: more than %d groups of duplicates wait for the audit: the oldest are dropped, and the"
                " audit will miss their rows",
                self._source.name,
                DUPLICATES_MAX,
            )

    def complete(self, batch: int) -> None:
        """All zones have the batch."""
        with self._mutex:
            self._complete = max(self._complete, batch)

    def mark(self) -> AuditMark:
        """The mark for raw's next commit."""
        with self._mutex:
            return AuditMark(self._counted or 0, self._duplicates.groups)

    # -- counting ----------------------------------------------------------------------------------

    def count_if_due(self) -> None:
        """Count in the background if the last time is long ago, or many duplicates wait."""
        with self._mutex:
            is_due = time.monotonic() - self._counted_at >= INTERVAL_S
            is_full = len(self._duplicates.groups) > DUPLICATES_MAX // 2
            is_due = is_due or (is_full and not self._has_failed)
            if not is_due or self._complete <= (self._counted or 0):
                return
            if self._under_way is not None and not self._under_way.done():
                return
            self._counted_at = time.monotonic()
            self._under_way = self._pool.submit(self._count)

    def count(self) -> None:
        """Count all batches that are complete, and wait for it."""
        with self._mutex:
            self._under_way = self._pool.submit(self._count)
        wait([self._under_way])

    def _count(self) -> None:
        try:
            while True:
                with self._mutex:
                    first = (self._counted or 0) + 1
                    end = min(self._complete + 1, first + BATCHES_AT_ONCE)
                    duplicates = list(self._duplicates.groups)
                if first >= end:
                    return
                self._count_batches(first, end, duplicates)
                with self._mutex:
                    self._counted = end - 1
                    self._duplicates.drop_before(end)
                    self._has_failed = self._has_lost = False
        except Exception as problem:  # the next time comes
            with self._mutex:
                self._has_failed = True
            LOG.warning(
                "batches of %s cannot be counted for the audit: %s. They wait",
                self._source.name,
                brief(problem),
            )

    def _count_batches(self, first: int, end: int, duplicates: list[Duplicates]) -> None:
        settings = self._settings()
        groups = groups_of(
            self._spark, self._pipeline, self._source, (first, end), duplicates, settings.width_ms
        )
        stream = self._stream_name()
        now_ms = int(time.time() * 1000)
        messages = [
            message
            for tier, found in groups.items()
            for message in messages_of(found, settings, tier, f"{stream}/{tier.rpartition('/')[2]}", now_ms)
        ]
        if messages:
            in_thread(send(settings, messages))

    def _settings(self) -> AuditSettings:
        """The brokers and the login of the source."""
        client_id = client_id_of(self._pipeline.name, self._source.name)
        client = options_of(self._source, client_id).client
        return AuditSettings(
            client.bootstrap_servers,
            self._pipeline.audit.topic or AUDIT_TOPIC,
            width_ms=self._width_ms,
            application=client_id,
            security=client.client_security(),
        )

    def _stream_name(self) -> str:
        """The identity of the raw table: another lake with the same names has other batches."""
        if not self._stream:
            raw = self._pipeline.lake_location.identifier(TableName(Zone.RAW, self._source.name))
            row = self._spark.sql(f"DESCRIBE DETAIL {raw}").first()
            assert row is not None
            self._stream = str(row["id"])
        return self._stream
