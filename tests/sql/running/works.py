"""Streams and tables for tests of the engine, and works of statements over them, built by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from barnabas.plans.aggregates import BuiltIns, F
from barnabas.plans.expressions import col, struct
from barnabas.plans.expressions import key as key_of
from barnabas.plans.nodes import (
    Filter,
    MapValues,
    Node,
    Sink,
    Source,
    StreamAggregate,
    TableToStream,
)
from barnabas.plans.plan import Plan
from barnabas.plans.stores import StoreKind, StoreSpec
from barnabas.sql.analysis.serdes import ROW_BYTES, RowSerde
from barnabas.sql.analysis.work import (
    RESULT_TOPIC,
    PullRead,
    QueryWork,
    Result,
    TopicRows,
    WorkKind,
)
from barnabas.sql.execution.port import Prepared, SelectKind
from barnabas.sql.metastore.metastore import DataSource
from barnabas.sql.metastore.schemas import Column, Format, Schema, WindowedKeys
from barnabas.sql.syntax.statements import Listing, Role
from barnabas.sql.types.sql_types import BIGINT, INTEGER, STRING

ID = Column("ID", STRING, Role.KEY)
V = Column("V", INTEGER)
COUNT = Column("CNT", BIGINT)
STATEMENT = Listing("STREAMS")  # any will do


def source(
    name: str, topic: str, *columns: Column, is_table: bool = False, window: WindowedKeys | None = None
) -> DataSource:
    return DataSource(name, is_table, Schema(columns), topic, Format("KAFKA"), Format("JSON"), window)


def rows_of(found: DataSource) -> TopicRows:
    return TopicRows(
        found.name, found.is_table, found.topic, found.schema, found.key_format, found.value_format,
        found.window,
    )  # fmt: skip


def read(name: str, topic: TopicRows) -> Source:
    return Source(
        name=name,
        topics=(topic.topic,),
        key_serde=RowSerde(topic.key_format, topic.schema.key, True),
        value_serde=RowSerde(topic.value_format, topic.schema.value, False),
    )


def written(parent: str, topic: TopicRows) -> Sink:
    return Sink(
        name="sink",
        parents=(parent,),
        topic=topic.topic,
        key_serde=RowSerde(topic.key_format, topic.schema.key, True),
        value_serde=RowSerde(topic.value_format, topic.schema.value, False),
    )


def persistent(
    query_id: str, nodes: tuple[Node, ...], stores: Mapping[str, StoreSpec], service: str, **given: str
) -> Prepared:
    application = f"_confluent-ksql-{service}query_{query_id}"
    plan = Plan(nodes, dict(stores), application_id=application)
    sink = TopicRows("S", False, "", Schema(), Format("KAFKA"), Format("JSON"))
    work = QueryWork(WorkKind.PERSISTENT, query_id, application, plan=plan, sink=sink)
    return Prepared(
        STATEMENT,
        "…",
        "CREATE_AS",
        starts=query_id,
        work=work,
        properties={"auto.offset.reset": "earliest", **given},
    )


def copied(
    query_id: str, from_: TopicRows, to: TopicRows, service: str, least: int = 0, **given: str
) -> Prepared:
    """INSERT INTO to SELECT ID, V FROM from_ WHERE V >= least."""
    nodes = (
        read("source", from_),
        Filter(name="where", parents=("source",), predicate=col("V") >= least),
        written("where", to),
    )
    return persistent(query_id, nodes, {}, service, **given)


def counted(query_id: str, from_: TopicRows, to: TopicRows, service: str, **given: str) -> Prepared:
    """CREATE TABLE to AS SELECT ID, COUNT(*) AS CNT FROM from_ GROUP BY ID."""
    nodes = (
        read("source", from_),
        StreamAggregate(
            name="count",
            parents=("source",),
            store="counts",
            aggregate=BuiltIns((("CNT", F.count()),)),
        ),
        TableToStream(name="changes", parents=("count",)),
        written("changes", to),
    )
    stores = {"counts": StoreSpec("counts", StoreKind.TIMESTAMPED, ROW_BYTES, ROW_BYTES)}
    return persistent(query_id, nodes, stores, service, **given)


def selected(
    from_: TopicRows,
    *,
    least: int = 0,
    kind: SelectKind = SelectKind.PUSH,
    limit: int | None = None,
    **given: str,
) -> Prepared:
    """SELECT ID, V * 2 AS W FROM from_ WHERE V >= least EMIT CHANGES."""
    schema = Schema((Column("ID", STRING), Column("W", INTEGER)))
    nodes = (
        read("source", from_),
        Filter(name="where", parents=("source",), predicate=col("V") >= least),
        MapValues(
            name="select",
            parents=("where",),
            function=struct(ID=key_of()[0], W=col("V") * 2),
            takes_key=True,
        ),
        Sink(
            name="sink", parents=("select",), topic=RESULT_TOPIC, key_serde=ROW_BYTES, value_serde=ROW_BYTES
        ),
    )
    plan = Plan(nodes, application_id="select")
    work = QueryWork(
        WorkKind(kind.value), None, "select", plan=plan, result=Result(schema, False, (0, None), limit)
    )
    return Prepared(
        STATEMENT, "…", "SELECT", schema=schema, select=kind, limit=limit, work=work, properties=given
    )


def pulled(table: TopicRows, *keys: str, where: object = None, **read: Any) -> Prepared:
    """SELECT ID, CNT FROM table [WHERE ID IN (keys)]; `read` has more fields of what is read."""
    schema = Schema((Column("ID", STRING), COUNT))
    read_ = PullRead(
        table,
        (("ID", key_of()[0]), ("CNT", col("CNT"))),
        where=where,  # type: ignore[arg-type]
        keys=tuple((each,) for each in keys) or None,
        **read,
    )
    work = QueryWork(WorkKind.PULL, pull=read_, sources=(table,))
    return Prepared(STATEMENT, "…", "SELECT", schema=schema, select=SelectKind.PULL, work=work)
