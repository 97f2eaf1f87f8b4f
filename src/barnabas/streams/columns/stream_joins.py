"""Inner joins of two streams over columns.

Each side's records of the batch are kept beside its pages. A record finds those of the other side that came
before it, in the batch or in earlier ones, unless the retention hides them, measured by the other side's
largest time so far. Pages, the index by time and the changelog are those of the interpreter. Does not know:
left and outer joins.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.plans import nodes as n
from barnabas.plans.interpreter.state.time_pages import page_keys
from barnabas.plans.interpreter.state.windows import JoinState
from barnabas.streams.columns import entry_kernel as kernel
from barnabas.streams.columns.column import Column, NotColumnar, Rows
from barnabas.streams.columns.entries import Entries, of_column, of_pages, together
from barnabas.streams.columns.formats import decode, encode
from barnabas.streams.columns.grouping import Groups
from barnabas.streams.columns.stateless import joiner
from barnabas.streams.columns.tables import key_bytes
from barnabas.streams.columns.task import ColumnTask, Results, Step, Written, builds
from barnabas.streams.columns.window_pages import key_endings

NO_PAIRS = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Side:
    """The rows that one side's store got in this batch. `observed` is its largest time after each record."""

    keys: pa.Array
    values: pa.Array
    times: Any
    orders: Any
    sequences: Any
    observed_orders: Any
    observed: Any


def _state(task: ColumnTask, store: str) -> JoinState:
    state = task.task.state(store)
    assert isinstance(state, JoinState)
    return state


@builds(n.JoinWindowed)
def join_windowed(task: ColumnTask, node: n.JoinWindowed) -> Step:
    state = _state(task, node.store)

    def run(rows: Rows) -> Results:
        some = rows.where(~(rows.keys.is_null | rows.values.is_null))
        if not len(some):
            return rows
        observed = np.maximum(np.maximum.accumulate(some.times), state.observed_time)
        kept = np.flatnonzero(some.times >= observed - state.retention_ms + 1)
        stored = some.take(kept)
        topic = state.spec.changelog_topic(task.task.application_id) or node.store
        sequences = state.sequence + 1 + np.arange(len(stored))
        side = Side(
            key_bytes(task, node.store, stored.keys),
            encode(state.spec.value_serde, stored.values, topic, False),
            stored.times,
            stored.order,
            sequences,
            some.order,
            observed,
        )
        task.sides[node.store] = side
        task.pending.append(lambda: _write(task, state, side))
        return rows

    return run


def _write(task: ColumnTask, state: JoinState, side: Side) -> None:
    """Put records into the pages of their keys, take out those that the retention hides now."""
    backend, name = task.task.backend, state.spec.name
    if len(side.observed):
        state.observe(int(side.observed[-1]))
    state.take_sequences(len(side.times))
    oldest = state.observed_time - state.retention_ms + 1
    fresh = np.flatnonzero(side.times >= oldest)
    keys, times = side.keys.take(pa.array(fresh)), side.times[fresh]
    state.index.add_many(zip(times.tolist(), keys.to_pylist(), strict=True))
    gone = state.index.pop_before(oldest)
    keys = pa.concat_arrays([keys, pa.array([key for _, key in gone], pa.binary())])
    numbers = np.concatenate([times, np.array([time for time, _ in gone], np.int64)]) // state.pages.page_ms
    groups = Groups(keys, numbers)
    named = page_keys(keys.take(pa.array(groups.firsts)).to_pylist(), numbers[groups.firsts].tolist())
    stored = of_pages(backend.get_many(name, named))
    values = side.values.take(pa.array(fresh))
    new = of_column(groups.ids[: len(fresh)], times, side.sequences[fresh], values)
    both = together(stored.take(np.flatnonzero(stored.firsts >= oldest)), new)
    put = []
    for key, page in zip(named, both.pages(groups.count), strict=True):
        if page:
            put.append((key, page))
        else:
            backend.delete(name, key)
    backend.put_many(name, put)
    topic = state.spec.changelog_topic(task.task.application_id)
    if topic is not None and state.spec.source_topic is None and len(side.times):
        ends = key_endings(side.times, side.sequences & 0x7FFFFFFF)
        written = pc.binary_join_element_wise(side.keys, ends, pa.scalar(b"", pa.binary()))
        task.written.append(
            Written(topic, written, side.values, side.times, side.orders, None, task.task.partition)
        )


@builds(n.StreamStreamJoin)
def stream_stream_join(task: ColumnTask, node: n.StreamStreamJoin) -> Step:
    if node.kind != "inner" or node.waiting is not None:
        raise NotColumnar("a left or outer join looks at the clock of both sides for each record")
    if _has_common_source(task, node):
        raise NotColumnar("a record that reaches both sides must pass one before the other")
    state, join = _state(task, node.other_store), joiner(node.joiner, node.takes_key)
    before, after = node.windows.before_ms, node.windows.after_ms
    back, ahead = (before, after) if node.is_left else (after, before)
    clock, numbers = f"{node.shared} time", task.task.numbers

    def run(rows: Rows) -> Results:
        numbers[clock] = max(numbers.get(clock, -1), int(rows.times.max()))
        nulls = rows.keys.is_null | rows.values.is_null
        if nulls.any():
            task.task.dropped["null key or value"] += int(nulls.sum())
            rows = rows.where(~nulls)
        if not len(rows):
            return None
        other = task.sides.get(node.other_store)
        data = key_bytes(task, node.other_store, rows.keys)
        lows, highs = rows.times - back, rows.times + ahead
        entries, orders, groups, starts = _entries(task, state, data, other, (lows, highs))
        lows = np.maximum(lows, _oldest(state, other, rows.order))
        given = (groups, lows, highs, rows.order, starts, entries.firsts, orders)
        count = kernel.probe(*given, False, NO_PAIRS, NO_PAIRS)
        if not count:
            return None
        row, entry = np.empty(count, np.int64), np.empty(count, np.int64)
        kernel.probe(*given, True, row, entry)
        found = rows.take(row) if count != len(rows) or (row != np.arange(count)).any() else rows
        matched = entries.take(entry)
        topic = state.spec.changelog_topic(task.task.application_id) or node.other_store
        others = decode(state.spec.value_serde, matched.values(), topic, False)
        mine = found.values
        left, right = (mine, others) if node.is_left else (others, mine)
        times = np.maximum(found.times, matched.firsts)
        pairs = Rows(found.keys, left, times, found.order, found.headers, None, 0, right, found.origins)
        values: Column = join(pairs)
        return Rows(found.keys, values, times, found.order, found.headers, origins=found.origins)

    return run


def _has_common_source(task: ColumnTask, node: n.StreamStreamJoin) -> bool:
    """Whether a record may come to the join from both sides: the join of a stream with itself."""
    by_name = task.task.by_name

    def sources(name: str) -> set[str]:
        parents = by_name[name].parents
        return {name} if not parents else {found for parent in parents for found in sources(parent)}

    others = [
        each.name
        for each in by_name.values()
        if isinstance(each, n.JoinWindowed) and each.store == node.other_store
    ]
    return any(sources(node.name) & sources(other) for other in others)


def _oldest(state: JoinState, other: Side | None, orders: Any) -> Any:
    """The smallest time that the other side's store shows to each record."""
    before = np.array([state.observed_time], np.int64)
    if other is None:
        return before - state.retention_ms + 1
    place = np.searchsorted(other.observed_orders, orders)
    return np.concatenate([before, other.observed])[place] - state.retention_ms + 1


def _entries(
    task: ColumnTask, state: JoinState, data: pa.Array, other: Side | None, span: tuple[Any, Any]
) -> tuple[Entries, Any, Any, Any]:
    """The rows of the other side under the keys, of the pages that cover the span of each: entries by key and
    time, the order in which they came (-1: before this batch), the group of each key, and where each group's
    entries start."""
    both = data if other is None else pa.concat_arrays([data, other.keys])
    groups = Groups(both)
    mine = groups.ids[: len(data)]
    asked = int(mine.max()) + 1  # groups are numbered by first appearance
    entries = _stored(task, state, both.take(pa.array(groups.firsts[:asked])), mine, span)
    orders = np.full(len(entries), -1, np.int64)
    if other is not None:
        theirs = groups.ids[len(data) :]
        wanted = np.flatnonzero(theirs < asked)
        new = of_column(theirs, other.times, other.sequences, other.values).take(wanted)
        entries = together(entries, new)
        orders = np.concatenate([orders, other.orders[wanted]])
    order = np.lexsort((entries.seconds, entries.firsts, entries.groups))
    entries = entries.take(order)
    return entries, orders[order], mine, np.searchsorted(entries.groups, np.arange(asked + 1))


def _stored(task: ColumnTask, state: JoinState, keys: pa.Array, mine: Any, span: tuple[Any, Any]) -> Entries:
    """The entries of the pages that cover a span of time of each row; `mine` is the row's place in `keys`."""
    first, last = (each // state.pages.page_ms for each in span)
    most = int((last - first).max())
    pairs = np.concatenate([np.stack([mine, np.minimum(first + at, last)]) for at in range(most + 1)], axis=1)
    places, numbers = np.unique(pairs, axis=1)
    names = keys.take(pa.array(places)).to_pylist()
    named = page_keys(names, numbers.tolist())
    entries = of_pages(task.task.backend.get_many(state.spec.name, named))
    return replace(entries, groups=places[entries.groups])
