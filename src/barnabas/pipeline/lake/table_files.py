"""The state of a Delta table, read by the library `deltalake`: no Spark, also behind a URL.

In: the path of a table, settings of object stores. Out: its files, their bytes and rows; answers of SQL over
it. Loading a state costs time and memory by the number of files, so only reports ask. Does not know: zones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from barnabas.engine.delta.log import URL, Store
from barnabas.engine.places.object_store import options_of
from barnabas.engine.secrets import revealed

TABLE = "t"


@dataclass(frozen=True, slots=True)
class TableFiles:
    version: int
    files: int
    size_bytes: int
    rows: int | None  # by the statistics of the files; None if one has none


def opened_table(path: str, store: Store | None = None) -> Any:
    """The table at its newest version; None if there is none."""
    from deltalake import DeltaTable
    from deltalake.exceptions import TableNotFoundError

    address = f"s3{path.removeprefix('s3a')}" if path.startswith("s3a://") else path
    try:
        return DeltaTable(address, storage_options=options_for(revealed(store or {}), path))
    except TableNotFoundError:
        return None


def options_for(settings: Mapping[str, str], path: str) -> dict[str, str] | None:
    if not URL.match(path):
        return None
    options, client = options_of(settings)
    return {**options, **({"allow_http": "true"} if client.get("allow_http") else {})}


def table_files(path: str, store: Store | None = None) -> TableFiles | None:
    """The files of the newest version; None if there is no table."""
    table = opened_table(path, store)
    if table is None:
        return None
    import pyarrow as pa

    actions = pa.table(table.get_add_actions(flatten=True))
    names = set(actions.column_names)
    counts = actions.column("num_records").to_pylist() if "num_records" in names else [None] * len(actions)
    rows = None if None in counts else sum(counts)
    if rows is not None and "deletionVectors" in (table.protocol().reader_features or ()):
        rows = None if any_deleted(table) else rows
    return TableFiles(table.version(), len(actions), sum(actions.column("size_bytes").to_pylist()), rows)


def any_deleted(table: Any) -> bool:
    """Whether vectors delete rows of files, so that the statistics count too many."""
    return any(len(batch) for batch in table.deletion_vectors())


def answer(path: str, sql: str, store: Store | None = None) -> list[dict[str, Any]]:
    """The rows of a SELECT over the table `t`; empty if there is no table."""
    from deltalake import QueryBuilder

    table = opened_table(path, store)
    if table is None:
        return []
    import pyarrow as pa

    found = QueryBuilder().register(TABLE, table).execute(sql)
    return list(pa.table(found.read_all()).to_pylist())
