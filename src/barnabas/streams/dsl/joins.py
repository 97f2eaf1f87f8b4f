"""Joins of streams: the nodes of stream-stream, stream-table and stream-global joins.

Does not know: the faces of the DSL beyond their fields.
"""

from __future__ import annotations

from typing import Any

from barnabas.plans import nodes as n
from barnabas.plans.stores import StoreKind, StoreSpec
from barnabas.plans.windows import JoinWindows

PAGE_MS_MIN = 60_000  # of a key's records: shorter windows read and write more pages than that saves


def join_stream(
    stream: Any,
    other: Any,
    joiner: n.Function,
    kind: n.JoinKind,
    windows: JoinWindows | None,
    *,
    on: n.Function | None = None,
    with_key: bool = False,
    value: Any = None,
    grace_ms: int | None = None,
    name: str | None = None,
    is_eager: bool = False,
) -> Any:
    """Join a stream with a stream (`windows` needed), a table, or a global table (`on(key, value)`
    needed). `grace_ms`: records wait so long for rows of a versioned table."""
    from dataclasses import replace

    graph = stream.graph
    serde = None if value is None else stream._serde(value)
    if not hasattr(other, "node"):
        if on is None:
            raise TypeError("a join with a global table needs on=: a function of key and value")
        node: n.Node = n.StreamGlobalJoin(
            name=graph.name("KSTREAM-LEFTJOIN-", name),
            parents=(stream.node,),
            table_store=other.store,
            kind=kind,
            key_selector=on,
            joiner=joiner,
            takes_key=with_key,
        )
        return replace(stream, node=graph.add(node).name, value_serde=serde)
    if hasattr(other, "windows"):
        if windows is not None:
            raise TypeError("a join with a table has no windows")
        prefix = "KSTREAM-JOIN-" if kind == "inner" else "KSTREAM-LEFTJOIN-"
        given = graph.name(prefix, name)
        buffer = None
        left = stream.partitioned(given, keeps_null_keys=kind == "left")
        if grace_ms is not None:
            if not versioned(graph, other.node):
                raise TypeError("a join with a grace needs a versioned table: table(…, history_ms=…)")
            buffer = f"{given}-Buffer"
            graph.add_store(StoreSpec(buffer, StoreKind.JOIN_BUFFER, left._key(None), left._value(None)))
        graph.copartitioned.append(frozenset((*left.sources, *other.sources)))
        node = n.StreamTableJoin(
            name=given,
            parents=(left.node,),
            table=other.node,
            kind=kind,
            joiner=joiner,
            table_stores=stores_of(graph, other.node),
            takes_key=with_key,
            buffer=buffer,
            grace_ms=grace_ms,
        )
        return replace(left, node=graph.add(node).name, value_serde=serde)
    if windows is None:
        raise TypeError("a join of two streams needs windows: JoinWindows(before_ms, after_ms, grace_ms)")
    return _stream_stream(stream, other, joiner, kind, windows, with_key, serde, is_eager)


def versioned(graph: Any, name: str) -> bool:
    """Whether the rows of a table have versions."""
    kinds = {graph.stores[store].kind for store in stores_of(graph, name)}
    return kinds == {StoreKind.VERSIONED}


def stores_of(graph: Any, name: str) -> tuple[str, ...]:
    """The stores from which rows of a table are looked up."""
    by_name = {node.name: node for node in graph.nodes}
    node = by_name[name]
    store = getattr(node, "store", None)
    if store is not None:
        return (store,)
    return tuple(found for parent in node.parents for found in stores_of(graph, parent))


def _stream_stream(
    left: Any,
    right: Any,
    joiner: n.Function,
    kind: n.JoinKind,
    windows: JoinWindows,
    with_key: bool,
    serde: Any,
    is_eager: bool,
) -> Any:
    from dataclasses import replace

    graph = left.graph
    names = [graph.name("KSTREAM-WINDOWED-") for _ in (left, right)]
    this, that = {
        "inner": ("KSTREAM-JOINTHIS-", "KSTREAM-JOINOTHER-"),
        "left": ("KSTREAM-JOINTHIS-", "KSTREAM-OUTEROTHER-"),
        "outer": ("KSTREAM-OUTERTHIS-", "KSTREAM-OUTEROTHER-"),
    }[kind]
    join_names = [graph.name(this), graph.name(that)]
    merged = graph.name("KSTREAM-MERGE-")
    sides = [
        left.partitioned(f"{join_names[0]}-left", keeps_null_keys=kind != "inner"),
        right.partitioned(f"{join_names[1]}-right", keeps_null_keys=kind == "outer"),
    ]
    graph.copartitioned.append(frozenset((*sides[0].sources, *sides[1].sources)))
    stores = []
    for side, join_name, window_name in zip(sides, join_names, names, strict=True):
        store = f"{join_name}-store"
        graph.add_store(
            StoreSpec(
                store,
                StoreKind.JOIN_WINDOW,
                side._key(None),
                side._value(None),
                retention_ms=windows.retention_ms,
                window_size_ms=windows.size_ms,
                page_ms=max(windows.size_ms, PAGE_MS_MIN),
            )
        )
        graph.add(n.JoinWindowed(name=window_name, parents=(side.node,), store=store, windows=windows))
        stores.append(store)
    waiting = None
    if kind != "inner" and not is_eager:
        waiting = f"KSTREAM-OUTERSHARED-{join_names[0][-10:]}-store"
        formats = [side._value(None) for side in sides]
        graph.add_store(
            StoreSpec(waiting, StoreKind.OUTER_JOIN, sides[0]._key(None), formats[0], right_serde=formats[1])
        )
    for is_left in (True, False):
        graph.add(
            n.StreamStreamJoin(
                name=join_names[0 if is_left else 1],
                parents=(names[0 if is_left else 1],),
                is_left=is_left,
                kind=kind,
                windows=windows,
                joiner=joiner,
                other_store=stores[1 if is_left else 0],
                shared=merged,
                waiting=waiting,
                takes_key=with_key,
                is_eager=is_eager,
            )
        )
    graph.add(n.PassThrough(name=merged, parents=tuple(join_names)))
    return replace(sides[0], node=merged, value_serde=serde, sources=sides[0].sources + sides[1].sources)
