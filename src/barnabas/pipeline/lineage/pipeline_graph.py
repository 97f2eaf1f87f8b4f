"""The lineage graph of a pipeline, from its file alone: no Spark, no data.

In: a pipeline. Out: its graph: sources, tables, views, with columns where schemas and SQL show them.
Addresses contain no users, passwords or resolved secrets. Does not know: events, pictures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from barnabas.engine.secrets import HIDDEN, Secret, Text, scrubbed
from barnabas.pipeline.lake.tables import Zone
from barnabas.pipeline.lineage.columns import DIALECT, columns_of, tables_of
from barnabas.pipeline.lineage.graph import Column, Graph, Node, Origin, Use
from barnabas.pipeline.spec.model import (
    FilesSource,
    Pipeline,
    Refined,
    Source,
    TableSource,
    TopicSource,
    Trusted,
)

RAW_COLUMNS = {"value": "binary"}


def graph_of(pipeline: Pipeline) -> Graph:
    """The graph, with nodes in the order in which they are made."""
    nodes: dict[str, Node] = {}
    for source in pipeline.sources:
        add_source(nodes, pipeline, source)
    for staging in pipeline.staging:
        add_staging(nodes, pipeline, staging.name, staging.source)
    for trusted in pipeline.trusted:
        add_trusted(nodes, pipeline, trusted)
    for refined in in_order(pipeline):
        inputs = refined.inputs if refined.python else tables_of(refined.sql)
        add_query(nodes, pipeline, "refined", refined.name, refined.sql, list(inputs))
    for view in pipeline.views:
        add_query(nodes, pipeline, "view", view.name, view.sql, tables_of(view.sql), first=view.source)
    return Graph(pipeline.name, nodes)


def in_order(pipeline: Pipeline) -> list[Refined]:
    """Refined tables, each after those it reads."""
    left = {each.name: each for each in pipeline.refined}
    found: list[Refined] = []
    while left:
        ready = [each for each in left.values() if not needed(each) & (set(left) - {each.name})]
        for each in ready or list(left.values()):  # a circle; `validate` reports it
            found.append(left.pop(each.name))
    return found


def needed(refined: Refined) -> set[str]:
    names = refined.inputs if refined.python else tables_of(refined.sql)
    return {name.removeprefix("refined.") for name in names}


def add_source(nodes: dict[str, Node], pipeline: Pipeline, source: Source) -> None:
    namespace, dataset = place_of(source)
    columns = ddl_columns(source.schema.ddl)
    key = f"source.{source.name}"
    nodes[key] = Node(key, "source", source.name, namespace, dataset, columns)
    add_table(nodes, pipeline, Zone.RAW, source.name, RAW_COLUMNS, [key], {})


def add_staging(nodes: dict[str, Node], pipeline: Pipeline, name: str, source: str) -> None:
    before = nodes.get(f"source.{source}")
    columns = dict(before.columns) if before else {}
    origins = {column: [Origin(Column(f"source.{source}", column), Use.IDENTITY)] for column in columns}
    add_table(nodes, pipeline, Zone.STAGING, name, columns, [f"raw.{source}"], origins)


def add_trusted(nodes: dict[str, Node], pipeline: Pipeline, trusted: Trusted) -> None:
    key = f"staging.{trusted.staging}"
    columns = dict(nodes[key].columns) if key in nodes else {}
    hidden = {*trusted.mask, *trusted.protected}
    origins = {
        column: [Origin(Column(key, column), Use.MASKED if column in hidden else Use.IDENTITY)]
        for column in columns
    }
    for column in trusted.protected:
        columns[column] = "string"
    add_table(nodes, pipeline, Zone.TRUSTED, trusted.name, columns, [key], origins)
    inputs = [key]
    add_table(
        nodes, pipeline, Zone.QUARANTINE, trusted.name, {"rule": "string", "reason": "string"}, inputs, {}
    )


def add_table(
    nodes: dict[str, Node],
    pipeline: Pipeline,
    zone: Zone,
    name: str,
    columns: Mapping[str, str],
    inputs: Sequence[str],
    origins: Mapping[str, Sequence[Origin]],
    sql: str = "",
) -> None:
    lake = pipeline.lake_location
    known = [key for key in inputs if key in nodes]
    path = lake.table_path(zone, name)
    namespace = "file" if lake.is_local else path.partition("://")[0] + "://" + urlsplit(path).netloc
    key = f"{zone}.{name}"
    nodes[key] = Node(key, str(zone), name, namespace, scrubbed(path), dict(columns), known, origins, sql)


def add_query(
    nodes: dict[str, Node],
    pipeline: Pipeline,
    zone: str,
    name: str,
    sql: str,
    tables: Sequence[str],
    first: str = "",
) -> None:
    """Add a refined table or a view. `first` is the table that a short name means before all others."""
    keys = {table: table_key(nodes, table, first) for table in tables}
    known = {table: key for table, key in keys.items() if key is not None}
    found = columns_of(sql, {table: nodes[key].columns for table, key in known.items()})
    origins = {
        column: [
            Origin(Column(known[each.table], each.column), use)
            for each, use in places.items()
            if each.table in known
        ]
        for column, places in found.items()
    }
    columns = dict.fromkeys(found, "")
    inputs = list(dict.fromkeys(known.values()))
    if zone == "refined":
        add_table(nodes, pipeline, Zone.REFINED, name, columns, inputs, origins, sql)
        return
    key = f"view.{name}"
    namespace = f"{pipeline.serving.host}:{pipeline.serving.port}"
    dataset = f"views/{name}"
    nodes[key] = Node(key, "view", name, f"http://{namespace}", dataset, columns, inputs, origins, sql)


def table_key(nodes: Mapping[str, Node], table: str, first: str) -> str | None:
    if table in nodes:
        return table
    if first in nodes and first.partition(".")[2] == table:
        return first
    found = (f"{zone}.{table}" for zone in ("trusted", "refined", "staging"))
    return next((key for key in found if key in nodes), None)


def place_of(source: Source) -> tuple[str, str]:
    """OpenLineage's namespace and name of a source."""
    if isinstance(source, TopicSource):
        first = visible(source.bootstrap_servers).partition(",")[0]
        return f"kafka://{first}", source.subscribe or source.pattern
    if isinstance(source, TableSource):
        if isinstance(source.url, Secret):
            return f"database://{HIDDEN}", source.table
        address = urlsplit(scrubbed(source.address.removeprefix("jdbc:")))
        host = address.netloc.rpartition("@")[2]
        database = address.path.lstrip("/")
        return f"{address.scheme}://{host}", ".".join(part for part in (database, source.table) if part)
    if isinstance(source, FilesSource):
        return "file", scrubbed(source.path)
    return "unknown", source.name


def visible(value: Text) -> str:
    return HIDDEN if isinstance(value, Secret) else scrubbed(value)


def ddl_columns(ddl: str) -> dict[str, str]:
    """Names and types of a DDL; empty if it cannot be parsed."""
    if not ddl.strip():
        return {}
    try:
        parsed = sqlglot.parse_one(f"CREATE TABLE t ({ddl})", dialect=DIALECT)
    except SqlglotError:
        return {}
    return {
        column.name: column.args["kind"].sql(dialect=DIALECT).lower() if column.args.get("kind") else ""
        for column in parsed.find_all(exp.ColumnDef)
        if isinstance(column.parent, exp.Schema)
    }
