"""Counts new epochs of groups, for metrics. All shards of a broker may share one counter."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Rebalances:
    share: int = 0
    streams: int = 0
