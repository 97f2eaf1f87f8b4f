"""Reads versions and single commits of Delta's log, without Spark and without the table's state.

In: the folder or URL of a table's log, settings of object stores. Out: the newest version, the actions of a
commit. A look costs one or two requests, however long the log is: it begins where the last one ended. What
needs the state of a table asks `table_files`. Does not know: zones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from barnabas.engine.places.object_store import open_store
from barnabas.engine.secrets import Text, revealed

# The last version that this process saw in each log. The search continues from there, because a log of a
# week has hundreds of thousands of files.
_SEEN: dict[str, int] = {}
COMPACTIONS_SEEN_MAX = 10
COMMIT = re.compile(r"(\d{20})\.json$")
URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+://")
STORES_MAX = 100

Store = Mapping[str, Text]


def newest_version(log: str, store: Store | None = None) -> int:
    """The newest version in a folder of Delta's log; -1 if there is none. Versions have no gaps."""
    if URL.match(log):
        return newest_in_store(log, store)
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


def newest_in_store(log: str, store: Store | None) -> int:
    client, opened, prefix = opened_store(log, store)
    last = _SEEN.get(log, -1)
    # The listing begins with the version that was seen last: if it is gone, the table was made anew.
    version = listed_newest(client, opened, prefix, f"{prefix}/{last - 1:020}.json") if last > 0 else -1
    if version < 0:
        version = listed_newest(client, opened, prefix, None)
    _SEEN[log] = version
    return version


def listed_newest(client: Any, opened: Any, prefix: str, offset: str | None) -> int:
    newest = -1
    for page in client.list(opened, prefix=prefix, offset=offset):
        for each in page:
            match = COMMIT.search(str(each["path"]))
            if match is not None and str(each["path"]) == f"{prefix}/{match[0]}":
                newest = max(newest, int(match[1]))
    return newest


def opened_store(log: str, store: Store | None) -> tuple[Any, Any, str]:
    root, _, prefix = log.partition("://")[2].partition("/")
    given = tuple(sorted(revealed(store or {}).items()))
    client, opened, _ = _store(f"{log.partition('://')[0]}://{root}", given)
    return client, opened, prefix


@lru_cache(STORES_MAX)
def _store(root: str, settings: tuple[tuple[str, str], ...]) -> tuple[Any, Any, str]:
    client, opened, prefix = open_store(root, dict(settings))
    return client, opened, prefix


def commit_text(log: str, version: int, store: Store | None = None) -> str | None:
    """A commit as it was written; None if it is not there any more."""
    try:
        if not URL.match(log):
            return commit_path(log, version).read_text()
        client, opened, prefix = opened_store(log, store)
        found = client.get(opened, f"{prefix}/{version:020}.json")
        return bytes(found.bytes()).decode()
    except (OSError, UnicodeDecodeError):  # the client's NotFoundError is a FileNotFoundError
        return None


def transactions_in(log: str, version: int, store: Store | None = None) -> list[tuple[str, int]]:
    """Transaction ids in a commit: the writer, and the number of its transaction."""
    lines = (commit_text(log, version, store) or "").splitlines()
    found = [json.loads(line)["txn"] for line in lines if line.startswith('{"txn":')]
    return [(txn["appId"], txn["version"]) for txn in found]


def are_compactions(log: str, after: int, until: int, store: Store | None = None) -> bool:
    """Whether all commits behind a version, up to another, only compacted files. False if unknown."""
    if not 0 <= after < until <= after + COMPACTIONS_SEEN_MAX:
        return False
    for version in range(after + 1, until + 1):
        if '"operation":"OPTIMIZE"' not in (commit_text(log, version, store) or ""):
            return False
    return True


def commit_path(log: str, version: int) -> Path:
    return Path(log) / f"{version:020}.json"


def table_version(folder: Path) -> int:
    """The newest version of a Delta table; -1 if there is none."""
    found = [int(path.stem) for path in (folder / "_delta_log").glob("*.json") if path.stem.isdigit()]
    return max(found, default=-1)
