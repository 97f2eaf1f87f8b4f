"""Reads tables of a lake without Spark and without the project's own readers: Delta's log, files by Arrow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as parquet


def rows_of(lake: Path, zone: str, name: str, columns: list[str]) -> list[dict[str, Any]]:
    """All rows of a table; none where there is no table."""
    folder = lake / zone / name
    if not (folder / "_delta_log").is_dir():
        return []
    files, _ = live_files(folder)
    assert not any(each.get("deletionVector") for each in files.values())
    found: list[dict[str, Any]] = []
    for path in files:
        table: pa.Table = parquet.read_table(folder / unquote(path), columns=columns)
        found += table.to_pylist()
    return found


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
                current = files.get(removed["path"])
                vector = removed.get("deletionVector") or None
                if current is not None and (current.get("deletionVector") or None) == vector:
                    del files[removed["path"]]
    return files, version


def last_checkpoint(log: Path) -> tuple[int, dict[str, dict[str, Any]]]:
    """The newest checkpoint's version and files; -1 if there is none."""
    found = sorted(log.glob("*.checkpoint*.parquet"))
    if not found:
        return -1, {}
    version = found[-1].name.split(".")[0]
    files: dict[str, dict[str, Any]] = {}
    for path in log.glob(f"{version}.checkpoint*.parquet"):
        for row in parquet.read_table(path, columns=["add"]).to_pylist():
            if row.get("add") is not None:
                files[row["add"]["path"]] = row["add"]
    return int(version), files
