"""The note of a commit about its batch: the connector, the number, the topic, the ranges of offsets. Pure."""

from __future__ import annotations

import json
from typing import Any

from barnabas.client.core.topology import TopicPartition
from barnabas.connect.plugins.spark import Ranges


def note_of(app: str, number: int, ranges: Ranges, topic: str = "") -> str:
    """`topic` is that of the rows; topics of a batch are written in their order."""
    spans = [[where.topic, where.partition, first, end] for where, (first, end) in sorted(ranges.items())]
    return json.dumps({"app": app, "batch": number, "topic": topic, "ranges": spans})


def noted_in(text: str | None) -> dict[str, Any]:
    """The note as it was written; empty if a commit has none, or that of somebody else."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def ranges_in(text: str | None) -> Ranges:
    return {
        TopicPartition(topic, partition): (first, end)
        for topic, partition, first, end in noted_in(text).get("ranges", ())
    }
