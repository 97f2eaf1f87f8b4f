"""The engine on brokers and Spark: the port's `Engine` (`execution/port.py`).

Statements are analyzed with facts from brokers and the registry. Persistent queries run on Spark in the
runner's thread, SELECTs in this process. All methods belong to one event loop. Does not know: HTTP, the
command topic.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from barnabas.client.cluster import Cluster
from barnabas.engine.lease import Timing
from barnabas.sql.analysis.analyzer import analyze, lookups_of
from barnabas.sql.analysis.facts import Facts, TopicFact
from barnabas.sql.analysis.switches import INSERT_VALUES, switched_off
from barnabas.sql.analysis.work import QueryWork, WorkKind
from barnabas.sql.errors import SqlError, did_you_mean
from barnabas.sql.execution.port import (
    Explanation,
    Prepared,
    PullResult,
    QueryStatus,
    QueryStores,
    SchemaNeeded,
    TopicNeeded,
)
from barnabas.sql.formats.contract import check_columns, facts_of
from barnabas.sql.formats.definitions import SCHEMA_ID, definition
from barnabas.sql.formats.registered_rows import subject_of
from barnabas.sql.metastore.metastore import DataSource, Metastore, PutSource
from barnabas.sql.running.binding import bound
from barnabas.sql.running.inserts import Inserts, Writing, insert_of
from barnabas.sql.running.processing_log import ProcessingLog
from barnabas.sql.running.pulls import Pulls
from barnabas.sql.running.queries import RunningQuery, explanation_of
from barnabas.sql.running.resources import Resources
from barnabas.sql.running.runner import Runner
from barnabas.sql.running.selects import TailingSelect
from barnabas.sql.running.settings import LOG_CREATE, LOG_PARTITIONS, EngineSettings
from barnabas.sql.running.spark_queries import spark_rows
from barnabas.sql.running.stores import stores_of
from barnabas.sql.syntax.statements import Statement

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLIENT_ID = "ksql-engine"


class SparkEngine:
    """`spark` given: a session of the caller's, which stays open."""

    def __init__(
        self,
        settings: EngineSettings,
        *,
        spark: SparkSession | None = None,
        timing: Timing | None = None,
    ) -> None:
        self.settings = settings
        self._cluster = Cluster(
            settings.bootstrap,
            client_id=CLIENT_ID,
            security=settings.client.client_security(),
            waits_for_bootstrap=True,
        )
        self._resources = Resources(self._cluster, settings.registry)
        self._inserts = Inserts(self._cluster, settings.registry)
        self._pulls = Pulls(settings)
        has_log = settings.properties.get(LOG_CREATE, "true").lower() == "true"
        self._log_topic = settings.log_topic if has_log else None
        self._runner = Runner(settings, spark, log_topic=self._log_topic, timing=timing)
        self._queries: dict[str, RunningQuery] = {}
        self._numbers = itertools.count(1)
        self._has_log_topic = False

    # -- statements ----------------------------------------------------------------------------------

    async def prepare(
        self,
        statement: Statement,
        text: str,
        metastore: Metastore,
        properties: Mapping[str, str],
        number: int,
        new_topics: Sequence[TopicNeeded] = (),
    ) -> Prepared:
        lookups = lookups_of(statement, metastore, self.settings.properties, properties)
        topics, schemas = await self._resources.facts(lookups)
        made = {each.name: TopicFact(each.name, each.partitions, each.replicas or 1) for each in new_topics}
        topics = {**made, **topics}
        facts = Facts(topics, schemas, self.settings.properties, int(time.time() * 1000))
        prepared = analyze(statement, text, metastore, facts, properties, number)
        self.settings.is_exactly_once(properties)
        self.settings.reset(properties)
        needed = self._schemas_of(prepared)
        return replace(prepared, schemas=(*prepared.schemas, *needed)) if needed else prepared

    def _schemas_of(self, prepared: Prepared) -> list[SchemaNeeded]:
        """Schemas of the topics that a statement writes, or creates."""
        created = {each.name for each in prepared.topics}
        found: list[SchemaNeeded] = []
        for change in prepared.changes:
            if isinstance(change, PutSource):
                source = change.source
                check_columns(source.key_format, source.schema.key, is_key=True)
                check_columns(source.value_format, source.schema.value, is_key=False)
                if source.made_by is not None or source.topic in created:
                    found += self._schemas_of_source(source)
        return found

    def _schemas_of_source(self, source: DataSource) -> list[SchemaNeeded]:
        found = []
        for form, columns, is_key in (
            (source.key_format, source.schema.key, True),
            (source.value_format, source.schema.value, False),
        ):
            if facts_of(form.name).has_registry and columns and SCHEMA_ID not in form.properties:
                made = definition(form, columns, is_key=is_key)
                found.append(SchemaNeeded(subject_of(source.topic, is_key=is_key), made.kind, made.text))
        return found

    async def create_resources(self, prepared: Prepared) -> None:
        for topic in prepared.topics:
            await self._resources.create_topic(topic)
        for schema in prepared.schemas:
            await self._resources.register(schema)

    async def carry_out(self, prepared: Prepared) -> None:
        for query_id in prepared.stops:
            await self.stop(query_id)
        work: QueryWork | None = prepared.work
        if work is not None and prepared.starts is not None:
            before = self._queries.get(prepared.starts)
            query = self._queries[prepared.starts] = RunningQuery(prepared, work)
            if work.kind is not WorkKind.PERSISTENT:
                return  # a source table: its topic is read when it is asked for
            await self._create_log_topic()
            if before is not None:  # CREATE OR REPLACE: it goes on, changed
                query.is_paused = before.is_paused
                await self._end_of(lambda: self._runner.replace(before))
            self._runner.order(lambda: self._runner.add(query))  # its status tells why it could not start
        if prepared.drops_topics:
            await self._resources.delete_topics(prepared.drops_topics)

    async def _create_log_topic(self) -> None:
        if self._log_topic is not None and not self._has_log_topic:
            partitions = int(self.settings.properties.get(LOG_PARTITIONS, "1"))
            replicas = self.settings.internal_replicas
            await self._resources.create_topic(TopicNeeded(self._log_topic, partitions, replicas))
            self._has_log_topic = True

    async def _ordered(self, action: Any) -> Any:
        return await asyncio.wrap_future(self._runner.order(action))

    async def _end_of(self, action: Callable[[], Sequence[Future[Any]]]) -> None:
        """Stop a query and wait until its batches have ended. The other queries go on meanwhile."""
        batches = [asyncio.wrap_future(each) for each in await self._ordered(action)]
        if batches:
            await asyncio.wait(batches)

    # -- rows ----------------------------------------------------------------------------------------

    async def insert(self, prepared: Prepared) -> None:
        await self._inserts.write(self._work_of(prepared, WorkKind.INSERT).insert)

    async def insert_row(
        self, metastore: Metastore, target: str, row: Mapping[str, Any], properties: Mapping[str, str]
    ) -> None:
        await (await self.begin_row(metastore, target, row, properties))

    async def begin_row(
        self, metastore: Metastore, target: str, row: Mapping[str, Any], properties: Mapping[str, str]
    ) -> Writing:
        if self.settings.setting(INSERT_VALUES, "true", properties).lower() == "false":
            raise SqlError(switched_off("inserted rows", INSERT_VALUES))
        return await self._inserts.begin(insert_of(metastore.source(target), row))

    def select(self, prepared: Prepared) -> TailingSelect:
        work: Any = self._work_of(prepared, WorkKind.PUSH, WorkKind.STREAM_PULL)
        query_id = work.query_id or f"transient_{next(self._numbers)}"
        settings, properties = self.settings, prepared.properties
        log = ProcessingLog(settings.log_settings(query_id, None, properties))
        return TailingSelect(
            self._cluster,
            query_id,
            bound(work.plan, settings.registry),
            work.result,
            log,
            from_earliest=settings.reset(properties) == "earliest",
            ends_at_end=work.kind is WorkKind.STREAM_PULL,
        )

    async def pull(self, prepared: Prepared) -> PullResult:
        work: Any = self._work_of(prepared, WorkKind.PULL)
        rows = await asyncio.to_thread(self._pulls.rows, work)
        return PullResult(prepared.schema, rows)

    async def spark_sql(self, text: str, metastore: Metastore, *, limit: int | None = None) -> PullResult:
        """Run a query of Spark SQL. Streams and tables are views of their topics by their names; tables of a
        lake are found by Spark as ever."""
        return await asyncio.to_thread(
            lambda: spark_rows(self._runner.session(reads_lakes=True), self.settings, text, metastore, limit)
        )

    @staticmethod
    def _work_of(prepared: Prepared, *kinds: WorkKind) -> Any:
        work = prepared.work
        if not isinstance(work, QueryWork) or work.kind not in kinds:
            raise SqlError(f"This statement cannot be carried out here: {prepared.kind}")
        return work

    # -- queries -------------------------------------------------------------------------------------

    async def explain(self, prepared: Prepared) -> Explanation:
        work = prepared.work
        if not isinstance(work, QueryWork):
            raise SqlError("EXPLAIN needs a query: SELECT, CREATE … AS SELECT or INSERT INTO … SELECT")
        return explanation_of(prepared, work)

    def explanation(self, query_id: str) -> Explanation:
        query = self._query(query_id)
        return explanation_of(query.prepared, query.work)

    def _query(self, query_id: str) -> RunningQuery:
        found = self._queries.get(query_id)
        if found is None:
            raise SqlError(f"Unknown queryId: {query_id}.{did_you_mean(query_id, self._queries)}")
        return found

    def _persistent(self, query_id: str) -> RunningQuery:
        query = self._query(query_id)
        if query.work.kind is not WorkKind.PERSISTENT:
            raise SqlError(f"{query_id} keeps a source table: it does not run")
        return query

    async def stop(self, query_id: str) -> None:
        query = self._queries.pop(query_id, None)
        if query is None or query.work.kind is not WorkKind.PERSISTENT:
            return
        await self._end_of(lambda: self._runner.remove(query))
        await self._resources.delete_application(query.work.application_id)

    async def pause(self, query_id: str) -> None:
        query = self._persistent(query_id)
        await self._end_of(lambda: self._runner.pause(query))

    async def resume(self, query_id: str) -> None:
        query = self._persistent(query_id)
        await self._ordered(lambda: self._runner.resume(query))

    async def restart(self, query_id: str) -> None:
        query = self._persistent(query_id)
        await self._ordered(lambda: self._runner.restart(query))

    def status(self, query_id: str) -> QueryStatus | None:
        query = self._queries.get(query_id)
        return None if query is None else query.status()

    def statuses(self) -> Sequence[QueryStatus]:
        return [query.status() for query in self._queries.values()]

    def measured_statuses(self) -> Sequence[QueryStatus]:
        """Statuses with the metrics of tasks."""
        queries = self._queries.values()
        persistent = [each for each in queries if each.work.kind is WorkKind.PERSISTENT]
        return [replace(each.status(), metrics=each.metrics()) for each in persistent]

    async def stores(self) -> Sequence[QueryStores]:
        persistent = [each.work for each in self._queries.values() if each.work.kind is WorkKind.PERSISTENT]
        return await stores_of(self._cluster, persistent)

    async def close(self) -> None:
        await asyncio.to_thread(self._runner.close)
        await asyncio.to_thread(self._pulls.close)
        await self._inserts.close()
        await self._cluster.close()
