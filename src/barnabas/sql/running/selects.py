"""Push queries and reads of a stream to its end: topics are tailed in this process, without a job of Spark.

In: a SELECT's work. Out: rows, as they come, from a queue with a bound: a slow reader slows the reading of
topics, nothing is lost. The plan runs by the interpreter. Topics of tables are read from their start
first, so that joins find their rows. Does not know: HTTP.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Mapping

from barnabas.client.admin.offsets import OffsetAdmin, OffsetSpec
from barnabas.client.consumer import Consumer, ConsumerSettings, OnOutOfRange
from barnabas.client.core.cluster import ClusterCore
from barnabas.client.core.errors import ClientError, NoTopic
from barnabas.client.core.fetching import ConsumerRecord, DamagedBatch
from barnabas.client.core.topology import TopicPartition
from barnabas.plans.interpreter.records import Output, Record, TaskError
from barnabas.plans.plan import Plan
from barnabas.protocol import KafkaError
from barnabas.sql.analysis.serdes import of_row_bytes
from barnabas.sql.analysis.work import RESULT_TOPIC, Result, result_row
from barnabas.sql.errors import SqlError
from barnabas.sql.execution.port import LIMIT_REACHED, QUERY_COMPLETED, Row
from barnabas.sql.metastore.schemas import Schema
from barnabas.sql.running.binding import outer_topics, table_topics
from barnabas.sql.running.local_plans import LocalPlan
from barnabas.sql.running.processing_log import ProcessingLog

ROWS_WAITING_MAX = 1_000
POLL_MS = 1_000.0
SLICE = 200  # records between two moments of other tasks of the event loop
FETCHING = ConsumerSettings(fetch_wait_ms_max=500, read_committed=True, on_out_of_range=OnOutOfRange.EARLIEST)


class TailingSelect:
    """A `RunningSelect`. `plan` is bound; `ends_at_end`: it ends at what the topics have now."""

    def __init__(
        self,
        cluster: ClusterCore,
        query_id: str,
        plan: Plan,
        result: Result,
        log: ProcessingLog,
        *,
        from_earliest: bool,
        ends_at_end: bool,
    ) -> None:
        self.query_id, self.schema, self.is_table = query_id, result.schema, result.is_table
        self._cluster, self._plan, self._result, self._log = cluster, plan, result, log
        self._from_earliest, self._ends_at_end = from_earliest, ends_at_end
        self._rows: asyncio.Queue[Row | None] = asyncio.Queue(ROWS_WAITING_MAX)
        self._end = ""
        self._error: SqlError | None = None
        self._given = 0
        self._is_over = False
        self._local: LocalPlan | None = None
        self._goals: dict[TopicPartition, int] = {}
        self._tables: frozenset[str] = frozenset()
        self._begun = asyncio.Event()
        self._task = asyncio.create_task(self._run())

    schema: Schema

    @property
    def end(self) -> str:
        return self._end

    @property
    def dropped(self) -> dict[str, int]:
        return {**(self._local.dropped if self._local else {}), **self._log.counts}

    async def begun(self) -> None:
        """Wait until the query knows where it begins: it gives every row that is written afterwards."""
        await self._begun.wait()

    async def __aiter__(self) -> AsyncIterator[Row]:
        limit = self._result.limit
        while not self._is_over:
            if limit is not None and self._given >= limit:
                await self._finish(LIMIT_REACHED)
                return
            row = await self._rows.get()
            if row is None:
                self._is_over = True
                if self._error is not None:
                    raise self._error
                return
            self._given += 1
            yield row

    async def close(self) -> None:
        await self._finish(self._end)

    async def _finish(self, end: str) -> None:
        self._end, self._is_over = end, True
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        with contextlib.suppress(asyncio.QueueFull):
            self._rows.put_nowait(None)  # another task may wait for a row

    # -- reading topics ------------------------------------------------------------------------------

    async def _run(self) -> None:
        consumer = Consumer(self._cluster, FETCHING)
        try:
            await self._begin(consumer)
            await self._follow(consumer)
            self._end = QUERY_COMPLETED
        except NoTopic as error:
            self._error = SqlError(f"The query {self.query_id} cannot read its topic: {error.message}")
        except (KafkaError, ClientError, TaskError, SqlError) as error:
            self._error = error if isinstance(error, SqlError) else SqlError(f"The query failed: {error}")
        except asyncio.CancelledError:
            raise
        except Exception as error:  # an error of the plan's functions ends this query alone
            self._error = SqlError(f"The query failed: {type(error).__name__}: {error}")
        finally:
            self._begun.set()
            await consumer.close()
            if self._local is not None:
                self._local.close()
        await self._rows.put(None)

    async def _begin(self, consumer: Consumer) -> None:
        topics = await self._cluster.topics(outer_topics(self._plan))
        counts = {name: len(topic.partitions) for name, topic in topics.items()}
        self._local = LocalPlan(self._plan, counts, RESULT_TOPIC, self._log.handlers())
        places = [TopicPartition(name, each) for name, topic in topics.items() for each in topic.partitions]
        ends = await self._offsets(places, OffsetSpec.LATEST)
        starts = ends
        if self._from_earliest or self._ends_at_end:
            starts = await self._offsets(places, OffsetSpec.EARLIEST)
        self._tables = table_topics(self._plan) if self._plan.stores else frozenset()
        tables = [place for place in places if place.topic in self._tables]
        if tables:
            early = await self._offsets(tables, OffsetSpec.EARLIEST)
            await self._load_tables(early, {place: ends[place] for place in tables})
        if self._ends_at_end:
            self._goals = {place: ends[place] for place in places if place.topic not in self._tables}
        # Rows that tables had are loaded; the consumer follows changes from here on.
        consumer.assign(
            {place: ends[place] if place.topic in self._tables else starts[place] for place in places}
        )

    async def _load_tables(
        self, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
    ) -> None:
        """Bring tables to what their topics have now. Their rows are results only if all rows are wanted."""
        consumer = Consumer(self._cluster, FETCHING)
        consumer.assign({place: start for place, start in starts.items() if start < ends[place]})
        try:
            while any(position < ends[place] for place, position in consumer.positions.items()):
                records = [
                    each for each in await self._poll(consumer)
                    if each.offset < ends[TopicPartition(each.topic, each.partition)]
                ]  # fmt: skip
                await self._feed(records, gives=self._from_earliest)
        finally:
            await consumer.close()

    async def _follow(self, consumer: Consumer) -> None:
        self._begun.set()
        while not (self._ends_at_end and self._is_at_goals(consumer)):
            records: Iterable[ConsumerRecord] = await self._poll(consumer)
            if self._goals:
                records = [
                    each
                    for each in records
                    if each.offset < self._goals[TopicPartition(each.topic, each.partition)]
                ]
            await self._feed(records, gives=True)

    def _is_at_goals(self, consumer: Consumer) -> bool:
        return all(consumer.positions[place] >= goal for place, goal in self._goals.items())

    @staticmethod
    async def _poll(consumer: Consumer) -> list[ConsumerRecord]:
        try:
            return await consumer.poll(POLL_MS)
        except DamagedBatch as damaged:
            consumer.assign({damaged.where: damaged.next_offset})
            return []

    async def _feed(self, records: Iterable[ConsumerRecord], *, gives: bool) -> None:
        assert self._local is not None
        for number, each in enumerate(records, 1):
            record = Record(
                each.key, each.value, each.timestamp, tuple(each.headers), each.partition, each.offset
            )
            for output in self._local.feed(each.topic, record):
                if gives:
                    await self._rows.put(self._row(output))
            if number % SLICE == 0:
                await asyncio.sleep(0)

    def _row(self, output: Output) -> Row:
        key = None if output.key is None else of_row_bytes(output.key)
        value = None if output.value is None else of_row_bytes(output.value)
        return result_row(self._result, key, value)

    async def _offsets(self, places: Iterable[TopicPartition], spec: int) -> dict[TopicPartition, int]:
        asked = OffsetAdmin(self._cluster).list_offsets(dict.fromkeys(places, spec), read_committed=True)
        found: dict[TopicPartition, int] = {}
        for place, each in (await asked).items():
            if isinstance(each, KafkaError):
                raise each
            found[place] = each.offset
        return found
