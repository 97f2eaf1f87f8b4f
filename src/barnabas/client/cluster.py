"""A cluster on an event loop: `async with Cluster(addresses) as cluster:` closes its connections."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import TracebackType
from typing import Unpack

from barnabas.client.asyncio_network import AsyncioNetwork
from barnabas.client.core.address import Address
from barnabas.client.core.cluster import ClusterCore, ClusterOptions
from barnabas.client.core.connection import ConnectionCore


class Cluster(ClusterCore):
    def __init__(self, bootstrap: Sequence[Address], **options: Unpack[ClusterOptions]) -> None:
        super().__init__(bootstrap, AsyncioNetwork(), **options)
        self._opening: dict[tuple[Address, str], asyncio.Lock] = {}

    async def __aenter__(self) -> Cluster:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def connection_to(self, address: Address, purpose: str = "") -> ConnectionCore:
        """As always; the first of several tasks makes the connection, the others wait for it."""
        async with self._opening.setdefault((address, purpose), asyncio.Lock()):
            return await super().connection_to(address, purpose)

    async def disconnect(self, purpose: str) -> None:
        await super().disconnect(purpose)
        for key in [each for each in self._opening if each[1] == purpose]:
            del self._opening[key]
