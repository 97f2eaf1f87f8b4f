"""GROUP BY, WINDOW and HAVING: a stage becomes a table of groups.

Arguments of aggregates are computed before rows move to their groups; after that only groups, results and
bounds of windows have names. Does not know: projections.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from barnabas.plans import expressions as e
from barnabas.plans.windows import SessionWindows, TimeWindows
from barnabas.sql.analysis.context import Context
from barnabas.sql.analysis.options import KAFKA_TYPES
from barnabas.sql.analysis.serdes import COUNT_BYTES, ROW_BYTES, RowSerde
from barnabas.sql.analysis.stages import KeyPart, Stage, filtered
from barnabas.sql.errors import SqlError
from barnabas.sql.expressions.aggregating import AggregateCall, SqlAggregates
from barnabas.sql.expressions.nodes import Guarded, KeyColumn, NewKey
from barnabas.sql.expressions.resolving import Resolver, is_aggregate
from barnabas.sql.expressions.scopes import Place, Scope, Visible, calls_in
from barnabas.sql.expressions.signatures import Argument, choose, result_of, signatures_of
from barnabas.sql.expressions.typed import Typed, coerce
from barnabas.sql.functions.aggregates import LIMIT_MAX
from barnabas.sql.functions.registry import table
from barnabas.sql.functions.user import USER_FUNCTIONS
from barnabas.sql.metastore.schemas import WINDOWEND, WINDOWSTART, Column, Format, WindowedKeys
from barnabas.sql.syntax import tree
from barnabas.sql.syntax.printing import expression_text
from barnabas.sql.syntax.statements import Query, Role, Window
from barnabas.sql.types.sql_types import BIGINT
from barnabas.streams.dsl.streams import KStream

DAY_MS = 86_400_000
STORE = "Aggregate-Materialize"  # its name stays when a WHERE comes or goes
RESULT, ARGUMENT = "KSQL_AGG_VARIABLE_", "KSQL_AGG_ARGUMENT_"


def aggregates_in(query: Query) -> list[tree.Call]:
    parts = [item.expression for item in query.items]
    if query.having is not None:
        parts.append(query.having)
    return [call for part in parts for call in calls_in(part) if is_aggregate(call.function)]


@dataclass
class Groups:
    """Names that expressions after GROUP BY may use: groups, aggregates (collected as they are met)."""

    before: Resolver
    groups: list[tuple[tree.Expression, Typed]]
    context: Context
    arguments: dict[str, tuple[tree.Expression, Typed]] = field(default_factory=dict)
    calls: list[tuple[tree.Expression, AggregateCall]] = field(default_factory=list)
    window: bool = False

    def special(self, expression: tree.Expression) -> Typed | None:
        canonical = self.before.scope.canonical(expression)
        for index, (group, typed) in enumerate(self.groups):
            if canonical == group:
                return Typed(KeyColumn(index, f"group {index}", typed.kind), typed.kind)
        if isinstance(expression, tree.Call) and is_aggregate(expression.function):
            return self._aggregate(expression, canonical)
        if isinstance(expression, tree.Name):
            if self.window and expression.name in (WINDOWSTART, WINDOWEND):
                is_start = expression.name == WINDOWSTART
                return Typed(e.Meta("window_start" if is_start else "window_end"), BIGINT, is_time=True)
            self.before.scope.find(expression, "SELECT")  # an unknown name is another error
            raise SqlError(
                "Non-aggregate SELECT expression(s) not part of GROUP BY: "
                f"{expression_text(expression)}\nEither add the column(s) to the GROUP BY or remove them "
                "from the SELECT.",
                expression.at,
            )
        return None

    def _aggregate(self, call: tree.Call, canonical: tree.Expression) -> Typed:
        for known, made in self.calls:
            if known == canonical:
                return Typed(e.Column(made.field), made.kind)
        for inner in call.arguments:
            nested = [each for each in calls_in(inner) if is_aggregate(each.function)]
            if nested:
                raise SqlError(
                    f"Aggregate functions can not be nested: {nested[0].function}() within {call.function}()",
                    call.at,
                )
        made = self._made(call)
        self.calls.append((canonical, made))
        return Typed(e.Column(made.field), made.kind)

    def _made(self, call: tree.Call) -> AggregateCall:
        given = [] if call.arguments == (tree.Star(),) else list(call.arguments)
        if given and isinstance(given[0], tree.Star):
            raise SqlError(f"{call.function}(*) is not supported", call.at)
        typed = self.before.all(given)
        name = f"{RESULT}{len(self.calls)}"
        nodes: list[e.Expression] = []
        users = [each for each in USER_FUNCTIONS.named(call.function) if each.kind == "aggregate"]
        if users:
            described = [Argument(each.kind, each.is_literal) for each in typed]
            choice = choose(call.function, described)
            typed = [
                coerce(each, kind, call.function)
                for each, kind in zip(typed, choice.wanted, strict=True)
                if kind is not None
            ]
            kind, user = result_of(choice, described), choice.signature.user
        else:
            kind, user = None, None
        for expression, each in zip(given, typed, strict=True):
            nodes.append(self._argument(expression, each))
        literals = tuple(each.value if each.is_literal else None for each in typed)
        kinds = tuple(each.kind for each in typed)
        if kind is None:
            self._check(call, typed)
            limit = limit_of(self.context, call.function)
            draft = AggregateCall(name, call.function, tuple(nodes), kinds, literals, BIGINT, limit=limit)
            try:
                return replace(draft, kind=draft.code().result_type)
            except SqlError as error:
                raise SqlError(error.message, call.at) from None
        return AggregateCall(name, call.function, tuple(nodes), kinds, literals, kind, user)

    def _check(self, call: tree.Call, typed: list[Typed]) -> None:
        """SqlError with the signatures where the number of arguments is wrong."""
        known = signatures_of_aggregate(call.function)
        if call.function == "COUNT" and len(typed) > 1:
            raise SqlError(f"COUNT takes one column or *. Valid alternatives are:\n{known}", call.at)

    def _argument(self, expression: tree.Expression, typed: Typed) -> e.Expression:
        if typed.is_literal:
            return typed.node
        canonical = self.before.scope.canonical(expression)
        for name, (known, _) in self.arguments.items():
            if known == canonical:
                return e.Column(name)
        name = f"{ARGUMENT}{len(self.arguments)}"
        self.arguments[name] = (canonical, typed)
        return e.Column(name)


def limit_of(context: Context, function: str) -> int | None:
    """`ksql.functions.<name>.limit`; a negative one is as many as there may be."""
    name = f"ksql.functions.{function.lower()}.limit"
    text = context.setting(name)
    if text is None:
        return None
    try:
        limit = int(text)
    except ValueError:
        raise SqlError(f"{name} is {text!r}: a whole number is needed") from None
    return min(limit, LIMIT_MAX) if limit >= 0 else LIMIT_MAX


def signatures_of_aggregate(name: str) -> str:
    row = table().get(name)
    return "\n".join(row.signatures) if row is not None else "\n".join(s.text for s in signatures_of(name))


def windows_of(window: Window) -> tuple[TimeWindows | SessionWindows, WindowedKeys]:
    """The plan's windows. Without GRACE PERIOD rows may be late by a day, counted from the window's start."""
    size = window.size.ms
    if size <= 0:
        raise SqlError(f"A window of {window.size} is empty")
    grace = window.grace.ms if window.grace is not None else max(DAY_MS - size, 0)
    if window.retention is not None and window.retention.ms < size + grace:
        raise SqlError(
            f"The retention of a window must be at least its size and its grace together: RETENTION is "
            f"{window.retention.ms} ms, size + grace are {size + grace} ms. Lower the GRACE PERIOD or raise "
            "the RETENTION."
        )
    kept = size + grace if window.retention is None else window.retention.ms
    if window.kind == "SESSION":
        return SessionWindows(size, grace), WindowedKeys("SESSION", None, kept)
    advance = window.advance.ms if window.advance is not None else size
    if not 0 < advance <= size:
        raise SqlError(f"A window of {size} ms cannot advance by {advance} ms: 1 to {size} ms are possible")
    return TimeWindows(size, advance, grace), WindowedKeys(window.kind, size, kept)


@dataclass(frozen=True)
class Grouped:
    """The stage of groups, and the resolver for what comes after them."""

    stage: Stage
    resolver: Resolver


def check_query(stage: Stage, query: Query) -> None:
    calls = aggregates_in(query)
    if query.group_by and not calls:
        raise SqlError(
            "GROUP BY requires aggregate functions in either the SELECT or HAVING clause.", query.at
        )
    if calls and not query.group_by:
        names = ", ".join(dict.fromkeys(call.function for call in calls))
        raise SqlError(
            f"Use of aggregate functions requires a GROUP BY clause. Aggregate function(s): {names}",
            calls[0].at,
        )
    if query.window is not None and not query.group_by:
        raise SqlError("WINDOW clause requires a GROUP BY clause.", query.at)
    if query.having is not None and not query.group_by:
        raise SqlError("HAVING requires a GROUP BY clause.", query.having.at)
    if query.window is not None and stage.is_table:
        raise SqlError("WINDOW clause is only supported for streams.", query.at)
    if query.emit == "FINAL" and query.window is None:
        raise SqlError("EMIT FINAL is only supported for windowed aggregations.", query.at)
    if query.group_by and query.partition_by:
        raise SqlError("Only one of PARTITION BY and GROUP BY is supported in a query.", query.at)


def grouped(
    stage: Stage,
    query: Query,
    resolver: Resolver,
    context: Context,
    logger: str,
    wanted: Format | None,
    must_fit: bool,
) -> Grouped:
    """The table of groups, with its HAVING. `wanted` is the format of keys that a statement asks for;
    `must_fit`: a format of one column is refused for several groups, else JSON takes its place."""
    before = replace(resolver, clause="GROUP BY")
    groups: list[tuple[tree.Expression, Typed]] = []
    for expression in query.group_by:
        if any(is_aggregate(call.function) for call in calls_in(expression)):
            raise SqlError(f"GROUP BY does not take aggregates: {expression_text(expression)}", expression.at)
        groups.append((stage.scope.canonical(expression), before.resolve(expression)))
    known = Groups(replace(resolver, clause="SELECT"), groups, context, window=query.window is not None)
    after = replace(resolver, special=known.special)
    # Aggregates are collected before the plan is built: all clauses after GROUP BY are resolved here once.
    for item in query.items:
        if not isinstance(item.expression, tree.Star | tree.FieldsOf):
            after.resolve(item.expression)
    having = None
    if query.having is not None:
        having = replace(after, clause="HAVING").condition(query.having)
    form = group_format(wanted or stage.key_format, known.groups, must_fit)
    aggregated = _aggregated(stage, query, known, logger, form)
    if having is not None:
        text = expression_text(query.having) if query.having is not None else ""
        aggregated = filtered(aggregated, having, f"{logger}.HavingFilter", text)
    return Grouped(aggregated, after)


def group_format(form: Format, groups: list[tuple[tree.Expression, Typed]], must_fit: bool) -> Format:
    if not must_fit and form.name == "KAFKA":
        is_plain = len(groups) == 1 and groups[0][1].kind.base in KAFKA_TYPES
        return form if is_plain else Format("JSON", {}, is_wrapped=False)
    if form.name == "KAFKA" and len(groups) > 1:
        shown = ", ".join(
            f"`{n}` {t.kind} KEY" for n, (_, t) in zip(group_names(groups), groups, strict=True)
        )
        raise SqlError(
            f"Key format does not support schema.\nformat: KAFKA\nschema: {shown}\nreason: The 'KAFKA' "
            "format only supports a single field. Use another KEY_FORMAT (JSON, for example)."
        )
    if form.name == "NONE":
        return Format("KAFKA" if len(groups) == 1 else "JSON", {}, is_wrapped=False)
    return form


def _aggregated(stage: Stage, query: Query, known: Groups, logger: str, form: Format) -> Stage:
    arguments = [
        (name, Guarded(typed.node, f"Error computing expression {expression_text(expression)}", logger))
        for name, (expression, typed) in known.arguments.items()
    ]
    row = e.Struct(tuple(arguments))
    parts = tuple(
        Guarded(typed.node, f"Error computing grouping expression {expression_text(expression)}", logger)
        for expression, typed in known.groups
    )
    key = NewKey(parts, drops_nulls=True, logger=f"{logger}.GroupBy")
    names = group_names(known.groups)
    columns = tuple(
        Column(name, typed.kind, Role.KEY) for name, (_, typed) in zip(names, known.groups, strict=True)
    )
    calls = SqlAggregates(tuple(call for _, call in known.calls), f"{logger}.Aggregate")
    serde = RowSerde(form, columns, True)
    kept = COUNT_BYTES if calls.is_count else ROW_BYTES
    window = None
    flow: Any
    if isinstance(stage.flow, KStream):
        is_same = (
            len(stage.key) == len(known.groups)
            and stage.window is None
            and all(group in part.same for part, (group, _) in zip(stage.key, known.groups, strict=True))
        )
        if is_same:
            form = stage.key_format
            flow = stage.flow.map_values(row, value=ROW_BYTES, with_key=True)
            groups = flow.group_by_key(key=RowSerde(form, columns, True), value=ROW_BYTES)
        else:
            groups = stage.flow.map((key, row), key=serde, value=ROW_BYTES).group_by_key()
        if query.window is not None:
            windows, window = windows_of(query.window)
            groups = groups.windowed_by(windows, retention_ms=window.retention_ms)
            if query.emit == "FINAL":
                groups = groups.final()
        flow = groups.aggregate_with(calls, value=kept, store=STORE)
    else:
        _check_undo(known, query)
        flow = stage.flow.group_by((key, row), key=serde, value=ROW_BYTES).aggregate_with(
            calls, value=kept, store=STORE
        )
    flow = replace(flow, value_serde=ROW_BYTES)  # that of the results
    key_parts = tuple(
        KeyPart(name, typed.kind, (group,)) for name, (group, typed) in zip(names, known.groups, strict=True)
    )
    scope = Scope(
        tuple(
            Visible(
                column.name,
                column.kind,
                KeyColumn(i, column.name, column.kind),
                getattr(known.groups[i][0], "source", None),
                Place.KEY,
            )
            for i, column in enumerate(columns)
        )
    )
    return stage.after(
        flow,
        "AGGREGATE",
        f"{logger}.Aggregate",
        scope=scope,
        key=key_parts,
        key_format=form,
        window=window,
        what_key="grouping expression",
    )


def _check_undo(known: Groups, query: Query) -> None:
    wrong = [call.name for _, call in known.calls if call.code().undo is None]
    if wrong:
        names = ", ".join(dict.fromkeys(wrong))
        raise SqlError(
            f"The aggregation function(s) ({names}) cannot be applied to a table source, only to a stream "
            "source.",
            query.at,
        )


def group_names(groups: list[tuple[tree.Expression, Typed]]) -> list[str]:
    """Names of columns; other expressions get KSQL_COL_n."""
    names: list[str] = []
    for index, (expression, _) in enumerate(groups):
        name = expression.name if isinstance(expression, tree.Name | tree.Field) else f"KSQL_COL_{index}"
        names.append(name if name not in names else f"{name}_{index}")
    return names
