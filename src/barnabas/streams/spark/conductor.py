"""The conductor: finds out which queries have new records, and runs their batches on Spark.

In: queries (a sub-topology of an application each). Out: batches, side by side, each query's one after the
other. One question to the brokers asks for the ends of all topics of all queries, so a query without news
costs nothing. A query that fails stops alone. Does not know: what queries compute.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from barnabas.client.admin.offsets import OffsetAdmin
from barnabas.client.blocking import run
from barnabas.client.core.errors import ClientError
from barnabas.client.core.topology import TopicPartition
from barnabas.client.core.transaction import Fenced
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.spark.basics.cluster import WorkerCluster
from barnabas.spark.basics.settings import ClientSettings
from barnabas.spark.planning import limited
from barnabas.spark.reading.fetcher import EARLIEST, LATEST, OffsetRange
from barnabas.streams.spark.jobs import PickledLogic, SparkJobs
from barnabas.streams.spark.pace import Pace
from barnabas.streams.spark.purging import PURGE_S, Purge
from barnabas.streams.spark.starting import commit_positions, start_positions
from barnabas.streams.spark.task_metrics import TaskMetrics
from barnabas.streams.spark.task_port import TaskBatch, TaskId, TaskResult, TaskSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POLL_S = 0.05
RECORDS_MAX = 1_000_000  # of a query's batch; it has fewer when they are slow, or their bytes are many
JOBS_MAX = 8
WITHOUT_TOPIC_S = 2.0  # brokers may need a moment to know a topic
BEHIND_S = 5.0  # a new leader may need a moment to know its high watermark
Launch = Callable[[TaskSettings, PickledLogic, Sequence[TaskBatch]], list[TaskResult]]
log = logging.getLogger("barnabas.streams")


@dataclass
class Query:
    """One sub-topology: its topics with their partitions, its logic, and where it stands.

    `resets` says where a topic begins that the group has committed nothing of: EARLIEST or LATEST. `timers`
    has the time at which a task wants to run without records, `purged` the topics whose committed records
    may be deleted."""

    settings: TaskSettings
    number: int
    topics: Mapping[str, int]
    logic: PickledLogic
    resets: Mapping[str, int] = field(default_factory=dict)
    records_max: int = RECORDS_MAX
    positions: dict[TopicPartition, int] = field(default_factory=dict)
    added: frozenset[TopicPartition] = frozenset()  # to its topics while it ran: read from their first record
    mismatch: str | None = None  # why it cannot run with the partitions that its topics have now
    error: str | None = None
    needs_new_process: bool = False  # another one has taken over, or Spark did not run the job
    is_stopped_by_handler: bool = False  # a record failed, and its handler said so
    records: int = 0
    outputs: int = 0
    batches: int = 0
    timers: dict[int, int] = field(default_factory=dict)
    purged: frozenset[str] = frozenset()
    metrics: TaskMetrics = field(default_factory=TaskMetrics)
    missing_since: float | None = None  # a topic
    behind_since: dict[TopicPartition, float] = field(default_factory=dict)
    pace: Pace = field(init=False)

    def __post_init__(self) -> None:
        self.pace = Pace(self.records_max)

    @property
    def name(self) -> str:
        return f"{self.settings.application_id}-{self.number}"

    @property
    def places(self) -> list[TopicPartition]:
        return [TopicPartition(topic, each) for topic, count in self.topics.items() for each in range(count)]

    def succeed(self, old: Query) -> None:
        """Take the place of a query whose topics had fewer partitions."""
        self.added = old.added | grown(old.topics, self.topics)
        self.records, self.outputs, self.batches = old.records, old.outputs, old.batches
        self.metrics, self.pace = old.metrics, old.pace

    def due(self, ends: Mapping[TopicPartition, int], now_ms: int = -1) -> list[TaskBatch]:
        """Batches of the tasks that have new records or a timer that is due; a task's ranges name all its
        partitions."""
        mine = {place: max(ends.get(place, at), at) for place, at in self.positions.items()}
        stops = limited(self.positions, mine, self.pace.limit)
        by_task: dict[int, list[OffsetRange]] = {}
        for place in sorted(self.positions):
            asked = OffsetRange(place.topic, b"", place.partition, self.positions[place], stops[place])
            by_task.setdefault(place.partition, []).append(asked)
        ticks = {task for task, time_ms in self.timers.items() if time_ms <= now_ms}
        due = {
            task: ranges
            for task, ranges in by_task.items()
            if task in ticks or any(each.stop > each.start for each in ranges)
        }
        share = self.pace.limit // max(1, len(due))
        return [
            TaskBatch(
                TaskId(self.number, task),
                tuple(ranges),
                task in ticks,
                max(share, sum(each.stop - each.start for each in ranges)),
            )
            for task, ranges in due.items()
        ]

    def look_for_lost(self, ends: Mapping[TopicPartition, int], now: float) -> list[TopicPartition]:
        """Partitions that have ended before the query's position for some seconds: their topic was made again
        or truncated."""
        for place, at in self.positions.items():
            if ends.get(place, at) < at:
                self.behind_since.setdefault(place, now)
            else:
                self.behind_since.pop(place, None)
        return [place for place, since in self.behind_since.items() if now - since > BEHIND_S]

    def apply(self, results: list[TaskResult]) -> None:
        """Bring position, counts, timers and error up to date after a batch."""
        seconds = max((result.seconds for result in results), default=0.0)
        self.pace.batch_ended(sum(result.records for result in results), seconds)
        for result in results:
            if result.error is not None:
                self.error = self.error or result.error
                self.needs_new_process |= result.is_fenced
                self.is_stopped_by_handler |= result.is_stopped_by_handler
            for (topic, partition), offset in result.positions.items():
                self.positions[TopicPartition(topic, partition)] = offset
            self.records += result.records
            self.outputs += result.outputs
            self.metrics.add(result)
            if result.counts.timer_ms is not None:
                self.timers[result.task.partition] = result.counts.timer_ms
            elif result.error is None:
                self.timers.pop(result.task.partition, None)
        self.batches += 1


def grown(old: Mapping[str, int], new: Mapping[str, int]) -> frozenset[TopicPartition]:
    """Partitions that topics have got since."""
    return frozenset(
        TopicPartition(topic, each)
        for topic, count in new.items()
        if topic in old
        for each in range(old[topic], count)
    )


class Conductor:
    def __init__(
        self,
        spark: SparkSession,
        client: ClientSettings,
        *,
        poll_s: float = POLL_S,
        purge_s: float = PURGE_S,
        launch: Launch | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Batches run as jobs of Spark, unless `launch` runs them elsewhere."""
        self._launch: Launch = launch or SparkJobs(spark)
        self._cluster = WorkerCluster(client)
        self._poll_s, self._clock = poll_s, clock
        self._purge = Purge(self._cluster, purge_s)
        self._queries: dict[str, Query] = {}
        self._running: dict[str, tuple[Query, Future[list[TaskResult]]]] = {}
        self._jobs = ThreadPoolExecutor(JOBS_MAX, "streams-job")
        self._news = threading.Event()
        self._lock = threading.Lock()

    @property
    def queries(self) -> list[Query]:
        with self._lock:
            return list(self._queries.values())

    def add(self, query: Query) -> None:
        """Start a query where its group stands."""
        query.positions = start_positions(
            self._cluster, query.settings, query.number, query.places, query.resets, query.added
        )
        query.behind_since.clear()
        with self._lock:
            self._queries[query.name] = query
        self._news.set()

    def restart(self, query: Query) -> None:
        """Let a query that failed go on where its group stands; it stays failed if brokers do not answer."""
        if query.mismatch is not None:
            raise KafkaError(ErrorCode.INVALID_PARTITIONS, query.mismatch)
        self.add(query)
        query.error, query.missing_since = None, None
        query.is_stopped_by_handler = False
        self._news.set()

    def remove(self, name: str) -> Future[list[TaskResult]] | None:
        """Stop a query. Its batch under way ends by itself, and is given; a query of the same name begins
        after it."""
        with self._lock:
            self._queries.pop(name, None)
        _, future = self._running.get(name, (None, None))
        return future

    def run(self, is_stopping: Callable[[], bool], after_round: Callable[[], None] = lambda: None) -> None:
        """Run batches until it is time to stop; batches under way end first."""
        try:
            while not is_stopping():
                self.run_round()
                after_round()
                self.wait()
        finally:
            self._jobs.shutdown(wait=True)
            self._collect()

    def wait(self) -> None:
        """Wait until a batch ends, somebody calls `wake`, or it is time to ask brokers again."""
        self._news.wait(self._poll_s)
        self._news.clear()

    def wake(self) -> None:
        self._news.set()

    def run_round(self) -> bool:
        """Start batches of all queries that have news and no batch under way; whether there were any."""
        self._collect()
        waiting = [query for query in self.queries if query.error is None and query.name not in self._running]
        wanted = {place: LATEST for query in waiting for place in query.positions}
        if not wanted:
            return bool(self._running)
        ends, missing, refused = self._ends(wanted)
        self._purge.run_if_due(
            {
                place: at
                for query in waiting
                for place, at in query.positions.items()
                if place.topic in query.purged
            }
        )
        now_ms = int(time.time() * 1000)
        for query in waiting:
            query.metrics.measure_lag(ends, query.positions)
            batches = query.due(ends, now_ms) if self._can_run(query, ends, missing, refused) else []
            if batches:
                future = self._jobs.submit(self._launch, query.settings, query.logic, batches)
                self._running[query.name] = query, future
                future.add_done_callback(lambda _: self._news.set())
        return bool(self._running)

    def _ends(
        self, wanted: Mapping[TopicPartition, int]
    ) -> tuple[dict[TopicPartition, int], set[str], dict[str, str]]:
        """The ends of partitions whose leaders answer, topics that brokers do not know, and the errors of
        topics that brokers refuse."""
        question = OffsetAdmin(self._cluster).list_offsets(
            wanted, read_committed=self._cluster.client.is_read_committed, timeout_ms=0
        )
        ends: dict[TopicPartition, int] = {}
        missing: set[str] = set()
        refused: dict[str, str] = {}
        for place, found in run(question).items():
            if not isinstance(found, KafkaError):
                ends[place] = found.offset
            elif found.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                missing.add(place.topic)
            elif not found.code.retriable:
                refused[place.topic] = f"offsets of {place}: {found.code.name}: {found.message}"
        return ends, missing, refused

    def _can_run(
        self,
        query: Query,
        ends: Mapping[TopicPartition, int],
        missing: set[str],
        refused: Mapping[str, str],
    ) -> bool:
        """Whether the topics of a query can be read. What prevents it is an error of this query only."""
        if denied := sorted(refused.keys() & query.topics.keys()):
            query.error = refused[denied[0]]
            return False
        if not self._has_topics(query, missing):
            return False
        lost = query.look_for_lost(ends, self._clock())
        return not lost or self._begin_again(query, ends, lost)

    def _begin_again(
        self, query: Query, ends: Mapping[TopicPartition, int], lost: list[TopicPartition]
    ) -> bool:
        """Read topics that were made again or truncated from where their reset policy says, or fail."""
        first = lost[0]
        text = (
            f"{first} ends at offset {ends[first]}, committed is {query.positions[first]}: the topic was made"
            " again or truncated"
        )
        if query.settings.fails_on_loss:
            query.error = f"{text}. Reset the application, or set its offsets with streams-reset"
            return False
        log.warning("query %s: %s; it begins again by the reset policy", query.name, text)
        try:
            begins = self._cluster.offsets({place: query.resets.get(place.topic, EARLIEST) for place in lost})
            query.positions |= commit_positions(
                self._cluster, query.settings, query.number, begins, query.places, replaces=True
            )
        except (KafkaError, ClientError, Fenced, OSError) as error:
            query.error = f"{text}, and its offsets could not be set: {error}"
            return False
        query.behind_since.clear()
        return True

    def _has_topics(self, query: Query, missing: set[str]) -> bool:
        """Whether brokers know the topics of a query. One whose topic stays away fails, the others go on."""
        gone = sorted(missing & set(query.topics))
        if not gone:
            query.missing_since = None
        elif query.missing_since is None:
            query.missing_since = self._clock()
        elif self._clock() - query.missing_since > WITHOUT_TOPIC_S:
            query.error = f"the topic {gone[0]} does not exist any more"
        return not gone

    def run_until_idle(self, seconds_max: float) -> None:
        """Run batches until no query has news: for tests and finite inputs."""
        deadline = time.monotonic() + seconds_max
        while self.run_round() and time.monotonic() < deadline:
            self._news.wait(self._poll_s)
            self._news.clear()

    def _collect(self) -> None:
        for name, (query, future) in list(self._running.items()):
            if future.done():
                del self._running[name]
                if self._queries.get(name) is not query:
                    continue
                error = future.exception()
                if error is not None:
                    query.error, query.needs_new_process = str(error), True
                else:
                    query.apply(future.result())

    def close(self) -> None:
        self._jobs.shutdown(wait=True)
        run(self._cluster.close())
