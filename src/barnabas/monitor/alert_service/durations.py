"""Durations as people write them: 30s, 5m, 4h, 7d, or combined as in 1h30m. A bare number is seconds."""

from __future__ import annotations

import re

UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)")


def seconds(given: object) -> float:
    """ValueError if it is no duration."""
    if isinstance(given, int | float) and not isinstance(given, bool) and given >= 0:
        return float(given)
    text = str(given).replace(" ", "")
    parts = PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"{given!r} is no duration: write it as 30s, 5m, 4h or 7d")
    return sum(float(number) * UNITS_S[unit] for number, unit in parts)
