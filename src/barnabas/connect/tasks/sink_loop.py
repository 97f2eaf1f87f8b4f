"""The life of a sink task in its thread: poll, convert, transform, put, flush, commit.

In: a task, its chain, a consumer. Out: records handed to the task in the order of each partition, offsets
committed after `flush`. A rebalance waits for flush and commit. Records that `put` refused for the moment
come again; a flush that fails rewinds to what was committed. Does not know: threads, how it was configured.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from threading import Event

from barnabas.client.core.errors import ClientError
from barnabas.client.core.topology import TopicPartition
from barnabas.connect.data import Records
from barnabas.connect.plugins import ConnectError, RetriableError, SinkContext, SinkTask
from barnabas.connect.tasks.auditing import SinkAudit
from barnabas.connect.tasks.chain import Chain
from barnabas.connect.tasks.consuming import COMMIT_S, LAST_COMMIT_S, SinkConsumer
from barnabas.connect.tasks.dead_letters import DeadLetterQueue
from barnabas.connect.tasks.errors import FIRST_DELAY_MS, RawRecord, Stage, Stopped
from barnabas.connect.tasks.polled import Polled
from barnabas.connect.tasks.progress import LastError, Progress
from barnabas.connect.tasks.raw_records import RawRecords
from barnabas.protocol import KafkaError

log = logging.getLogger("barnabas.connect")

POLL_MS = 250
DELAY_MS_MAX = 60_000
LAG_INTERVAL_S = 5.0
SHOWN_MAX = 5


def span(origin: Sequence[RawRecord]) -> str:
    """Describe records for an error: `orders-0 offsets 5 to 9, orders-1 offset 3`."""
    found: dict[tuple[str | None, int | None], list[int]] = {}
    for each in origin:
        found.setdefault((each.topic, each.partition), []).append(each.offset or 0)
    shown = [
        f"{topic}-{partition} offset{f's {min(some)} to' if len(some) > 1 else ''} {max(some)}"
        for (topic, partition), some in list(found.items())[:SHOWN_MAX]
    ]
    return ", ".join(shown) + (" and others" if len(found) > SHOWN_MAX else "")


def pieces(records: Records, count_max: int | None) -> Iterator[Records]:
    """The records in pieces of bounded size."""
    if count_max is None or len(records) <= count_max:
        yield records
        return
    for start in range(0, len(records), count_max):
        yield records.take(range(start, min(start + count_max, len(records))))


class SinkLoop:
    def __init__(
        self,
        task: SinkTask,
        context: SinkContext,
        chain: Chain,
        consumer: SinkConsumer,
        progress: Progress,
        *,
        dead_letters: DeadLetterQueue | None = None,
        flush_interval_ms: int = 60_000,
        used_topic: Callable[[str], None] = lambda topic: None,
        audit: SinkAudit | None = None,
        records_max: int | None = None,
        commit_s: float = COMMIT_S,
        cancelled: Event | None = None,
    ) -> None:
        """`records_max` is how many records one `put` gets; None: as many as came together. After `cancelled`
        is set the task gets no more, and nothing is committed: others have its partitions."""
        self._commit_s = commit_s
        self._cancelled = cancelled or Event()
        self._records_max = records_max
        self._audit = audit
        self._task = task
        self._context = context
        self._chain = chain
        self._consumer = consumer
        self._progress = progress
        self._dead_letters = dead_letters
        self._flush_interval_s = flush_interval_ms / 1000
        self._used_topic = used_topic
        self._open: set[TopicPartition] = set()
        self._delivered: dict[TopicPartition, int] = {}  # behind the last record that `put` took
        self._committed: dict[TopicPartition, int] = {}
        self._flushed: dict[
            TopicPartition, int
        ] = {}  # what the last flush chose: a task may hold records back
        self._began: dict[TopicPartition, int] = {}  # the first record that came
        self._sought: set[TopicPartition] = set()
        self._losses = 0
        self._committed_at = time.monotonic()
        self._looked_at = 0.0
        self._wants_commit = False
        self._retry_ms: int | None = None
        self._origin: RawRecords | None = None  # of the batch that is being put
        context.seek = self._seek
        context.pause = lambda some: consumer.set_paused(list(some), is_paused=True)
        context.resume = lambda some: consumer.set_paused(list(some), is_paused=False)
        context.request_commit = self._request_commit
        context.retry_after_ms = self._retry_after
        context.errant = self._errant

    # -- what a task asks for ------------------------------------------------------------------------

    def _seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._consumer.seek(offsets)
        self._sought.update(offsets)
        for where, offset in offsets.items():
            if where in self._open:
                self._delivered[where] = offset
                self._flushed.pop(where, None)
        if self._audit is not None:
            self._audit.rewound(offsets)

    def _request_commit(self) -> None:
        self._wants_commit = True

    def _retry_after(self, milliseconds: int) -> None:
        self._retry_ms = milliseconds

    def _errant(self, records: Records, indices: Sequence[int], error: BaseException) -> None:
        """Records that the sink cannot write (KIP-610): they follow `errors.tolerance`."""
        name = type(self._task).__qualname__
        for index in indices:
            one = next(iter(records.take([index]).rows()))
            found = None if self._origin is None else self._origin.at(one.partition, one.offset)
            record = found or RawRecord(one.topic, one.partition, one.offset)
            self._chain.errors.failed(record, Stage.TASK_PUT, name, error)

    # -- the loop ------------------------------------------------------------------------------------

    def run(self, stopping: Event, paused: Event) -> None:
        try:
            while not stopping.is_set():
                self._progress.tick()
                self._run_once(stopping, paused)
        except Stopped:
            pass
        except Exception:
            self._commit_before_it_fails()
            raise
        self._give_back()

    def _commit_before_it_fails(self) -> None:
        """Flush, commit and close what was delivered before the error: it need not come again."""
        cause = self._progress.last_error
        try:
            self._give_back()
        except Exception as error:
            log.warning(
                "task %s-%d fails, and its last offsets are not committed: %s",
                self._progress.connector, self._progress.task, error,
            )  # fmt: skip
        self._progress.last_error = cause

    def _run_once(self, stopping: Event, paused: Event) -> None:
        if self._consumer.must_release:
            self._give_back()
            self._consumer.release()
        if paused.is_set():
            if self._delivered != self._committed:
                self.commit()
            self._consumer.set_paused(list(self._consumer.assignment), is_paused=True)
            # It stays a member of the group. Partitions that came just now were not paused yet.
            self._consumer.seek({each.where: each.first for each in self._poll()})
            self._follow_assignment(stopping)
            if not paused.is_set():
                self._consumer.set_paused(list(self._consumer.assignment), is_paused=False)
            return
        polled = self._poll()
        self._sought.clear()
        self._follow_assignment(stopping)
        self._begin_topics_anew()
        # A task may seek when it opens: it does not want records that were fetched before that.
        wanted = self._open - self._sought
        mine = [each for each in polled if each.where in wanted]
        # The task did not open them in time: they must not be passed over if they stay here.
        self._consumer.seek({each.where: each.first for each in polled if each.where not in self._open})
        if mine:
            self._deliver(mine, stopping)
        now = time.monotonic()
        if self._wants_commit or now - self._committed_at >= self._flush_interval_s:
            self.commit()
        if now - self._looked_at >= LAG_INTERVAL_S:
            self._measure_lag(now)

    def _poll(self) -> list[Polled]:
        try:
            return self._consumer.poll(POLL_MS)
        except KafkaError as error:
            if not error.code.retriable:
                raise
            # A topic that was deleted, or a broker that is away: the next rebalance or metadata tell more.
            log.warning("task %s-%d: %s", self._progress.connector, self._progress.task, error)
            self._note(error, Stage.KAFKA_CONSUME)
        except (ClientError, TimeoutError) as error:
            log.warning("task %s-%d: %s", self._progress.connector, self._progress.task, error)
            self._note(error, Stage.KAFKA_CONSUME)
        time.sleep(POLL_MS / 1000)
        return []

    def _note(self, error: BaseException, stage: Stage, first: RawRecord | None = None) -> None:
        where = (None, None, None) if first is None else (first.topic, first.partition, first.offset)
        self._progress.last_error = LastError(str(error), stage, int(time.time() * 1000), *where)

    def _follow_assignment(self, stopping: Event) -> None:
        losses = self._consumer.losses
        now = set(self._consumer.assignment)
        # Others may have had all partitions in between: what the task still holds of them is old.
        gone = self._open - now if losses == self._losses else set(self._open)
        self._losses = losses
        if gone:
            self._close(gone)
        new = now - self._open
        if new:
            self._open |= new
            self._context.assignment = set(self._open)
            for where, offset in self._consumer.committed(sorted(new)).items():
                self._committed[where] = self._delivered[where] = offset
            self._open_task(sorted(new), stopping)
        self._progress.partitions = len(self._open)

    def _begin_topics_anew(self) -> None:
        """A topic that was deleted and made again begins at 0: offsets of the one before mean nothing."""
        anew = [each for each in self._consumer.made_anew() if each in self._open]
        if not anew:
            return
        log.warning(
            "task %s-%d: topics were deleted and made again, and are read from their beginning: %s",
            self._progress.connector, self._progress.task, ", ".join(sorted({each.topic for each in anew})),
        )  # fmt: skip
        self.commit()
        self._seek(dict.fromkeys(anew, 0))
        for where in anew:
            self._began[where] = 0

    def _open_task(self, new: list[TopicPartition], stopping: Event) -> None:
        """Open partitions; a system that is away is asked again, until a rebalance takes them."""
        delay_ms = FIRST_DELAY_MS
        while True:
            try:
                return self._task.open(new)
            except RetriableError as error:
                self._progress.retries += 1
                self._note(error, Stage.TASK_PUT)
                log.warning(
                    "task %s-%d opens %d partitions again in %d ms: %s",
                    self._progress.connector, self._progress.task, len(new), delay_ms, error,
                )  # fmt: skip
            is_stopped = stopping.wait(delay_ms / 1000)
            if is_stopped or self._consumer.must_release:
                self._open -= set(new)  # nothing was put: there is nothing to flush or to commit
                self._context.assignment = set(self._open)
                for where in new:
                    self._delivered.pop(where, None)
                    self._committed.pop(where, None)
                if is_stopped:
                    raise Stopped from None
                return None
            delay_ms = min(delay_ms * 2, DELAY_MS_MAX)

    def _deliver(self, polled: list[Polled], stopping: Event) -> None:
        count = sum(len(each.raw) for each in polled)
        self._progress.records_in += count
        if count:
            self._progress.batches.add(count)
        grouped: dict[str, list[Polled]] = {}
        for each in polled:
            self._began.setdefault(each.where, each.first)
            grouped.setdefault(each.where.topic, []).append(each)
        shows = self._chain.errors.settings.logs_messages
        for topic, some in grouped.items():
            raw = RawRecords.joined(topic, [each.raw for each in some], shows=shows)
            if not len(raw):  # markers of transactions alone
                self._note_delivered(some)
                continue
            if topic not in self._progress.topics:
                self._progress.topics.add(topic)
                self._used_topic(topic)
            for records, origin in self._chain.decoded(topic, raw):
                for part in self._chain.transformed(records, origin):
                    for piece in pieces(part, self._records_max):
                        if not self._put(piece, origin, stopping):
                            return  # a rebalance took the partitions away: others read these records again
            self._note_delivered(some)
        self._progress.in_flight += count

    def _note_delivered(self, some: list[Polled]) -> None:
        self._delivered.update({each.where: each.next_offset for each in some})
        if self._audit is not None:
            self._audit.delivered(some)

    def _put(self, records: Records, origin: RawRecords, stopping: Event) -> bool:
        """Hand records over until the task takes them. False: it must let go of its partitions first."""
        delay_ms = FIRST_DELAY_MS
        self._origin = origin
        while True:
            self._check_cancelled()
            started = time.monotonic()
            try:
                self._task.put(records)
            except RetriableError as error:
                self._progress.retries += 1
                self._note(error, Stage.TASK_PUT, origin[0] if origin else None)
                wait_ms = delay_ms if self._retry_ms is None else self._retry_ms
                self._retry_ms = None
                log.warning(
                    "task %s-%d puts %d records again in %d ms: %s",
                    self._progress.connector, self._progress.task, len(records), wait_ms, error,
                )  # fmt: skip
                if stopping.wait(wait_ms / 1000):
                    raise Stopped from None
                if self._consumer.must_release:
                    return False
                delay_ms = min(delay_ms * 2, DELAY_MS_MAX)
                continue
            except Stopped:
                raise
            except Exception as error:
                if isinstance(error.__cause__, Exception) and isinstance(error, ConnectError):
                    raise  # a single record that the task reported: the error names it
                self._note(error, Stage.TASK_PUT, origin[0] if origin else None)
                raise ConnectError(f"put failed on {span(origin)}: {error}") from error
            self._progress.call_ms.add((time.monotonic() - started) * 1000)
            self._progress.records_out += len(records)
            return True

    # -- commits -------------------------------------------------------------------------------------

    def _check_cancelled(self) -> None:
        if self._cancelled.is_set():
            raise Stopped

    def commit(self, timeout_s: float | None = None) -> bool:
        """Flush the task, then commit. A flush that fails rewinds: the records since come again."""
        self._check_cancelled()
        self._committed_at = time.monotonic()
        self._wants_commit = False
        offsets = {where: offset for where, offset in self._delivered.items() if where in self._open}
        if self._dead_letters is not None:
            self._dead_letters.flush()
        started = time.monotonic()
        try:
            chosen = self._task.flush(offsets)
        except Exception as error:
            self._progress.commit_failures += 1
            self._note(error, Stage.TASK_PUT)
            log.exception("task %s-%d: flush failed", self._progress.connector, self._progress.task)
            self._rewind()
            return False
        wanted = offsets if chosen is None else {w: o for w, o in chosen.items() if w in self._open}
        self._flushed.update(wanted)
        changed = {where: offset for where, offset in wanted.items() if self._committed.get(where) != offset}
        if not changed:
            self._progress.commits_skipped += 1
            return True
        if self._audit is not None:
            self._audit.flushed(changed, self._consumer.topic_ids())
        try:
            self._consumer.commit(changed, self._commit_s if timeout_s is None else timeout_s)
        except (KafkaError, ClientError, TimeoutError) as error:
            self._progress.commit_failures += 1
            self._note(
                error if str(error) else TimeoutError("no response to a commit in time"), Stage.KAFKA_CONSUME
            )
            log.warning(
                "task %s-%d: offsets are not committed: %s",
                self._progress.connector, self._progress.task, error,
            )  # fmt: skip
            return False
        self._committed.update(changed)
        self._progress.commits += 1
        self._progress.in_flight = 0
        self._progress.commit_ms.add((time.monotonic() - started) * 1000)
        return True

    def _rewind(self) -> None:
        """Go back to what is committed, or to where reading began if nothing ever was."""
        back = {
            where: self._committed.get(where, self._began.get(where, at))
            for where, at in self._delivered.items()
        }
        self._consumer.seek(back)
        self._delivered = back
        self._flushed.clear()
        if self._audit is not None:
            self._audit.rewound(back)

    def _give_back(self) -> None:
        """Flush, commit and close all partitions. They may stay with this member, which keeps its positions:
        each goes on behind what was flushed, because `close` drops what the task held back."""
        if not self._open:
            return
        self.commit(min(LAST_COMMIT_S, self._commit_s))
        starts = {where: self._start_of(where) for where in self._open}
        behind = {
            where: start
            for where, start in starts.items()
            if start is not None and self._consumer.position(where) != start
        }
        if behind:
            self._consumer.seek(behind)
        self._close(set(self._open))

    def _start_of(self, where: TopicPartition) -> int | None:
        """The offset at which the next owner of a partition begins; None: no record came, no offset."""
        for known in (self._flushed, self._committed, self._began):
            if where in known:
                return known[where]
        return None

    def _close(self, partitions: Iterable[TopicPartition]) -> None:
        gone = sorted(partitions)
        self._open -= set(gone)
        self._context.assignment = set(self._open)
        self._task.close(gone)
        if self._audit is not None:
            self._audit.forget(gone)
        for where in gone:
            for known in (self._delivered, self._committed, self._flushed, self._began):
                known.pop(where, None)

    def _measure_lag(self, now: float) -> None:
        self._looked_at = now
        try:
            ends = self._consumer.ends(sorted(self._open))
        except (KafkaError, ClientError, TimeoutError):
            return
        lags = [end - self._delivered[where] for where, end in ends.items() if where in self._delivered]
        self._progress.lag = max(0, *lags) if lags else 0
