"""The safety window of tables that are read by the time of change: rows may be committed after later ones.

A transaction writes its time when it changes a row, and the row appears when the transaction commits.
Meanwhile rows with later times may have been read. In: times as the database writes them. Out: where the
window begins, and since when raw has its rows. Pure. Does not know: databases.
"""

from __future__ import annotations

from datetime import datetime, timedelta

STEPS_MAX = 64
NUMBERS = ((10**11, 1), (10**14, 10**3), (10**17, 10**6))  # seconds, ms and us since 1970, by their size

Step = list[str]  # [the newest time of change that was read, when it was read by our clock]


def window_start(newest: str, window_s: float) -> str:
    """The time so many seconds before, in the same form; `newest` itself if its form is unknown."""
    if not window_s:
        return newest
    if newest.lstrip("-").isdigit():
        number = int(newest)
        unit = next((unit for bound, unit in NUMBERS if abs(number) < bound), 10**9)
        return str(number - int(window_s * unit))
    try:
        at = datetime.fromisoformat(newest)
    except ValueError:
        return newest
    try:
        earlier = (at - timedelta(seconds=window_s)).replace(microsecond=0)
    except OverflowError:
        return newest
    if len(newest) <= len("2026-01-31"):
        return earlier.date().isoformat()
    return earlier.isoformat("T" if "T" in newest else " ")


def following(steps: list[Step], newest: str, now: datetime, window_s: float) -> list[Step]:
    """The steps whose rows may be in the window, and this one. Their number is limited: with fewer steps more
    of raw is searched, never less."""
    start = window_start(newest, window_s)
    found = [[time, at] for time, at in steps if time >= start]
    while len(found) >= STEPS_MAX:
        found = [found[0], *found[2::2]]
    return [*found, [newest, now.isoformat()]]


def read_since(steps: list[Step], start: str) -> datetime | None:
    """When the first rows of the window were read; None if no step is known."""
    found = [at for time, at in steps if time >= start]
    return datetime.fromisoformat(min(found)) if found else None
