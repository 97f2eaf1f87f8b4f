"""Joins of a SELECT: which kind two sources allow, how their rows meet, and which key the result has.

Left-deep: each join adds one source to the stage before it. All columns travel in the row as ALIAS_NAME.
Does not know: projections.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from barnabas.plans import expressions as e
from barnabas.plans.windows import JoinWindows
from barnabas.sql.analysis.explaining import Step
from barnabas.sql.analysis.options import check_columns
from barnabas.sql.analysis.serdes import ROW_BYTES, RowSerde
from barnabas.sql.analysis.stages import KeyPart, Stage, schema_text
from barnabas.sql.errors import SqlError
from barnabas.sql.expressions.nodes import Guarded, KeyColumn, NewKey
from barnabas.sql.expressions.resolving import Resolver
from barnabas.sql.expressions.scopes import Place, Scope, Visible, names_in
from barnabas.sql.expressions.typed import Typed
from barnabas.sql.metastore.schemas import PSEUDO_COLUMNS, ROWTIME, Column, Format
from barnabas.sql.syntax import tree
from barnabas.sql.syntax.printing import expression_text
from barnabas.sql.syntax.statements import Join, Role
from barnabas.sql.types.sql_types import SqlType
from barnabas.streams.dsl.streams import KStream
from barnabas.streams.dsl.tables import KTable

DAY_MS = 86_400_000
SYNTHETIC_KEY = "ROWKEY"


@dataclass(frozen=True)
class JoinSide:
    """A stage and the expression that it is joined by."""

    stage: Stage
    on: tree.Expression
    typed: Typed

    @property
    def is_key(self) -> bool:
        """Whether the expression is the stage's key, so that its rows lie where they are needed."""
        canonical = self.stage.scope.canonical(self.on)
        return len(self.stage.key) == 1 and canonical in self.stage.key[0].same

    @property
    def is_column(self) -> bool:
        return isinstance(self.on, tree.Name)


def joined(left: Stage, right: Stage, join: Join, resolver: Resolver, logger: str) -> Stage:
    """The stage of a join."""
    check_sources(left, right, join)
    one, two = sides(left, right, join, resolver)
    if left.is_table and right.is_table:
        return _tables(one, two, join, logger)
    check_windows(left, right, join)
    if left.is_table:
        raise SqlError(
            f"Join between table {left.aliases[0]} and stream {right.aliases[0]} is not supported: "
            "put the stream on the left side",
            join.at,
        )
    if right.is_table:
        return _stream_table(one, two, join, logger)
    return _streams(one, two, join, logger)


def check_sources(left: Stage, right: Stage, join: Join) -> None:
    source = right.sources[0]
    if source.name in [each.name for each in left.sources]:
        raise SqlError(
            f"Can not join '{source.name}' to '{source.name}': self joins are not yet supported.", join.at
        )
    if right.aliases[0] in left.aliases:
        raise SqlError(f"Each side of a join needs a name of its own: {right.aliases[0]}", join.at)


def sides(left: Stage, right: Stage, join: Join, resolver: Resolver) -> tuple[JoinSide, JoinSide]:
    on = join.on
    if not isinstance(on, tree.Comparison) or on.operator != "=":
        raise SqlError(
            f"Unsupported join expression: {expression_text(on)}. Only equality of one expression of each "
            "side is supported.",
            on.at or join.at,
        )
    both = Scope((*left.scope.columns, *right.scope.columns))
    resolver = replace(resolver, scope=both, clause="JOIN ON")
    found = []
    for part in (on.left, on.right):
        typed = resolver.resolve(part)
        sources = {both.find(name, "JOIN ON").source for name in names_in(part)}
        found.append((part, typed, sources))
    right_alias = right.aliases[0]
    if found[0][2] == {right_alias}:
        found.reverse()
    if found[1][2] != {right_alias} or right_alias in found[0][2] or not found[0][2]:
        raise SqlError(
            f"Invalid comparison expression '{expression_text(on)}' in join. Each side of the join "
            "comparison must contain references from exactly one source.",
            on.at,
        )
    one, two = found
    if one[1].kind != two[1].kind:
        raise SqlError(
            f"Invalid join condition: types don't match. Got {expression_text(one[0])}{{{one[1].kind}}} = "
            f"{expression_text(two[0])}{{{two[1].kind}}}.",
            on.at,
        )
    return JoinSide(left, one[0], one[1]), JoinSide(right, two[0], two[1])


def check_windows(left: Stage, right: Stage, join: Join) -> None:
    one, two = left.window, right.window
    if (one is None) == (two is None) and (one is None or two is None or one.kind == two.kind):
        return
    kinds = [each.kind if each is not None else "none" for each in (one, two)]
    raise SqlError(
        f"Incompatible windowed sources: {left.aliases[0]} has {kinds[0]} windows, {right.aliases[0]} has "
        f"{kinds[1]}. Both sides need the same windows.",
        join.at,
    )


def check_partitions(left: Stage, right: Stage, join: Join) -> None:
    if left.partitions is None or right.partitions is None or left.partitions == right.partitions:
        return
    raise SqlError(
        f"Can't join `{left.aliases[0]}` with `{right.aliases[0]}` since the number of partitions don't "
        f"match. `{left.aliases[0]}` partitions = {left.partitions}; `{right.aliases[0]}` partitions = "
        f"{right.partitions}. Please repartition either one so that the number of partitions match.",
        join.at,
    )


# --------------------------------------------------------------------------------------------------- keys


def result_key(one: JoinSide, two: JoinSide, kind: str, scope: Scope) -> tuple[tuple[KeyPart, ...], str]:
    """The key of the result, and what it is called in errors."""
    same: list[tree.Expression] = []
    for side in (one, two):
        canonical = side.stage.scope.canonical(side.on)
        if side.is_key:
            same += [each for each in side.stage.key[0].same if each not in same]
        elif side.is_column and canonical not in same:
            same.append(canonical)
    columns = [each for each in same if isinstance(each, tree.Name)]
    if kind == "FULL" or not columns:
        names = {each.name for each in scope.columns}
        name = SYNTHETIC_KEY
        number = 0
        while name in names:
            number += 1
            name = f"{SYNTHETIC_KEY}_{number}"
        return (KeyPart(name, one.typed.kind, (tree.Name(name),)),), "join expression"
    return (KeyPart(columns[0].name, one.typed.kind, tuple(columns)),), "join expression"


def with_synthetic(scope: Scope, key: tuple[KeyPart, ...], kind: SqlType) -> Scope:
    """The scope with ROWKEY, where the key has that name."""
    name = key[0].name
    if key[0].same != (tree.Name(name),):
        return scope
    made = Visible(name, kind, KeyColumn(0, name, kind), None, Place.KEY)
    return Scope((made, *(each for each in scope.columns if each.source is not None or each.name != name)))


def after_join(one: JoinSide, two: JoinSide, join: Join, flow: Any, logger: str, **changes: Any) -> Stage:
    left, right = one.stage, two.stage
    # Both rows are one now. ROWTIME without a source is that of the joined row.
    rowtime = Visible(ROWTIME, PSEUDO_COLUMNS[ROWTIME], e.Meta("timestamp"), None, Place.PSEUDO)
    columns = left.scope.columns
    if not one.is_key:  # ROWKEY of a join before is gone with its key
        columns = tuple(each for each in columns if each.place != Place.KEY or each.source is not None)
    scope = Scope((*columns, *right.scope.columns))
    if not left.is_join:
        scope = scope.with_columns([rowtime])
    key, what = result_key(one, two, join.kind, scope)
    given: dict[str, Any] = {
        "key": key,
        "what_key": what,
        "scope": with_synthetic(scope, key, one.typed.kind),
        "sources": (*left.sources, *right.sources),
        "aliases": (*left.aliases, *right.aliases),
        **changes,
    }
    stage = replace(left, flow=flow, **given)
    step = Step("JOIN", schema_text(stage), logger, (left.step, right.step))
    return replace(stage, step=step)


def row_of(left: Stage, right: Stage, is_swapped: bool = False) -> e.Struct:
    """The joined row: the columns of both. `is_swapped`: the plan has the right source on its left side."""
    one, two = ("right", "left") if is_swapped else ("left", "right")
    fields = [(name, e.Column(name, one)) for name in names_of(left)]  # type: ignore[arg-type]
    fields += [(name, e.Column(name, two)) for name in names_of(right)]  # type: ignore[arg-type]
    return e.Struct(tuple(fields))


def names_of(stage: Stage) -> list[str]:
    """Names of the row's fields."""
    return list(dict.fromkeys(c.node.name for c in stage.scope.columns if isinstance(c.node, e.Column)))


# ---------------------------------------------------------------------------------------------- of streams


def first_format(*forms: Format) -> Format:
    """The first format that has keys."""
    return next((form for form in forms if form.name != "NONE"), Format("KAFKA", {}, is_wrapped=False))


def keyed(side: JoinSide, form: Format, logger: str, must: bool = False) -> KStream:
    """The stream by the expression that it is joined by; it moves only where that is not its key."""
    flow = side.stage.flow
    assert isinstance(flow, KStream)
    if side.is_key and not must:
        return flow
    if side.stage.window is not None:
        raise SqlError(
            f"{side.stage.aliases[0]} is windowed: it is joined by its key only, not by "
            f"{expression_text(side.on)}",
            side.on.at,
        )
    name = side.on.name if isinstance(side.on, tree.Name) else SYNTHETIC_KEY
    columns = (Column(name, side.typed.kind, Role.KEY),)
    check_columns(form, columns, True, side.on.at)
    serde = RowSerde(form, columns, True)
    value = Guarded(side.typed.node, f"Error computing join expression {expression_text(side.on)}", logger)
    return flow.select_key(NewKey((value,)), key=serde)


def _streams(one: JoinSide, two: JoinSide, join: Join, logger: str) -> Stage:
    if join.before is None:
        raise SqlError(
            f"{join.kind} JOIN between streams needs WITHIN: {one.stage.aliases[0]} and "
            f"{two.stage.aliases[0]}",
            join.at,
        )
    before = join.before.ms
    after = join.after.ms if join.after is not None else before
    # The window is that of the left row: a right row may be `before` earlier and `after` later.
    is_eager = join.grace is None
    grace = join.grace.ms if join.grace is not None else max(DAY_MS - before - after, 0)
    form = first_format(one.stage.key_format, two.stage.key_format)
    left = keyed(one, form, logger, must=one.stage.key_format.name != form.name)
    right = keyed(two, form, logger, must=two.stage.key_format.name != form.name)
    if not left.needs_repartition and not right.needs_repartition:
        check_partitions(one.stage, two.stage, join)
    is_swapped = join.kind == "RIGHT"
    windows = JoinWindows(after, before, grace) if is_swapped else JoinWindows(before, after, grace)
    row = row_of(one.stage, two.stage, is_swapped)
    more: dict[str, Any] = {"value": ROW_BYTES}
    if join.kind == "INNER":
        flow = left.join(right, row, windows, **more)
    elif join.kind == "FULL":
        flow = left.outer_join(right, row, windows, is_eager=is_eager, **more)
    elif is_swapped:
        flow = right.left_join(left, row, windows, is_eager=is_eager, **more)
    else:
        flow = left.left_join(right, row, windows, is_eager=is_eager, **more)
    return after_join(one, two, join, flow, logger, key_format=form, partitions=moved(left, one, right, two))


def moved(left: KStream, one: JoinSide, right: KStream, two: JoinSide) -> int | None:
    """The number of partitions after a join: that of the side which did not move."""
    if left.needs_repartition and not right.needs_repartition:
        return two.stage.partitions
    return one.stage.partitions


def no_window(join: Join, what: str) -> None:
    if join.before is not None:
        raise SqlError(
            f"A window definition was provided for a {what} join. These joins are not windowed. "
            "Please remove the WITHIN clause.",
            join.at,
        )


def _stream_table(one: JoinSide, two: JoinSide, join: Join, logger: str) -> Stage:
    no_window(join, "Stream-Table")
    if join.kind not in ("INNER", "LEFT"):
        raise SqlError(
            f"Invalid join type: {join.kind} JOIN between stream {one.stage.aliases[0]} and table "
            f"{two.stage.aliases[0]} is not supported; INNER and LEFT are.",
            join.at,
        )
    if not two.is_key:
        raise SqlError(
            "Invalid join condition: stream-table joins require to join on the table's primary key. "
            f"Got {expression_text(join.on)}.",
            join.on.at,
        )
    if two.stage.window is not None and one.stage.window is None:
        raise SqlError(
            f"Table {two.stage.aliases[0]} is windowed, stream {one.stage.aliases[0]} is not", join.at
        )
    form = two.stage.key_format
    left = keyed(one, form, logger, must=one.stage.key_format.name != form.name and one.stage.window is None)
    if not left.needs_repartition:
        check_partitions(one.stage, two.stage, join)
    row = row_of(one.stage, two.stage)
    assert isinstance(two.stage.flow, KTable)
    if join.kind == "INNER":
        flow = left.join(two.stage.flow, row, value=ROW_BYTES)
    else:
        flow = left.left_join(two.stage.flow, row, value=ROW_BYTES)
    partitions = two.stage.partitions if left.needs_repartition else one.stage.partitions
    return after_join(one, two, join, flow, logger, key_format=form, partitions=partitions)


# ----------------------------------------------------------------------------------------------- of tables


def _tables(one: JoinSide, two: JoinSide, join: Join, logger: str) -> Stage:
    no_window(join, "Table-Table")
    if not two.is_key:
        raise SqlError(
            "Invalid join condition: table-table joins require to join on the primary key of the right input "
            f"table. Got {expression_text(join.on)}.",
            join.on.at,
        )
    if not one.is_key:
        return _foreign(one, two, join, logger)
    left, right = one.stage.flow, two.stage.flow
    assert isinstance(left, KTable) and isinstance(right, KTable)
    if one.stage.key_format.name == two.stage.key_format.name:
        check_partitions(one.stage, two.stage, join)
    else:
        right = moved_table(two, one.stage.key_format, join)
    is_swapped = join.kind == "RIGHT"
    row = row_of(one.stage, two.stage, is_swapped)
    if join.kind == "INNER":
        flow = left.join(right, row, value=ROW_BYTES)
    elif join.kind == "FULL":
        flow = left.outer_join(right, row, value=ROW_BYTES)
    elif is_swapped:
        flow = right.left_join(left, row, value=ROW_BYTES)
    else:
        flow = left.left_join(right, row, value=ROW_BYTES)
    return after_join(one, two, join, flow, logger)


def moved_table(side: JoinSide, form: Format, join: Join) -> KTable:
    """The table with its key in another format: its changes go through a repartition topic, deletes too,
    because equal keys lie in the same partition only where their bytes are equal."""
    stage, flow = side.stage, side.stage.flow
    assert isinstance(flow, KTable)
    if stage.window is not None:
        raise SqlError(
            f"{stage.aliases[0]} is windowed: a table that it is joined with needs the key format "
            f"{stage.key_format}, not {form}",
            join.at,
        )
    (part,) = stage.key
    columns = (Column(part.name, part.kind, Role.KEY),)
    check_columns(form, columns, True, side.on.at)
    key = NewKey((KeyColumn(0, part.name, part.kind),))
    moved: KTable = flow.to_stream().select_key(key, key=RowSerde(form, columns, True)).to_table()
    return moved


def _foreign(one: JoinSide, two: JoinSide, join: Join, logger: str) -> Stage:
    if join.kind not in ("INNER", "LEFT"):
        raise SqlError(
            f"Invalid join type: {join.kind} JOIN by a foreign key is not supported; INNER and LEFT are.",
            join.at,
        )
    for side in (one, two):
        if side.stage.window is not None:
            raise SqlError(f"{side.stage.aliases[0]} is windowed: it has no foreign-key join", join.at)
    left, right = one.stage.flow, two.stage.flow
    assert isinstance(left, KTable) and isinstance(right, KTable)
    value = Guarded(one.typed.node, f"Error computing join expression {expression_text(one.on)}", logger)
    add = left.join if join.kind == "INNER" else left.left_join
    row = row_of(one.stage, two.stage)
    # Kept, because nodes below need the old values: a row that stops passing WHERE is deleted.
    store = f"{'-'.join((*one.stage.aliases, *two.stage.aliases))}-ForeignKeyJoin"
    flow = add(right, row, foreign_key=NewKey((value,)), value=ROW_BYTES, store=store)
    stage = after_join(one, two, join, flow, logger)
    return replace(
        stage,
        key=one.stage.key,
        what_key="primary key of the left table",
        scope=Scope((*one.stage.scope.columns, *stage.scope.columns[len(one.stage.scope.columns) :])),
    )
