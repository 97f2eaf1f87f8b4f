"""An engine in memory: rows of streams are lists, CREATE … AS SELECT copies all rows of its source.

Engines of one `World` share their rows and the topics, as nodes of one cluster share brokers.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from barnabas.sql.errors import SqlError
from barnabas.sql.execution.port import (
    LIMIT_REACHED,
    QUERY_COMPLETED,
    Explanation,
    Prepared,
    PullResult,
    QueryState,
    QueryStatus,
    QueryStores,
    Row,
    SelectKind,
    TopicNeeded,
)
from barnabas.sql.metastore.metastore import (
    DataSource,
    Metastore,
    PutQuery,
    PutSource,
    PutType,
    QueryEntry,
    RemoveSource,
    RemoveType,
)
from barnabas.sql.metastore.schemas import Column, Format, Schema
from barnabas.sql.syntax import statements as made
from barnabas.sql.syntax.tree import Literal

NUMBERS = itertools.count(1)


@dataclass
class World:
    rows: dict[str, list[list[Any]]] = field(default_factory=dict)
    topics: set[str] = field(default_factory=set)
    running: dict[str, list[str]] = field(default_factory=dict)  # engines by the query that they run
    deleted: list[str] = field(default_factory=list)


class FakeSelect:
    def __init__(self, engine: FakeEngine, prepared: Prepared) -> None:
        source, columns = prepared.work
        self.query_id = f"transient_{source}_{next(NUMBERS)}"
        self.schema = prepared.schema
        self.is_table = False
        self.end = ""
        self.taken = 0
        self.is_closed = False
        self._engine = engine
        self._prepared = prepared
        self._source = source
        self._columns = columns
        self._ended = asyncio.Event()

    async def __aiter__(self) -> AsyncIterator[Row]:
        rows = self._engine.world.rows.setdefault(self._source, [])
        while True:
            while self.taken < len(rows):
                if self._ended.is_set():
                    return
                self.taken += 1
                yield Row([rows[self.taken - 1][index] for index in self._columns])
                if self.taken == self._prepared.limit:
                    self.end = LIMIT_REACHED
                    return
            if self._prepared.select is SelectKind.STREAM_PULL:
                self.end = QUERY_COMPLETED
                return
            try:
                await asyncio.wait_for(self._ended.wait(), 0.01)
                return
            except TimeoutError:
                continue

    async def close(self) -> None:
        self.is_closed = True
        self._ended.set()


class FakeEngine:
    def __init__(self, world: World, name: str = "node") -> None:
        self.world = world
        self.name = name
        self.selects: list[FakeSelect] = []
        self.paused: set[str] = set()
        self.running: dict[str, str] = {}
        self.is_closed = False

    async def prepare(
        self,
        statement: made.Statement,
        text: str,
        metastore: Metastore,
        properties: Mapping[str, str],
        number: int,
        new_topics: Sequence[TopicNeeded] = (),
    ) -> Prepared:
        base = {"statement": statement, "text": text, "properties": dict(properties)}
        match statement:
            case made.CreateSource():
                if statement.if_not_exists and statement.name in metastore.sources:
                    return Prepared(kind="CREATE", message="it exists already", **base)
                given = {name.upper(): str(value) for name, value in statement.properties}
                topic = given.get("KAFKA_TOPIC", statement.name)
                columns = statement.columns or ()
                schema = Schema(
                    tuple(Column(each.name, each.kind, each.role, each.header) for each in columns)
                )
                formats = Format(given.get("KEY_FORMAT", "KAFKA")), Format(given.get("VALUE_FORMAT", "JSON"))
                found = DataSource(
                    statement.name, statement.is_table, schema, topic, *formats, statement=text
                )
                partitions = int(given.get("PARTITIONS", 1))
                return Prepared(
                    kind="CREATE",
                    message=f"{found.kind} created",
                    schema=schema,
                    changes=(PutSource(found, statement.or_replace),),
                    topics=(TopicNeeded(topic, partitions),),
                    entity=(found.kind.lower(), statement.name),
                    **base,
                )
            case made.CreateAs():
                source = metastore.source(statement.query.source.name, statement.query.source.at)
                kind = "CTAS" if statement.is_table else "CSAS"
                query_id = f"{kind}_{statement.name}_{number}"
                sink = DataSource(
                    statement.name, statement.is_table, source.schema, statement.name, source.key_format,
                    source.value_format, statement=text, made_by=query_id,
                )  # fmt: skip
                entry = QueryEntry(query_id, "CREATE_AS", text, (source.name,), sink.name, sink.topic)
                return Prepared(
                    kind="CREATE_AS",
                    message=f"Created query with ID {query_id}",
                    schema=source.schema,
                    changes=(PutSource(sink), PutQuery(entry)),
                    starts=query_id,
                    entity=(sink.kind.lower(), sink.name),
                    work=(source.name, sink.name),
                    **base,
                )
            case made.InsertValues():
                source = metastore.source(statement.target, statement.at)
                names = statement.columns or tuple(each.name for each in source.schema)
                values = {
                    name: each.value if isinstance(each, Literal) else None
                    for name, each in zip(names, statement.values, strict=True)
                }
                row = [values.get(each.name) for each in source.schema]
                return Prepared(kind="INSERT_VALUES", work=(source.name, row), **base)
            case made.DropSource():
                if statement.if_exists and statement.name not in metastore.sources:
                    return Prepared(kind="DROP", message=f"{statement.name} does not exist.", **base)
                source = metastore.source(statement.name, statement.at)
                return Prepared(
                    kind="DROP",
                    message=f"Source `{statement.name}` was dropped.",
                    changes=(RemoveSource(statement.name),),
                    drops_topics=(source.topic,) if statement.deletes_topic else (),
                    stops=metastore.ended_by_drop(statement.name),
                    entity=(source.kind.lower(), statement.name),
                    **base,
                )
            case made.CreateType():
                change = PutType(statement.name, statement.kind)
                return Prepared(kind="TYPE", changes=(change,), entity=("type", statement.name), **base)
            case made.DropType():
                return Prepared(
                    kind="TYPE",
                    changes=(RemoveType(statement.name),),
                    entity=("type", statement.name),
                    **base,
                )
            case made.Query():
                return self._select(statement, metastore, base)
        raise SqlError(f"{type(statement).__name__} cannot be executed here")

    def _select(self, query: made.Query, metastore: Metastore, base: dict[str, Any]) -> Prepared:
        source = metastore.source(query.source.name, query.source.at)
        columns = list(source.schema)
        names = [getattr(each.expression, "name", None) for each in query.items]
        if names != [None]:
            for item, name in zip(query.items, names, strict=True):
                if name is None or source.schema.find(name) is None:
                    raise SqlError(f"Column '{name}' cannot be resolved.", item.expression.at)
            columns = [found for name in names if (found := source.schema.find(str(name))) is not None]
        kind = SelectKind.PULL if source.is_table else SelectKind.STREAM_PULL
        return Prepared(
            kind="SELECT",
            schema=Schema(tuple(columns)),
            select=SelectKind.PUSH if query.emit else kind,
            limit=query.limit,
            work=(source.name, [list(source.schema).index(each) for each in columns]),
            **base,
        )

    async def create_resources(self, prepared: Prepared) -> None:
        self.world.topics |= {each.name for each in prepared.topics}

    async def carry_out(self, prepared: Prepared) -> None:
        for query_id in prepared.stops:
            await self.stop(query_id)
        self.world.deleted += prepared.drops_topics
        if prepared.starts is not None:
            source, sink = prepared.work
            self.running[prepared.starts] = sink
            self.world.running.setdefault(prepared.starts, []).append(self.name)
            self.world.rows[sink] = self.world.rows.setdefault(source, [])

    async def insert(self, prepared: Prepared) -> None:
        source, row = prepared.work
        self.world.rows.setdefault(source, []).append(row)

    async def begin_row(
        self, metastore: Metastore, target: str, row: Mapping[str, Any], properties: Mapping[str, str]
    ) -> Awaitable[None]:
        schema = metastore.source(target).schema
        given = {name.upper(): value for name, value in row.items()}
        for name in given:
            if schema.find(name) is None:
                raise SqlError(f"Column name `{name}` does not exist.")
        self.world.rows.setdefault(target, []).append([given.get(each.name) for each in schema])
        return asyncio.sleep(0)

    def select(self, prepared: Prepared) -> FakeSelect:
        found = FakeSelect(self, prepared)
        self.selects.append(found)
        return found

    async def pull(self, prepared: Prepared) -> PullResult:
        source, columns = prepared.work
        rows = self.world.rows.get(source, [])
        return PullResult(
            prepared.schema, [[row[index] for index in columns] for row in rows][: prepared.limit]
        )

    async def explain(self, prepared: Prepared) -> Explanation:
        return Explanation(None, prepared.text, prepared.schema, ("S",), (), "a plan", "a topology", "a road")

    async def stop(self, query_id: str) -> None:
        self.running.pop(query_id, None)

    async def pause(self, query_id: str) -> None:
        self.paused.add(query_id)

    async def resume(self, query_id: str) -> None:
        self.paused.discard(query_id)

    async def restart(self, query_id: str) -> None:
        return

    def status(self, query_id: str) -> QueryStatus | None:
        if query_id not in self.running:
            return None
        state = QueryState.PAUSED if query_id in self.paused else QueryState.RUNNING
        return QueryStatus(query_id, state, f"_confluent-ksql-default_query_{query_id}", records=3, outputs=2)

    def statuses(self) -> Sequence[QueryStatus]:
        return [found for each in self.running if (found := self.status(each)) is not None]

    def measured_statuses(self) -> Sequence[QueryStatus]:
        return self.statuses()

    async def stores(self) -> Sequence[QueryStores]:
        return [
            QueryStores(
                each, f"_confluent-ksql-query_{each}", {"Aggregate": {0: 5, 1: 0}}, (("s", 0), ("s", 1))
            )
            for each in self.running
            if each.startswith("CTAS")
        ]

    def explanation(self, query_id: str) -> Explanation:
        raise SqlError("not here")

    async def close(self) -> None:
        self.is_closed = True
        self.running.clear()
