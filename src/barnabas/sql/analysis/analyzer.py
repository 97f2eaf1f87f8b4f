"""The two questions of an engine: what must be looked up for a statement, and what is to be done for it.

    needed = lookups_of(statement, metastore, settings, properties)
    facts = Facts(topics=..., schemas=..., settings=server_settings, now_ms=...)
    prepared = analyze(statement, text, metastore, facts, properties, number)

Pure: nothing is looked up, created or started here. SqlError says what is wrong, where, and what would be
right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from barnabas.sql.analysis.changing import alter, create_type, drop, drop_type
from barnabas.sql.analysis.context import Context
from barnabas.sql.analysis.facts import NOTHING, TOPIC_PREFIX, Facts, Lookups
from barnabas.sql.analysis.inserting import insert_values
from barnabas.sql.analysis.options import OF_CREATE_AS, options_of
from barnabas.sql.analysis.queries import query
from barnabas.sql.analysis.sinks import create_as, insert_into
from barnabas.sql.analysis.sources import create_source, lookups
from barnabas.sql.analysis.switches import check_switches
from barnabas.sql.errors import SqlError
from barnabas.sql.execution.port import Prepared
from barnabas.sql.metastore.metastore import Metastore
from barnabas.sql.syntax import statements as s


def lookups_of(
    statement: s.Statement,
    metastore: Metastore,
    settings: Mapping[str, str] = NOTHING,
    properties: Mapping[str, str] = NOTHING,
) -> Lookups:
    """Topics and schemas that `analyze` wants to know of. Those that do not exist are left out of `Facts`."""
    facts = Facts(settings={**settings, **properties})
    if isinstance(statement, s.Explain) and statement.statement is not None:
        statement = statement.statement
    if isinstance(statement, s.CreateSource):
        return lookups(statement, facts)
    if isinstance(statement, s.Query):
        return Lookups(_read_topics(statement, metastore))
    if isinstance(statement, s.InsertInto):
        return Lookups(_read_topics(statement.query, metastore))
    if isinstance(statement, s.CreateAs):
        options = options_of(statement.properties, OF_CREATE_AS, statement.at)
        topic = options.text("KAFKA_TOPIC") or f"{facts.setting(TOPIC_PREFIX) or ''}{statement.name}"
        return Lookups((*_read_topics(statement.query, metastore), topic))
    return Lookups()


def _read_topics(select: s.Query, metastore: Metastore) -> tuple[str, ...]:
    names = [select.source.name, *(join.right.name for join in select.joins)]
    return tuple(dict.fromkeys(metastore.sources[name].topic for name in names if name in metastore.sources))


def analyze(
    statement: s.Statement,
    text: str,
    metastore: Metastore,
    facts: Facts,
    properties: Mapping[str, str] = NOTHING,
    number: int = 0,
) -> Prepared:
    """The statement, checked. `Prepared.work` is a `QueryWork` (`analysis/work.py`) or None.

    `Prepared.topics` has topics that are missing; `Prepared.schemas` is empty: schemas of sinks are texts of
    a format, so the engine adds them from `work.sink` or the source that the changes put. An EXPLAIN has
    the plan of its statement in `work`, and no effects. A CREATE OR
    REPLACE of a running query has the id of that query in `starts`, and no `stops`: it goes on, changed."""
    facts = replace(facts, settings={**facts.settings, **properties})
    context = Context(statement, text, metastore, facts, properties, number)
    try:
        return _prepared(statement, context)
    except RecursionError:
        raise SqlError("the statement is nested too deeply", statement.at, text) from None
    except SqlError as error:
        if error.at is None:
            error.at = statement.at
        error.statement = error.statement or text
        raise


def _prepared(statement: s.Statement, context: Context) -> Prepared:
    check_switches(statement, context)
    match statement:
        case s.CreateSource():
            return create_source(statement, context)
        case s.CreateAs():
            return create_as(statement, context)
        case s.InsertInto():
            return insert_into(statement, context)
        case s.InsertValues():
            return insert_values(statement, context)
        case s.DropSource():
            return drop(statement, context)
        case s.AlterSource():
            return alter(statement, context)
        case s.CreateType():
            return create_type(statement, context)
        case s.DropType():
            return drop_type(statement, context)
        case s.Query():
            return query(statement, context)
        case s.Explain(statement=inner) if inner is not None:
            found = _prepared(inner, context)
            return replace(found, changes=(), topics=(), starts=None, stops=(), drops_topics=())
    raise SqlError(f"{type(statement).__name__} is no statement of the analysis", statement.at)
