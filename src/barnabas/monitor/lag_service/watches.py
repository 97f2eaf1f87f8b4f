"""The clusters that a lag service watches, and the way to work on them without holding up the loop.

In: `WatchSettings` for each cluster. Out: `Watches`, which the endpoints ask. Does not know: HTTP.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import TypeVar

from barnabas.metadata.steps import Steps
from barnabas.monitor.lag.cluster_lag import ClusterLag
from barnabas.monitor.lag.groups import Group
from barnabas.monitor.lag_service.cluster_watch import ClusterWatch, WatchSettings, now_ms
from barnabas.runtime.pieces import Pieces

T = TypeVar("T")


class Watches:
    def __init__(self, settings: Sequence[WatchSettings]) -> None:
        self._pieces = Pieces(time.perf_counter)
        self.by_name = {each.name: ClusterWatch(each, self._pieces) for each in settings}

    @property
    def clusters(self) -> list[ClusterLag]:
        return [each.lag for each in self.by_name.values()]

    def now_ms(self) -> int:
        return now_ms()

    def group(self, cluster: str, group: str) -> tuple[ClusterLag, Group] | None:
        watch = self.by_name.get(cluster)
        found = watch.lag.groups.get(group) if watch is not None else None
        return (watch.lag, found) if watch is not None and found is not None else None

    async def in_pieces(self, steps: Steps[T]) -> T:
        """Do work over many partitions, a millisecond in each turn of the loop."""
        return await self._pieces.run(steps)

    def why_not_ready(self) -> str | None:
        reasons = [reason for each in self.by_name.values() if (reason := each.why_not_ready())]
        return "; ".join(reasons) or None

    async def start(self) -> None:
        for watch in self.by_name.values():
            watch.start()

    async def stop(self) -> None:
        await asyncio.gather(*(watch.stop() for watch in self.by_name.values()))
