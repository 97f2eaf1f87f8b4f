"""How far a streaming query is behind its topics, out of the progress that Spark reports.

In: `query.lastProgress`. Out: the smallest, average and largest number of offsets behind, over partitions.
Spark takes metrics from its own sources only; what a Python source can show stands in `latestOffset`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

METRICS = "offsets behind latest"  # no topic can have this name


class Behind(NamedTuple):
    """As Spark's own connector calls them: minOffsetsBehindLatest and so on."""

    least: int
    average: float
    most: int


def behind_latest(progress: Mapping[str, Any] | Any) -> Behind | None:
    """Over all sources of a query that report both positions; None when there is none."""
    behind = each_behind(progress)
    if not behind:
        return None
    return Behind(min(behind), sum(behind) / len(behind), max(behind))


def rows_behind(progress: Mapping[str, Any] | Any) -> int | None:
    """The consumer lag of a query: over all partitions together; None when no source reports it."""
    behind = each_behind(progress)
    return sum(behind) if behind else None


def each_behind(progress: Mapping[str, Any] | Any) -> list[int]:
    behind = []
    for source in progress["sources"]:
        end, latest = positions(source["endOffset"]), positions(source["latestOffset"])
        behind += [max(offset - end[place], 0) for place, offset in latest.items() if place in end]
    return behind


def metrics_of(end: Mapping[Any, int], latest: Mapping[Any, int]) -> dict[str, dict[str, float]]:
    """Values beside the latest offsets, under the names that Spark's own connector uses."""
    behind = [max(offset - end[place], 0) for place, offset in latest.items() if place in end]
    if not behind:
        return {}
    return {
        METRICS: {
            "minOffsetsBehindLatest": min(behind),
            "avgOffsetsBehindLatest": sum(behind) / len(behind),
            "maxOffsetsBehindLatest": max(behind),
        }
    }


def positions(value: Any) -> dict[tuple[str, str], int]:
    """Spark hands them over as JSON, as text or read already."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    if not isinstance(value, Mapping):
        return {}
    return {
        (topic, partition): offset
        for topic, partitions in value.items()
        if isinstance(partitions, Mapping)
        for partition, offset in partitions.items()
        if isinstance(offset, int)
    }
