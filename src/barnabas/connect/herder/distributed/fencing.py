"""Fence producers of earlier tasks before new ones start (KIP-618), once for each set of task configurations.

In: the config state of the leader, an admin client, ways to read and to write the config topic. Out: raised
epochs of transactional ids, and one record that says so. Each worker that starts tasks asks for it, so most
requests find it done: fencing again would end tasks that run already.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from barnabas.client.admin.admin import Admin
from barnabas.client.core.cluster import ClusterCore
from barnabas.connect.herder.config_state import FENCING, ConfigState, Record
from barnabas.connect.herder.errors import Refused

OUTDATED = (
    "Fencing failed because new task configurations were generated for the connector {}: the request can be "
    "safely retried"
)


class Fencing:
    def __init__(
        self,
        group: str,
        cluster: ClusterCore,
        state: ConfigState,
        read_to_end: Callable[[], Awaitable[None]],
        write: Callable[[Sequence[Record]], Awaitable[None]],
    ) -> None:
        self._group = group
        self._cluster = cluster
        self._state = state
        self._read_to_end = read_to_end
        self._write = write
        self._locks: dict[str, asyncio.Lock] = {}

    async def fence(self, name: str) -> None:
        """Fence what is due; nothing if it was done since the last task configurations."""
        async with self._locks.setdefault(name, asyncio.Lock()):
            await self._read_to_end()
            if name not in self._state.fencing_due:
                return
            configs = self._state.tasks.get(name)
            await self.raise_epochs(name)
            if self._state.tasks.get(name) is not configs:
                raise Refused(409, OUTDATED.format(name))
            await self._write([(FENCING + name, {"task-count": len(configs or ())})])

    async def raise_epochs(self, name: str) -> None:
        """End the transactions of all tasks that may still write."""
        admin = Admin(self._cluster)
        for number in range(max(len(self._state.tasks.get(name, ())), self._state.fenced.get(name, 0))):
            await admin.fence_producer(f"{self._group}-{name}-{number}")
