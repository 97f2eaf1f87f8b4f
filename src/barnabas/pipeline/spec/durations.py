"""Times, sizes and rates as people write them: `10 minutes`, `1h`, `10 MB/s`.

In: text. Out: seconds, bytes, bytes per second, and text again. Text that cannot be read raises ValueError
with an example. Does not know: what the values are for.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

SECONDS = {
    "ms": 0.001, "millisecond": 0.001, "milliseconds": 0.001,
    "s": 1.0, "sec": 1.0, "second": 1.0, "seconds": 1.0,
    "m": 60.0, "min": 60.0, "minute": 60.0, "minutes": 60.0,
    "h": 3600.0, "hour": 3600.0, "hours": 3600.0,
    "d": 86400.0, "day": 86400.0, "days": 86400.0,
    "w": 604800.0, "week": 604800.0, "weeks": 604800.0,
}  # fmt: skip
BYTES = {
    "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
    "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
}  # fmt: skip
AMOUNT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*")


def seconds(text: str) -> float:
    """`1 hour 30 minutes` -> 5400.0."""
    found = AMOUNT.findall(text)
    rest = AMOUNT.sub("", text)
    if not found or rest.strip() or any(unit.lower() not in SECONDS for _, unit in found):
        raise ValueError(
            f"{text!r} is not a duration: write a number and a unit, as in 10 minutes, 1 hour, 30s"
        )
    return sum(float(number) * SECONDS[unit.lower()] for number, unit in found)


def size_bytes(text: str) -> int:
    """`10 MB` -> 10000000."""
    match = AMOUNT.fullmatch(text)
    if match is None or match[2].lower() not in BYTES:
        raise ValueError(f"{text!r} is not a size: write a number and a unit, as in 10 MB, 512 KiB")
    return int(float(match[1]) * BYTES[match[2].lower()])


def bytes_per_second(text: str) -> float:
    """`10 MB/s` -> 10000000.0."""
    amount, slash, unit = text.partition("/")
    if not slash or unit.strip().lower() not in ("s", "sec", "second", "m", "min", "minute", "h", "hour"):
        raise ValueError(f"{text!r} is not a rate: write a size per time, as in 10 MB/s")
    rate = size_bytes(amount) / SECONDS[unit.strip().lower()]
    if rate <= 0:
        raise ValueError(f"{text!r} is too slow: nothing would ever be read")
    return rate


def instant(text: str) -> datetime:
    """`2026-01-31`, `2026-01-31 12:00`, `2026-01-31T12:00:00Z`; UTC unless it says otherwise."""
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(
            f"{text!r} is not a time: write it as in 2026-01-31 or 2026-01-31T12:00:00Z"
        ) from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def duration_text(value_s: float) -> str:
    """5400.0 -> `1 hour 30 minutes`; `seconds` reads it back."""
    parts = []
    rest_ms = round(value_s * 1000)
    for unit, size_ms in (
        ("day", 86_400_000),
        ("hour", 3_600_000),
        ("minute", 60_000),
        ("second", 1000),
        ("ms", 1),
    ):
        count, rest_ms = divmod(rest_ms, size_ms)
        if count:
            parts.append(f"{count} {unit}{'s' if count != 1 and unit != 'ms' else ''}")
    return " ".join(parts) or "0 seconds"


def size_text(value: float) -> str:
    """10000000 -> `10 MB`."""
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1000:
            return f"{value:.4g} {unit}"
        value /= 1000
    return f"{value:.4g} TB"
