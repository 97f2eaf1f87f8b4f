"""`source.snapshot` of rows: which are the first and last ones of their table and of the snapshot. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from barnabas.connect.connectors.debezium.envelope import Row


class Part(NamedTuple):
    """Rows of one table, and the mark of each."""

    table: Any
    rows: list[Row]
    marks: list[str]


def marked(tables: Sequence[tuple[Any, Iterable[list[Row]]]]) -> Iterator[Part]:
    """Rows in batches with their marks. In: tables in order, each with its batches."""
    for place, (table, batches) in enumerate(tables):
        is_first, is_last = place == 0, place == len(tables) - 1
        is_begin = True
        for rows, is_end in with_end(batches):
            marks = ["true"] * len(rows)
            if is_begin:
                marks[0] = "first" if is_first else "first_in_data_collection"
            if is_end and (is_last or marks[-1] != "first"):
                marks[-1] = "last" if is_last else "last_in_data_collection"
            is_begin = False
            yield Part(table, rows, marks)


def with_end(batches: Iterable[list[Row]]) -> Iterator[tuple[list[Row], bool]]:
    """Batches that have rows, and whether no more come."""
    waiting: list[Row] | None = None
    for rows in batches:
        if rows:
            if waiting is not None:
                yield waiting, False
            waiting = rows
    if waiting is not None:
        yield waiting, True
