"""A report as lines of text, and its cells for a page.

In: a report. Out: a header and rows of text. Does not know: terminals, HTML.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from barnabas.audit.core.buckets import NO_TIME
from barnabas.audit.core.report import Report, Row

HEADER = (
    "BUCKET", "TOPIC", "TIER", "AGAINST", "EXPECTED", "SEEN", "MISSING", "EXTRA", "COMPLETE-%",
    "P50", "P99", "MAX", "STATE", "HOSTS",
)  # fmt: skip
MISSING = "-"
HOSTS_MAX = 3
UNITS_MS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000))


def cells(row: Row) -> tuple[str, ...]:
    verdict, delays = row.verdict, row.delays
    hosts = ",".join(row.hosts[:HOSTS_MAX]) + (",…" if len(row.hosts) > HOSTS_MAX else "")
    return (
        time_text(row.bucket_ms),
        row.topic,
        row.tier,
        "+".join(row.references) or MISSING,
        str(verdict.expected) if row.references else MISSING,
        str(verdict.seen),
        str(verdict.missing),
        str(verdict.extra),
        row.completeness,
        duration(delays.percentile_ms(0.5)),
        duration(delays.percentile_ms(0.99)),
        duration(delays.max_ms if delays.counts else None),
        verdict.state.value,
        hosts or MISSING,
    )


def lines(report: Report) -> Iterator[str]:
    rows = [HEADER, *map(cells, report.rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
    for note in report.notes:
        yield f"note: {note}"


def time_text(bucket_ms: int) -> str:
    if bucket_ms == NO_TIME:
        return "(no time)"
    try:
        return datetime.fromtimestamp(bucket_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError):  # a timestamp that no calendar has
        return str(bucket_ms)


def duration(span_ms: int | None) -> str:
    if span_ms is None:
        return MISSING
    for unit, length_ms in UNITS_MS:
        if span_ms >= 10 * length_ms or (unit == "s" and span_ms >= 1_000):
            return (
                f"{span_ms / length_ms:.0f}{unit}" if span_ms >= 10 * length_ms else f"{span_ms / 1000:.1f}s"
            )
    return f"{span_ms}ms"
