"""The life of a source task in its thread: poll, transform, convert, produce, store offsets, commit.

In: a task, its chain, a producer, an offset store. Out: records in topics, then their offsets: at least once,
or exactly once with a transactional producer, where records and offsets are one transaction. Does not know:
threads, how it was configured.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Event
from typing import Any

from barnabas.connect.data import Records
from barnabas.connect.plugins import RetriableError, SourceTask
from barnabas.connect.tasks.auditing import SourceAudit
from barnabas.connect.tasks.chain import Chain
from barnabas.connect.tasks.errors import FIRST_DELAY_MS, Stage, Stopped
from barnabas.connect.tasks.offsets import OffsetStore, canonical
from barnabas.connect.tasks.producing import TaskProducer
from barnabas.connect.tasks.progress import LastError, Progress

log = logging.getLogger("barnabas.connect")

SMALL = 2000  # records of a poll that are sent at once, so that slow sources are seen without delay
DELAY_MS_MAX = 60_000
PAUSE_S = 0.2
LAST_FLUSH_MS = 5_000  # of a task that fails, unless offset.flush.timeout.ms says otherwise


@dataclass(frozen=True, slots=True)
class Boundary:
    """The boundary of transactions: `poll`, `interval` or `connector`."""

    kind: str = "poll"
    interval_ms: int = 60_000

    @classmethod
    def of(cls, worker: Mapping[str, str], config: Mapping[str, str]) -> Boundary:
        interval = config.get("transaction.boundary.interval.ms") or worker.get(
            "offset.flush.interval.ms", "60000"
        )
        return cls(config.get("transaction.boundary", "poll").strip().lower(), int(interval))


class Transactions:
    """The commits and aborts that the task asked for in this poll (`transaction.boundary=connector`)."""

    def __init__(self) -> None:
        self.commits = False
        self.aborts = False

    def commit(self) -> None:
        self.commits = True

    def abort(self) -> None:
        self.aborts = True


class SourceLoop:
    def __init__(
        self,
        task: SourceTask,
        chain: Chain,
        producer: TaskProducer,
        store: OffsetStore,
        progress: Progress,
        *,
        flush_interval_ms: int = 60_000,
        flush_timeout_ms: int = LAST_FLUSH_MS,
        boundary: Boundary | None = None,
        transactions: Transactions | None = None,
        used_topic: Callable[[str], None] = lambda topic: None,
        audit: SourceAudit | None = None,
    ) -> None:
        """A boundary makes it exactly once; the producer is transactional then."""
        self._task = task
        self._chain = chain
        self._producer = producer
        self._store = store
        self._progress = progress
        self._flush_timeout_ms = flush_timeout_ms
        self._flush_interval_s = flush_interval_ms / 1000
        self._boundary = boundary
        self._transactions = transactions or Transactions()
        self._used_topic = used_topic
        self._audit = audit
        self._pending: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
        self._uncommitted = 0  # records since the last commit
        self._committed_at = time.monotonic()
        self._delay_ms = FIRST_DELAY_MS

    def run(self, stopping: Event, paused: Event) -> None:
        """Poll and produce until `stopping` is set; then commit what was produced."""
        while not stopping.is_set():
            self._progress.tick()
            if paused.is_set():
                if self._pending or self._uncommitted:
                    self.commit()
                stopping.wait(PAUSE_S)
                continue
            try:
                self._run_once(stopping)
            except Stopped:
                break
            except Exception:
                self._commit_before_it_fails()
                raise
        with contextlib.suppress(Stopped):
            if self._boundary is not None and self._boundary.kind == "connector":
                self._abort()  # the task did not say that its transaction is complete
            else:
                self.commit()

    def _run_once(self, stopping: Event) -> None:
        records = self._poll(stopping)
        if records is not None and (len(records) or records.positions):
            self._write(records)
        is_small = records is None or len(records) < SMALL
        if self._boundary is not None:
            self._end_transaction()
        else:
            if is_small and self._uncommitted:
                self._producer.flush()
                if self._audit is not None:
                    self._audit.settled()
            if time.monotonic() - self._committed_at >= self._flush_interval_s:
                self.commit()

    def _commit_before_it_fails(self) -> None:
        """Store the offsets of records that were written before the error: these need not come again. A
        transaction is aborted instead, and after records that could not be written no offset may count."""
        if self._boundary is not None or self._producer.has_failed:
            return
        try:
            self._producer.flush(self._flush_timeout_ms)
            self.commit()
        except Exception as error:
            log.warning(
                "task %s-%d fails, and its last offsets are not committed: %s",
                self._progress.connector, self._progress.task, error,
            )  # fmt: skip

    def _poll(self, stopping: Event) -> Records | None:
        started = time.monotonic()
        try:
            records = self._task.poll()
        except RetriableError as error:
            progress = self._progress
            progress.retries += 1
            progress.last_error = LastError(str(error), Stage.TASK_POLL, int(time.time() * 1000))
            log.warning(
                "task %s-%d polls again in %d ms: %s",
                progress.connector, progress.task, self._delay_ms, error,
            )  # fmt: skip
            stopping.wait(self._delay_ms / 1000)
            self._delay_ms = min(self._delay_ms * 2, DELAY_MS_MAX)
            return None
        self._delay_ms = FIRST_DELAY_MS
        if records is not None:
            self._progress.call_ms.add((time.monotonic() - started) * 1000)
            self._progress.batches.add(len(records))
            self._progress.records_in += len(records)
        return records

    def _write(self, records: Records) -> None:
        for part in self._chain.transformed(records):
            for table in self._chain.encoded(part):
                topic = table.column("topic")[0].as_py() if table.num_rows else None
                if topic is not None and topic not in self._progress.topics:
                    self._progress.topics.add(topic)
                    self._used_topic(topic)
                self._progress.records_out += self._producer.write([table])
        for partition, offset in records.positions:
            self._pending[canonical(partition)] = (dict(partition), dict(offset))
        self._uncommitted += len(records)
        self._progress.in_flight = self._uncommitted

    def _abort(self) -> None:
        self._producer.abort()
        if self._audit is not None:
            self._audit.settled(is_aborted=True)

    def _end_transaction(self) -> None:
        assert self._boundary is not None
        kind, asked = self._boundary.kind, self._transactions
        if kind == "connector":
            if asked.aborts:
                asked.aborts = asked.commits = False
                # The offsets count although the records do not: the source went on behind them.
                self._abort()
                self._uncommitted = 0
                self.commit()
            elif asked.commits:
                asked.commits = False
                self.commit()
        elif kind == "poll" or time.monotonic() - self._committed_at >= self._boundary.interval_ms / 1000:
            self.commit()

    def commit(self) -> None:
        """Make everything durable that was produced, then its offsets; in one transaction if it is one."""
        self._committed_at = time.monotonic()
        positions = list(self._pending.values())
        if not positions and not self._uncommitted:
            return
        started = time.monotonic()
        try:
            if self._boundary is None:
                self._producer.flush()  # offsets must never be ahead of their records
            if positions and self._store.topic is not None:
                self._producer.write([self._store.table(positions)])
            self._producer.commit()
            if self._audit is not None:
                self._audit.settled()
            self._store.save(positions)
        except BaseException:
            self._progress.commit_failures += 1
            raise
        self._progress.commits += 1
        self._progress.commit_ms.add((time.monotonic() - started) * 1000)
        if self._boundary is not None:
            self._progress.transactions.add(self._uncommitted)
        self._pending.clear()
        self._uncommitted = self._progress.in_flight = 0
        self._task.commit(positions)
