"""Tables over columns: sources, filters and mapped values of tables, joins that look one up.

A table's rows of this batch stay with their order, so that a record of a stream finds the row that was the
newest when it came. Nodes that need a row's old value run record by record. Does not know: aggregations.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa

from barnabas.plans import nodes as n
from barnabas.plans.interpreter.state.tables import TableState
from barnabas.plans.interpreter.tables import sends_old_values
from barnabas.streams.columns import kernel
from barnabas.streams.columns.column import Column, Fields, NotColumnar, Rows, plain_array
from barnabas.streams.columns.expressions import truths
from barnabas.streams.columns.formats import encode
from barnabas.streams.columns.grouping import Groups, KeyIndex
from barnabas.streams.columns.stateless import joiner, of_key_and_value, of_value
from barnabas.streams.columns.task import ColumnTask, Results, Step, builds, joined


def key_bytes(task: ColumnTask, store: str, keys: Column) -> pa.Array:
    spec = task.task.state(store).spec
    topic = spec.changelog_topic(task.task.application_id) or store
    return encode(spec.key_serde, keys, topic, True)


def without_nulls(task: ColumnTask, rows: Rows, *, takes_null_values: bool = False) -> Rows:
    nulls = rows.keys.is_null
    if not takes_null_values:
        nulls = nulls | rows.values.is_null
    if nulls.any():
        task.task.dropped["null key" if takes_null_values else "null key or value"] += int(nulls.sum())
        return rows.where(~nulls)
    return rows


@builds(n.TableSource)
def table_source(task: ColumnTask, node: n.TableSource) -> Step:
    if sends_old_values(task.task, node.name):
        raise NotColumnar("a step below needs the old values of the table")
    if node.store is None:
        return lambda rows: without_nulls(task, rows, takes_null_values=True)
    state, store = task.task.state(node.store), node.store
    if not isinstance(state, TableState):
        raise NotColumnar("a versioned table")

    def run(rows: Rows) -> Results:
        rows = without_nulls(task, rows, takes_null_values=True)
        data = key_bytes(task, store, rows.keys)
        lasts = Groups(data).lasts()

        def write() -> None:
            newest = data.take(pa.array(lasts)).to_pylist()
            values = rows.values.take(lasts).items
            for key, value, time in zip(newest, values, rows.times[lasts].tolist(), strict=True):
                state.put(key, value, time)

        task.pending.append(write)
        return rows

    return run


def _check(task: ColumnTask, node: n.TableNode) -> None:
    if node.store is not None or sends_old_values(task.task, node.name):
        raise NotColumnar("a materialized table, or one whose old values a step below needs")


@builds(n.TableFilter)
def table_filter(task: ColumnTask, node: n.TableFilter) -> Step:
    _check(task, node)
    above = task.task.by_name[node.parents[0]]
    if node.is_quiet and not isinstance(above, n.StreamAggregate | n.WindowAggregate):
        raise NotColumnar("a filter that has to know whether a row passed before")
    passes = of_key_and_value(node.predicate)

    def places(rows: Rows) -> Any:
        """The rows that pass."""
        there = np.flatnonzero(~rows.values.is_null)
        holds = truths(passes(rows.take(there)))
        return there[~holds if node.is_negated else holds]

    def run(rows: Rows) -> Results:
        kept = places(rows)
        found = _only(rows, kept, rows.values.take(kept))
        if not node.is_quiet:
            return found
        assert rows.old is not None
        is_seen = np.zeros(len(rows), np.bool_)
        is_seen[kept] = True
        is_seen[places(rows.with_values(rows.old))] = True  # a tombstone ends what passed before
        return replace(found, old=None).where(is_seen)

    return run


@builds(n.TableMapValues)
def table_map_values(task: ColumnTask, node: n.TableMapValues) -> Step:
    _check(task, node)
    value_of = of_value(node.function, node.takes_key)

    def run(rows: Rows) -> Results:
        there = np.flatnonzero(~rows.values.is_null)
        return _only(rows, there, value_of(rows.take(there)))

    return run


def _only(rows: Rows, places: Any, values: Column) -> Rows:
    """Rows with values at these places, and null at the others."""
    if len(places) == len(rows):
        return rows.with_values(values)
    return rows.with_values(spread(values, places, len(rows)))


def spread(values: Column, places: Any, count: int) -> Column:
    if isinstance(values, Fields):
        at = np.full(count, -1, np.int64)
        at[places] = np.arange(len(places))
        return pick(values, at)
    if values.is_array:
        at = np.full(count, -1, np.int64)
        at[places] = np.arange(len(places))
        return Column(values.array.take(pa.array(at, mask=at < 0)))
    items: list[Any] = [None] * count
    for place, item in zip(places.tolist(), values.items, strict=True):
        items[place] = item
    return Column(items=items)


def pick(values: Column, at: Any) -> Column:
    """The value at each place, null where the place is -1."""
    if isinstance(values, Fields):
        nulls = at < 0
        if values.nulls is not None:
            nulls = nulls | values.nulls[at]
        columns = [pick(each, at) for each in values.columns]
        return Fields(values.names, columns, len(at), nulls, is_tuple=values.is_tuple)
    if values.is_array:
        return Column(values.array.take(pa.array(at, mask=at < 0)))
    items = values.items
    return Column(items=[None if place < 0 else items[place] for place in at.tolist()])


def join_rows(rows: Rows, right: Column, node: Any, join: Any) -> Results:
    """The results of a lookup: an inner join leaves out rows that found nothing."""
    if node.kind == "inner":
        found = np.flatnonzero(~right.is_null)
        rows, right = rows.take(found), right.take(found)
    if not len(rows):
        return None
    joined_values: Column = join(replace(rows, right=right))
    return rows.with_values(joined_values)


@builds(n.StreamTableJoin)
def stream_table_join(task: ColumnTask, node: n.StreamTableJoin) -> Step:
    if node.buffer is not None:
        raise NotColumnar("a join with a grace period keeps records back")
    look_up = _getter(task, node.table)
    join = joiner(node.joiner, node.takes_key)

    def run(rows: Rows) -> Results:
        nulls = rows.values.is_null | (rows.keys.is_null if node.kind == "inner" else False)
        if nulls.any():
            task.task.dropped["null key or value"] += int(nulls.sum())
            rows = rows.where(~nulls)
        if not len(rows):
            return None
        data = key_bytes(task, look_up.store, rows.keys)
        changed = task.rows_of_table(node.table)
        in_batch = np.full(len(rows), -1, np.int64)
        if changed is not None and len(changed):
            table_data = key_bytes(task, look_up.store, changed.keys)
            in_batch = newest_rows(data, rows.order, table_data, changed.order)
        groups = Groups(data)
        stored = look_up.values(task, rows.take(groups.firsts), data.take(pa.array(groups.firsts)))
        right = pick(stored, np.where(in_batch < 0, groups.ids, -1))
        if changed is not None and (in_batch >= 0).any():
            places = np.where(in_batch < 0, -1, in_batch + len(right))
            both = joined([right, changed.values])
            right = both.take(np.where(places < 0, np.arange(len(rows)), places))
        return join_rows(rows, right, node, join)

    return run


@dataclass(frozen=True, slots=True)
class _TableLookup:
    """Looks rows of a table up: in its store, then through the steps between the store and the table."""

    store: str
    steps: tuple[Step, ...]

    def values(self, task: ColumnTask, asking: Rows, keys: pa.Array) -> Column:
        """The value under each key, of rows that ask for it."""
        kept = task.task.state(self.store).get_many(keys.to_pylist())
        times = np.fromiter((-1 if row is None else row[1] for row in kept), np.int64, len(kept))
        rows = replace(
            asking, values=column_of([None if row is None else row[0] for row in kept]), times=times
        )
        for step in self.steps:
            found = step(rows)
            assert isinstance(found, Rows) and len(found) == len(rows)
            rows = found
        return rows.values


def _getter(task: ColumnTask, name: str) -> _TableLookup:
    steps: list[Step] = []
    table = task.task.by_name[name]
    while isinstance(table, n.TableFilter | n.TableMapValues) and table.store is None:
        if isinstance(table, n.TableFilter) and table.is_quiet:
            raise NotColumnar("a filter that has to know whether a row passed before")
        make = table_filter if isinstance(table, n.TableFilter) else table_map_values
        steps.append(make(task, table))
        table = task.task.by_name[table.parents[0]]
    if not isinstance(table, n.TableSource) or table.store is None:
        raise NotColumnar("a table that is computed or versioned")
    if not isinstance(task.task.state(table.store), TableState):
        raise NotColumnar("a versioned table")
    return _TableLookup(table.store, tuple(reversed(steps)))


def column_of(items: list[Any]) -> Column:
    try:
        return Column(plain_array(items))
    except NotColumnar:
        return Column(items=items)


def newest_rows(data: pa.Array, order: Any, table_data: pa.Array, table_order: Any) -> Any:
    """The row of the table in this batch that was the newest of its key when each record came, or -1."""
    both = pa.concat_arrays([table_data, data])
    is_table = np.arange(len(both)) < len(table_data)
    sequence = np.argsort(np.concatenate([table_order, order]), kind="stable")
    groups = Groups(both)
    found = np.empty(len(both), np.int64)
    kernel.latest_before(groups.ids[sequence], is_table[sequence], groups.count, found)
    rows = np.empty(len(both), np.int64)
    rows[sequence] = np.where(found < 0, -1, sequence[found])
    return rows[len(table_data) :]


class _IndexedTable:
    """A global table with an index, as of one revision of its store."""

    def __init__(self, state: TableState) -> None:
        self.revision = state.revision
        entries = list(state.range(None, None))
        self.index = KeyIndex(pa.array([key for key, _ in entries], pa.binary()))
        self.values = column_of([row[0] for _, row in entries])


_wholes: WeakKeyDictionary[TableState, _IndexedTable] = WeakKeyDictionary()


@builds(n.StreamGlobalJoin)
def stream_global_join(task: ColumnTask, node: n.StreamGlobalJoin) -> Step:
    state = task.task.state(node.table_store)
    if not isinstance(state, TableState):
        raise NotColumnar("a versioned table")
    select, join = of_key_and_value(node.key_selector), joiner(node.joiner, node.takes_key)

    def run(rows: Rows) -> Results:
        whole = _wholes.get(state)
        if whole is None or whole.revision != state.revision:
            whole = _wholes[state] = _IndexedTable(state)
        nulls = rows.values.is_null
        if nulls.any():
            task.task.dropped["null value"] += int(nulls.sum())
            rows = rows.where(~nulls)
        if not len(rows):
            return None
        wanted = select(rows)
        if node.kind == "inner" and (nulls := wanted.is_null).any():
            task.task.dropped["null join key"] += int(nulls.sum())
            there = np.flatnonzero(~nulls)
            rows, wanted = rows.take(there), wanted.take(there)
        found = whole.index.rows_of(key_bytes(task, node.table_store, wanted))
        return join_rows(rows, pick(whole.values, found), node, join)

    return run
