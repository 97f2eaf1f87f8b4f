"""Pull queries: what a SELECT without EMIT reads of a table, and which of its rows it gives.

The condition is taken apart at its ANDs: equality and IN on the key give lookups, comparisons a range,
those on WINDOWSTART and WINDOWEND bounds. What is left is a scan. The whole condition is checked on each row
that is found, so a lookup only has to find enough. Does not know: where a table's rows are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from barnabas.plans import expressions as e
from barnabas.plans.evaluation import compile_expression
from barnabas.sql.analysis.context import Context
from barnabas.sql.analysis.facts import TABLE_SCANS
from barnabas.sql.analysis.projection import Selected, expanded
from barnabas.sql.analysis.stages import KeyPart, Stage, rows_of, visible_columns
from barnabas.sql.analysis.work import Bound, PullRead, QueryWork, Range, Result, WorkKind
from barnabas.sql.errors import SqlError
from barnabas.sql.execution.port import Prepared, SelectKind
from barnabas.sql.expressions.nodes import Guarded
from barnabas.sql.expressions.operators import instant
from barnabas.sql.expressions.resolving import Resolver, is_aggregate, is_table_function
from barnabas.sql.expressions.scopes import Scope, calls_in
from barnabas.sql.expressions.typed import Typed, coerce
from barnabas.sql.metastore.metastore import DataSource
from barnabas.sql.metastore.schemas import WINDOWEND, WINDOWSTART, Column, Schema
from barnabas.sql.syntax import tree
from barnabas.sql.syntax.statements import Query, Role
from barnabas.sql.types.sql_types import BIGINT, STRING, SqlType

KEYS_MAX = 10_000
MIRRORED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def pull(query: Query, context: Context) -> Prepared:
    """A pull query on a table."""
    source = context.metastore.source(query.source.name, query.source.at)
    check_clauses(query)
    check_materialized(source, context, query)
    alias = query.source.alias or query.source.name
    scope = Scope(
        tuple(
            each for each in visible_columns(source, alias) if each.name not in ("ROWPARTITION", "ROWOFFSET")
        )
    )
    resolver = Resolver(scope, context.metastore.types)
    where = None
    limits = Limits([column.name for column in source.schema.key])
    if query.where is not None:
        where = replace(resolver, clause="WHERE").condition(query.where)
        for part in conjuncts(query.where):
            limits.narrow(part, resolver)
    keys, key_range = limits.keys(), limits.ranges.get(source.schema.key[0].name)
    if keys is None and key_range is None and (context.setting(TABLE_SCANS) or "").lower() == "false":
        names = ", ".join(column.name for column in source.schema.key)
        raise SqlError(
            f"WHERE clause missing key column(s) {names} for pull query, and scans are disabled. See "
            f"{TABLE_SCANS}.",
            query.at,
        )
    stage = Stage(None, scope, (), source.key_format, (source,), (alias,), source.window)  # type: ignore[arg-type]
    columns = expanded(query, stage, stage, resolver, shows_windows=True)
    parts = tuple(KeyPart(c.name, c.kind, (tree.Name(c.name, alias),)) for c in source.schema.key)
    schema = result_schema(columns, parts, source)
    read = PullRead(
        rows_of(source),
        tuple((each.name, guarded(each.typed.node, each.text)) for each in columns),
        None if where is None else guarded(where, "WHERE"),
        keys,
        key_range if keys is None else None,
        limits.ranges.get(WINDOWSTART, Range()),
        limits.ranges.get(WINDOWEND, Range()),
        query.limit,
    )
    result = Result(schema, True, limit=query.limit)
    work = QueryWork(WorkKind.PULL, sources=(rows_of(source),), result=result, pull=read)
    return Prepared(
        query,
        context.text,
        "SELECT",
        schema=schema,
        select=SelectKind.PULL,
        limit=query.limit,
        properties=context.properties,
        work=work,
    )


def guarded(node: e.Expression, text: str) -> e.Expression:
    return Guarded(node, f"Error computing expression {text}", "pull.query")


def check_clauses(query: Query) -> None:
    for what, is_there in (
        ("JOIN", bool(query.joins)),
        ("WINDOW", query.window is not None),
        ("GROUP BY", bool(query.group_by)),
        ("PARTITION BY", bool(query.partition_by)),
        ("HAVING", query.having is not None),
    ):
        if is_there:
            raise SqlError(
                f"Pull queries don't support {what} clauses. Add EMIT CHANGES for a push query.", query.at
            )
    for item in query.items:
        for call in calls_in(item.expression):
            if is_aggregate(call.function) or is_table_function(call.function):
                raise SqlError(
                    f"Pull queries don't support {call.function}: the table's query has it.",
                    call.at,
                )


def check_materialized(source: DataSource, context: Context, query: Query) -> None:
    """Tables that a query makes and source tables have their rows at hand."""
    if source.made_by is not None or source.is_source:
        return
    raise SqlError(
        f"The `{source.name}` table isn't queryable. To derive a queryable table, you can do 'CREATE TABLE "
        f"QUERYABLE_{source.name} AS SELECT * FROM {source.name}', or define it with CREATE SOURCE TABLE.",
        query.source.at or query.at,
    )


def result_schema(columns: list[Selected], parts: tuple[KeyPart, ...], source: DataSource) -> Schema:
    """Key columns and windows are marked as keys."""
    found = []
    for each in columns:
        is_key = any(each.canonical in part.same for part in parts)
        is_window = isinstance(each.canonical, tree.Name) and each.canonical.name in (WINDOWSTART, WINDOWEND)
        role = Role.KEY if is_key or (is_window and source.window is not None) else Role.VALUE
        found.append(Column(each.name, each.typed.kind, role))
    return Schema(tuple(found))


# ----------------------------------------------------------------------------------------------- the where


def conjuncts(expression: tree.Expression) -> list[tree.Expression]:
    if isinstance(expression, tree.Logical) and expression.operator == "AND":
        return [*conjuncts(expression.left), *conjuncts(expression.right)]
    return [expression]


@dataclass
class Limits:
    """The constraints of a condition's parts on key columns and bounds of windows."""

    key_names: list[str]
    values: dict[str, list[Any]] = field(default_factory=dict)
    ranges: dict[str, Range] = field(default_factory=dict)

    def narrow(self, part: tree.Expression, resolver: Resolver) -> None:
        if isinstance(part, tree.Comparison) and part.operator in MIRRORED:
            self._comparison(part, resolver)
        elif isinstance(part, tree.In) and not part.is_negated:
            self._options(part.operand, part.items, resolver)
        elif isinstance(part, tree.Between) and not part.is_negated:
            low = tree.Comparison(">=", part.operand, part.low)
            high = tree.Comparison("<=", part.operand, part.high)
            self._comparison(low, resolver)
            self._comparison(high, resolver)
        elif isinstance(part, tree.Logical):
            self._either(part, resolver)

    def _comparison(self, part: tree.Comparison, resolver: Resolver) -> None:
        operator, column, value = part.operator, part.left, part.right
        if not self._is_known(column):
            operator, column, value = MIRRORED[operator], part.right, part.left
        if not self._is_known(column):
            return
        assert isinstance(column, tree.Name)
        found = constant(value, self._kind(column, resolver), resolver, self._is_window(column))
        if found is None:
            return
        if operator == "=" and not self._is_window(column):
            self._narrow(column.name, [found])
        else:
            self._bound(column.name, operator, found)

    def _either(self, part: tree.Logical, resolver: Resolver) -> None:
        """`k = 1 OR k = 2` is `k IN (1, 2)`."""
        options: list[Any] = []
        name: str | None = None
        for each in disjuncts(part):
            inner = Limits(self.key_names)
            inner.narrow(each, resolver)
            if len(inner.values) != 1 or inner.ranges:
                return
            ((column, values),) = inner.values.items()
            if name not in (None, column):
                return
            name, options = column, [*options, *values]
        if name is not None:
            self._narrow(name, options)

    def _options(
        self, operand: tree.Expression, items: tuple[tree.Expression, ...], resolver: Resolver
    ) -> None:
        if not self._is_known(operand) or self._is_window(operand):
            return
        assert isinstance(operand, tree.Name)
        kind = self._kind(operand, resolver)
        found = [constant(each, kind, resolver, False) for each in items]
        if None not in found:
            self._narrow(operand.name, found)

    def _is_known(self, x: tree.Expression) -> bool:
        return isinstance(x, tree.Name) and (x.name in self.key_names or self._is_window(x))

    @staticmethod
    def _is_window(x: tree.Expression) -> bool:
        return isinstance(x, tree.Name) and x.name in (WINDOWSTART, WINDOWEND)

    @staticmethod
    def _kind(x: tree.Name, resolver: Resolver) -> SqlType:
        return resolver.scope.find(x, "WHERE").kind

    def _narrow(self, name: str, values: list[Any]) -> None:
        before = self.values.get(name)
        distinct = [value for index, value in enumerate(values) if value not in values[:index]]
        self.values[name] = distinct if before is None else [each for each in before if each in distinct]

    def _bound(self, name: str, operator: str, value: Any) -> None:
        before = self.ranges.get(name, Range())
        low, high = before.low, before.high
        if operator in (">", ">=", "="):
            new = Bound(value, operator != ">")
            tighter = low is None or (new.value, not new.is_inclusive) > (low.value, not low.is_inclusive)
            low = new if tighter else low
        if operator in ("<", "<=", "="):
            new = Bound(value, operator != "<")
            tighter = high is None or (new.value, new.is_inclusive) < (high.value, high.is_inclusive)
            high = new if tighter else high
        self.ranges[name] = Range(low, high)

    def keys(self) -> tuple[tuple[Any, ...], ...] | None:
        """All keys that may match, where each key column has its values."""
        if any(name not in self.values for name in self.key_names):
            return None
        count = 1
        for name in self.key_names:
            count *= len(self.values[name])
        if count > KEYS_MAX:
            return None
        return tuple(product(*(self.values[name] for name in self.key_names)))


def disjuncts(expression: tree.Expression) -> list[tree.Expression]:
    if isinstance(expression, tree.Logical) and expression.operator == "OR":
        return [*disjuncts(expression.left), *disjuncts(expression.right)]
    return [expression]


def constant(expression: tree.Expression, kind: SqlType, resolver: Resolver, is_window: bool) -> Any:
    """The value of an expression without columns as the column's type; None where it is none."""
    try:
        typed: Typed = replace(resolver, scope=Scope(())).resolve(expression)
        if is_window and typed.is_literal and typed.kind == STRING:
            typed = instant(typed)
        wanted = BIGINT if is_window else kind
        node = typed.node if typed.kind == wanted else coerce(typed, wanted, "WHERE").node
        return compile_expression(node)((None, None, 0, None, None))
    except Exception:
        return None  # the condition on each row decides


# ------------------------------------------------------------------------------------------------- rows


class RowContext:
    """The question of an expression to a task, for rows of a table."""

    def __init__(self, report: Callable[[str, str, Exception], None] | None = None) -> None:
        self.headers: tuple[tuple[str, bytes | None], ...] = ()
        self.partition, self.offset, self.topic = 0, -1, ""
        self._report = report

    def report(self, logger: str, message: str, error: Exception, row: Any = None) -> None:
        if self._report is not None:
            self._report(logger, message, error)


Puller = Callable[[Any, dict[str, Any], int], list[Any] | None]


def puller(read: PullRead, report: Callable[[str, str, Exception], None] | None = None) -> Puller:
    """A function (key, value, rowtime) that gives the row of the result, None where it does not match.

    Keys of windowed tables are `Windowed`."""
    context = RowContext(report)
    where = None if read.where is None else compile_expression(read.where)
    columns = [compile_expression(node) for _, node in read.columns]

    def row_of(key: Any, value: dict[str, Any], timestamp: int) -> list[Any] | None:
        scope = (key, value, timestamp, None, context)
        if where is not None and where(scope) is not True:
            return None
        return [column(scope) for column in columns]

    return row_of
