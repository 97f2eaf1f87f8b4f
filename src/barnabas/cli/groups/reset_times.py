"""Parses times and durations as Kafka's tools do: ISO 8601 with milliseconds, and `PnDTnHnMnS`.

In: text. Out: milliseconds since 1970, or milliseconds. A malformed text raises with Kafka's message and the
expected format. A time without a zone is in UTC.
"""

import re
from datetime import UTC, datetime, timedelta, timezone

from barnabas.cli.frame.parsing import ToolError

DATETIME = re.compile(
    r"(\d{4,})-(\d{1,2})-(\d{1,2})T(\d{1,2}):(\d{1,2}):(\d{1,2})\.(\d{1,9})"
    r"(?:Z|([+-])(\d{2})(?::?(\d{2}))?)?",
    re.ASCII,
)
DATETIME_FORM = "give YYYY-MM-DDThh:mm:ss.sss, in UTC unless Z, +hh, +hhmm or +hh:mm follows"
DURATION = re.compile(
    r"([+-])?P(?:([+-]?\d+)D)?"
    r"(T(?:([+-]?\d+)H)?(?:([+-]?\d+)M)?(?:([+-]?\d+)(?:[.,](\d{0,9}))?S)?)?",
    re.ASCII | re.IGNORECASE,
)
DURATION_FORM = "give PnDTnHnMnS, such as P7D, PT1H30M or PT0.5S"
DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS = 86_400_000, 3_600_000, 60_000, 1_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
YEAR_MAX = 9999


def parse_datetime(text: str) -> int:
    """Parse `2024-05-06T07:08:09.123`, with or without a zone, into milliseconds since 1970."""
    if "T" not in text:
        raise ToolError(
            "Error parsing timestamp. It does not contain a 'T' according to ISO8601 format "
            f"({DATETIME_FORM})"
        )
    match = DATETIME.fullmatch(text)
    try:
        if match is None:
            raise ValueError(text)
        year, month, day, hour, minute, second = map(int, match.groups()[:6])
        if year > YEAR_MAX:
            raise ValueError(text)
        sign, zone_hours, zone_minutes = match.group(8, 9, 10)
        zone = timedelta(hours=int(zone_hours or 0), minutes=int(zone_minutes or 0))
        moment = datetime(
            year, month, day, hour, minute, second, tzinfo=timezone(-zone if sign == "-" else zone)
        )
    except ValueError:
        has_zone = re.search(r"T.*(Z|[+-]\d{2}(:?\d{2})?)$", text) is not None
        shown = text if has_zone else f"{text}Z"
        raise ToolError(f'Unparseable date: "{shown}" ({DATETIME_FORM})') from None
    fraction_ms = int(match[7])  # Java reads these digits as a number of milliseconds
    return (moment - EPOCH) // timedelta(milliseconds=1) + fraction_ms


def parse_duration(text: str) -> int:
    """Parse `P1DT2H3M4.5S` into milliseconds; every part is optional and may have a sign."""
    match = DURATION.fullmatch(text)
    if match is None or not any(match.group(2, 4, 5, 6)) or match[3] in ("T", "t"):
        raise ToolError(f"Text cannot be parsed to a Duration ({DURATION_FORM})")
    sign, days, _, hours, minutes, seconds, fraction = match.groups()
    total = int(days or 0) * DAY_MS + int(hours or 0) * HOUR_MS + int(minutes or 0) * MINUTE_MS
    total += int(seconds or 0) * SECOND_MS
    part_ms = int((fraction or "").ljust(3, "0")[:3])
    total += -part_ms if (seconds or "").startswith("-") else part_ms
    return -total if sign == "-" else total
