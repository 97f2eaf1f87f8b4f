"""The runner: one thread, one session of Spark, one conductor for all persistent queries of this node.

In: queries to start, pause, stop. Out: they run; each has its own group, state and errors. The thread takes
the application's lease before it starts anything, so that two nodes never run the same queries. Brokers that
are away are waited for. Does not know: statements, HTTP.
"""

from __future__ import annotations

import logging
import queue
import shutil
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

from barnabas.client.blocking import run
from barnabas.client.core.errors import ClientError
from barnabas.client.core.topology import TopicPartition
from barnabas.engine.applications import lease_of, own_lock
from barnabas.engine.lease import Timing
from barnabas.engine.lock import LakeIsBusy, LakeLock
from barnabas.engine.places.place import place_at
from barnabas.engine.session import close, session
from barnabas.engine.spark_settings import SparkSettings
from barnabas.plans.plan import PlanError
from barnabas.protocol import KafkaError
from barnabas.spark import jars
from barnabas.spark.basics.cluster import WorkerCluster
from barnabas.spark.reading.fetcher import EARLIEST
from barnabas.sql.errors import SqlError
from barnabas.sql.running.binding import bound, table_topics
from barnabas.sql.running.queries import RunningQuery
from barnabas.sql.running.settings import EngineSettings
from barnabas.sql.running.task_logic import MakeSqlLogic
from barnabas.streams.spark.conductor import Conductor, Query, grown
from barnabas.streams.spark.queries_of_plan import queries_of
from barnabas.streams.spark.task_port import TaskResult, TaskSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
Batches = list[Future[list[TaskResult]]]  # under way, of a query that was stopped
AGAIN_S = 1.0
LAKE = "delta"
STOP_S_MAX = 120.0
LOG = logging.getLogger("barnabas.sql")


class Runner:
    """`spark` given: the session is the caller's, and stays open."""

    def __init__(
        self,
        settings: EngineSettings,
        spark: SparkSession | None = None,
        *,
        log_topic: str | None,
        timing: Timing | None = None,
    ) -> None:
        self._settings, self._given, self._log_topic = settings, spark, log_topic
        self._timing = timing
        self._session: SparkSession | None = spark
        self._orders: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = queue.SimpleQueue()
        self._queries: dict[str, RunningQuery] = {}
        self._stopping = threading.Event()
        self._lost = threading.Event()  # another node has taken the lease
        self._thread: threading.Thread | None = None
        self._conductor: Conductor | None = None
        self._cluster: WorkerCluster | None = None
        self._failure: str | None = None
        self._look_at = time.monotonic() + settings.metadata_age_s
        self._session_lock = threading.Lock()
        self._lacks_jars = False  # the session began without the jars for tables of a lake

    # -- for the event loop ----------------------------------------------------------------------------

    def order(self, action: Callable[[], T]) -> Future[T]:
        """Do something in the runner's thread, between two rounds of the conductor."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="sql-runner", daemon=True)
            self._thread.start()
        done: Future[T] = Future()
        self._orders.put((action, done))
        if self._conductor is not None:
            self._conductor.wake()
        if self._failure is not None:
            self._refuse_orders()
        return done

    @property
    def is_started(self) -> bool:
        return self._thread is not None

    def session(self, *, reads_lakes: bool = False) -> SparkSession:
        """The session of all queries, made when it is first needed. `reads_lakes`: for a statement in Spark
        SQL, which may name tables of a lake; jars for them are fetched."""
        with self._session_lock:
            if self._session is None:
                settings = SparkSettings(self._settings.master, settings=self._settings.spark)
                name = f"sql-{self._settings.service_id}"
                sets = self._sets(fetches=reads_lakes)
                self._lacks_jars = self._settings.reads_lakes and not (sets or reads_lakes)
                self._session = session(settings, sets=sets, name=name)
            elif reads_lakes and self._lacks_jars:
                self._lacks_jars = False  # asked for once
                if self._sets(fetches=True):
                    LOG.warning(
                        "tables of a lake can be read after a restart: the session began without the jars"
                        " for them, which are here now"
                    )
            return self._session

    def _sets(self, *, fetches: bool) -> tuple[str, ...]:
        """Jars for tables of a lake, where they are here or may be fetched. Persistent queries need none."""
        if not self._settings.reads_lakes or (jars.missing((LAKE,)) and not fetches):
            return ()
        try:
            jars.jars(LAKE)
        except jars.JarError as error:
            LOG.warning("tables of a lake cannot be read: %s", error)
            return ()
        return (LAKE,)

    def close(self) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(STOP_S_MAX)
        if self._session is not None and self._given is None:
            close(self._session)

    # -- in the thread -----------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._lost.clear()
                with self._lock() as lock:
                    lock.on_lost = self._lost.set
                    if not self._stopping.is_set():
                        self._conduct()
                if self._lost.is_set():
                    LOG.warning("another node has taken the queries over: this one waits for its turn")
        except LakeIsBusy as error:
            if not self._stopping.is_set():
                self._failure = f"another node runs the queries: {error}"
        except Exception as error:
            LOG.exception("the persistent queries do not run any more")
            self._failure = f"the persistent queries do not run: {error}"
        finally:
            self._failure = self._failure or "the engine is closed"
            self._refuse_orders()

    def _lock(self) -> LakeLock:
        name = f"sql-{self._settings.service_id}"
        folder = self._settings.state_dir / name
        records = lease_of(place_at(str(self._settings.state_dir)), name)
        make = own_lock(folder, name, records, self._timing)
        return make(waits=True, is_stopping=self._stopping.is_set)

    def _conduct(self) -> None:
        self._cluster = WorkerCluster(self._settings.client)
        self._conductor = Conductor(self.session(), self._settings.client)
        for query in self._queries.values():  # of the last time that this node had the lease
            query.forget_parts()
            if not query.is_paused:
                self.begin(query)
        try:
            while not (self._stopping.is_set() or self._lost.is_set()):
                self._do_orders()
                try:
                    self._conductor.run_round()
                except (KafkaError, ClientError, OSError) as error:
                    LOG.warning("the brokers do not answer: %s", error)
                    self._stopping.wait(AGAIN_S)
                self._watch(time.time())
                self._look_for_partitions(time.monotonic())
                self._conductor.wait()
        finally:
            self._conductor.close()
            run(self._cluster.close())

    def _do_orders(self) -> None:
        while True:
            try:
                action, done = self._orders.get_nowait()
            except queue.Empty:
                return
            try:
                done.set_result(action())
            except BaseException as error:
                done.set_exception(error)

    def _refuse_orders(self) -> None:
        while True:
            try:
                _, done = self._orders.get_nowait()
            except queue.Empty:
                return
            done.set_exception(SqlError(self._failure or "the engine is closed"))

    def _watch(self, now: float) -> None:
        """Queries that failed stop; those whose time has come start again."""
        first_ms, max_ms = self._settings.retry_ms()
        for query in list(self._queries.values()):
            failed = query.failed_part
            if failed is not None:
                LOG.error("the query %s failed: %s", query.query_id, failed.error)
                self._end_parts(query)
                query.fail(failed.error or "", now, first_ms, max_ms)
            elif query.has_failed and not query.is_paused and now >= query.retry_at:
                self.begin(query)

    def _look_for_partitions(self, now: float) -> None:
        """Begin queries anew whose topics have more partitions now. One that cannot has an error."""
        if now < self._look_at:
            return
        self._look_at = now + self._settings.metadata_age_s
        assert self._cluster is not None
        try:
            known = {name: len(each.partitions) for name, each in run(self._cluster.topics(None)).items()}
        except (KafkaError, ClientError, OSError) as error:
            LOG.warning("topics could not be looked at for new partitions: %s", error)
            return
        for query in list(self._queries.values()):
            before = {topic: count for part in query.parts or () for topic, count in part.topics.items()}
            added = grown(before, known)
            if added:
                LOG.warning("the query %s begins anew: its topics have new partitions", query.query_id)
                self._end_parts(query)
                self.begin(query, added)

    # -- orders ------------------------------------------------------------------------------------------

    def add(self, query: RunningQuery) -> None:
        self._queries[query.query_id] = query
        if not query.is_paused:
            self.begin(query)

    def begin(self, query: RunningQuery, added: frozenset[TopicPartition] = frozenset()) -> None:
        """Start a query where its group stands, partitions that were `added` at their first record. What
        prevents it is an error of the query."""
        assert self._conductor is not None
        first_ms, max_ms = self._settings.retry_ms()
        query.has_failed, query.began = False, time.time()
        started: list[Query] = []
        try:
            for part in self._parts_of(query):
                part.added = added
                self._conductor.add(part)
                started.append(part)
            query.parts = started
        except Exception as error:  # brokers, the registry, the user's functions
            for part in started:
                self._conductor.remove(part.name)
            LOG.warning("the query %s does not start: %s", query.query_id, error)
            query.fail(str(error) or type(error).__name__, time.time(), first_ms, max_ms)

    def pause(self, query: RunningQuery) -> Batches:
        query.is_paused = True
        return self._end_parts(query)

    def resume(self, query: RunningQuery) -> None:
        query.is_paused = False
        if query.parts is None:
            self.begin(query)

    def restart(self, query: RunningQuery) -> None:
        self._end_parts(query)
        query.backoff.succeeded()
        if not query.is_paused:
            self.begin(query)

    def remove(self, query: RunningQuery) -> Batches:
        """End a query for good: its state is deleted."""
        query.is_stopped = True
        self._queries.pop(query.query_id, None)
        folder = self._settings.state_dir / query.work.application_id
        ends_later = [future for future in self._end_parts(query) if not future.done()]
        for future in ends_later:  # a batch under way still writes its state
            future.add_done_callback(lambda _: shutil.rmtree(folder, ignore_errors=True))
        shutil.rmtree(folder, ignore_errors=True)
        return ends_later

    def replace(self, query: RunningQuery) -> Batches:
        """End a query that another one follows: its group, topics and state stay."""
        self._queries.pop(query.query_id, None)
        return self._end_parts(query)

    def _end_parts(self, query: RunningQuery) -> Batches:
        """Stop the parts of a query; the batches that are still under way."""
        assert self._conductor is not None
        futures = [self._conductor.remove(part.name) for part in query.parts or ()]
        query.forget_parts()
        return [future for future in futures if future is not None]

    def _parts_of(self, query: RunningQuery) -> list[Query]:
        work, settings, properties = query.work, self._settings, query.prepared.properties
        assert work.plan is not None and self._cluster is not None
        plan = bound(work.plan, settings.registry)
        tasks = TaskSettings(
            work.application_id,
            settings.client,
            str(settings.state_dir),
            settings.is_exactly_once(properties),
            fails_on_loss=False,  # as in ksqlDB: what retention has deleted is left out
        )
        log = settings.log_settings(query.query_id, self._log_topic, properties)
        try:
            parts = queries_of(
                plan,
                tasks,
                self._cluster,
                offset_reset=settings.reset(properties),
                creation=settings.creation(properties),
                make_logic=lambda number: MakeSqlLogic(plan, number, settings.client, log),
            )
        except PlanError as error:
            raise SqlError(str(error)) from error
        whole = table_topics(plan)
        internal = {each.name for each in plan.repartition_topics}
        for part in parts:
            part.resets = {
                topic: EARLIEST if topic in whole or topic in internal else spec
                for topic, spec in part.resets.items()
            }
        return parts
