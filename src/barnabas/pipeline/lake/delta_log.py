"""Reads Delta's log as files of JSON and Parquet, without Spark.

In: the folder of a table, or of its log. Out: versions, transactions, the files of a version.
Does not know: zones, tables behind a URL.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

# The last version that this process saw in each log. The search continues from there, because a log of a
# week has hundreds of thousands of files.
_SEEN: dict[str, int] = {}
COMPACTIONS_SEEN_MAX = 10


def newest_version(log: str) -> int:
    """The newest version in a folder of Delta's log; -1 if there is none. Versions have no gaps."""
    version = _SEEN.get(log, -1)
    if (
        version < 0 or not commit_path(log, version).exists()
    ):  # first look, table recreated, or log cleaned up
        found = (each.stem for each in Path(log).glob("*.json"))
        version = max((int(stem) for stem in found if stem.isdigit()), default=-1)
    while version >= 0 and commit_path(log, version + 1).exists():
        version += 1
    _SEEN[log] = version
    return version


def transactions_in(log: str, version: int) -> list[tuple[str, int]]:
    """Transaction ids in a commit: the writer, and the number of its transaction."""
    try:
        lines = commit_path(log, version).read_text().splitlines()
    except OSError:
        return []
    found = [json.loads(line)["txn"] for line in lines if line.startswith('{"txn":')]
    return [(txn["appId"], txn["version"]) for txn in found]


def are_compactions(log: str, after: int, until: int) -> bool:
    """Whether all commits behind a version, up to another, only compacted files. False if unknown."""
    if not 0 <= after < until <= after + COMPACTIONS_SEEN_MAX:
        return False
    for version in range(after + 1, until + 1):
        try:
            text = commit_path(log, version).read_text()
        except OSError:
            return False
        if '"operation":"OPTIMIZE"' not in text:
            return False
    return True


def commit_path(log: str, version: int) -> Path:
    return Path(log) / f"{version:020}.json"


def table_version(folder: Path) -> int:
    """The newest version of a Delta table; -1 if there is none."""
    found = [int(path.stem) for path in (folder / "_delta_log").glob("*.json") if path.stem.isdigit()]
    return max(found, default=-1)


def rows_of(file: dict[str, Any]) -> int | None:
    """Rows of a file by its statistics, without those that a deletion vector removes; None if unknown."""
    stats = file.get("stats")
    try:
        found = json.loads(stats)["numRecords"] if isinstance(stats, str) else None
    except (ValueError, KeyError, TypeError):
        return None
    if found is None:
        return None
    vector = file.get("deletionVector") or {}
    return int(found) - int(vector.get("cardinality") or 0)


def live_files(folder: Path) -> tuple[dict[str, dict[str, Any]], int]:
    """The files of a table's newest version by path, and that version."""
    log = folder / "_delta_log"
    start, files = last_checkpoint(log)
    version = start
    for path in sorted(log.glob("*.json")):
        if not path.stem.isdigit() or int(path.stem) <= start:
            continue
        version = int(path.stem)
        for line in path.read_text().splitlines():
            action = json.loads(line) if line.strip() else {}
            if (added := action.get("add")) is not None:
                files[added["path"]] = added
            elif (removed := action.get("remove")) is not None:
                vector = removed.get("deletionVector")
                current = files.get(removed["path"])
                if current is not None and (current.get("deletionVector") or None) == (vector or None):
                    del files[removed["path"]]
    return files, version


def last_checkpoint(log: Path) -> tuple[int, dict[str, dict[str, Any]]]:
    """The newest checkpoint's version and files; -1 if there is none."""
    found = sorted(log.glob("*.checkpoint*.parquet"))
    if not found:
        return -1, {}
    import pyarrow.parquet as parquet

    version = found[-1].name.split(".")[0]
    files: dict[str, dict[str, Any]] = {}
    for path in log.glob(f"{version}.checkpoint*.parquet"):
        for row in parquet.read_table(path, columns=["add"]).to_pylist():
            if row.get("add") is not None:
                files[row["add"]["path"]] = row["add"]
    return int(version), files
