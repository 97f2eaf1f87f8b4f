"""Names and content of the copy of a run: pages of entries of the timeline, and files.

    run/00000007/pages/000001.json.gz    entries, at most PAGE_ENTRIES; the last page grows until it is full
    run/00000007/states.json             the states of sources, views, tables and processes
    run/00000007/schedule.json           and other small files
    run/00000007/owner                   the mark of the machine that runs it

Each run has a number of its own and writes only below it, so that a host that lost its lease disturbs no
other one. Does not know: where the files lie.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import astuple, fields

from barnabas.engine.timeline import CurrentState, Entry

FOLDER = "run"
STATES = "states.json"
OWNER = "owner"
PAGE_ENTRIES = 1000
RUN = re.compile(rf"{FOLDER}/(\d{{8}})/(.+)")
PAGE = re.compile(rf"{FOLDER}/\d{{8}}/pages/\d{{6}}\.json\.gz")
COLUMNS = tuple(each.name for each in fields(Entry))
STATE_COLUMNS = tuple(each.name for each in fields(CurrentState))


def newest_run(names: Iterable[str]) -> int:
    """The number of the last run that wrote something; 0 if there was none."""
    return max((int(found[1]) for name in names if (found := RUN.fullmatch(name))), default=0)


def pages_of(names: Iterable[str]) -> list[str]:
    """The names of all pages, in the order in which they were written."""
    return sorted(name for name in names if PAGE.fullmatch(name))


def files_before(names: Iterable[str], run: int) -> list[str]:
    """The files that earlier runs left beside their pages."""
    return [
        name
        for name in names
        if (found := RUN.fullmatch(name)) and int(found[1]) < run and not PAGE.fullmatch(name)
    ]


def page_name(run: int, number: int) -> str:
    return file_name(run, f"pages/{number:06}.json.gz")


def file_name(run: int, name: str) -> str:
    return f"{FOLDER}/{run:08}/{name}"


def encode_page(entries: Sequence[Entry]) -> bytes:
    page = {"columns": COLUMNS, "rows": [astuple(each) for each in entries]}
    return gzip.compress(json.dumps(page).encode(), 6, mtime=0)


def decode_page(data: bytes) -> list[Entry]:
    """ValueError if it is no page. Columns that another version wrote are left out."""
    try:
        page = json.loads(gzip.decompress(data))
        known = [(at, name) for at, name in enumerate(page["columns"]) if name in COLUMNS]
        return [Entry(**{name: row[at] for at, name in known}) for row in page["rows"]]
    except (OSError, EOFError, zlib.error, KeyError, IndexError, TypeError) as error:
        raise ValueError(f"no page of a timeline: {error}") from None


def encode_states(states: Sequence[CurrentState]) -> bytes:
    return json.dumps({"columns": STATE_COLUMNS, "rows": [astuple(each) for each in states]}).encode()


def decode_states(data: bytes) -> list[CurrentState]:
    """ValueError if there are no states in it."""
    try:
        found = json.loads(data)
        known = [(at, name) for at, name in enumerate(found["columns"]) if name in STATE_COLUMNS]
        return [CurrentState(**{name: row[at] for at, name in known}) for row in found["rows"]]
    except (KeyError, IndexError, TypeError) as error:
        raise ValueError(f"no states of a timeline: {error}") from None
