"""Opens the store that the file names: an embedded DuckDB, or PostgreSQL.

In: the store's URL. Out: a `Store`. Does not know: what is asked.
"""

from __future__ import annotations

from pathlib import Path

from barnabas.pipeline.serving.store.port import KEEP_HORIZONS, Limits, Store, StoreError
from barnabas.pipeline.views.part_files import LakeParts, NoParts


def open_store(
    url: str,
    *,
    name: str,
    folder: Path,
    keep_horizons: int = KEEP_HORIZONS,
    limits: Limits | None = None,
    lake: LakeParts | None = None,
) -> Store:
    """`duckdb` (a file in `folder`), `duckdb:/path/of/file`, or a PostgreSQL URL (a schema of the pipeline's
    name).

    Rows of parts may lie in files of `lake`. One process at a time: a DuckDB file that another process has
    open is a StoreError."""
    limits, parts = limits or Limits(), lake or NoParts()
    # Only the driver that is used is loaded.
    if url == "duckdb" or url.startswith("duckdb:"):
        from barnabas.pipeline.serving.store.duckdb_store import DuckDBStore

        path = (
            Path(url.removeprefix("duckdb:").removeprefix("//")) if ":" in url else folder / "serving.duckdb"
        )
        return DuckDBStore(path, keep_horizons, limits, parts)
    if url.startswith(("postgresql://", "postgres://")):
        from barnabas.pipeline.serving.store.postgres_store import PostgresStore

        return PostgresStore(url, name, keep_horizons, limits, parts)
    kind = url.partition(":")[0]
    raise StoreError(f"{kind!r} is not a known store: write duckdb, duckdb:/path/of/file or postgresql://…")
