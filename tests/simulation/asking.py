"""A client of a simulated cluster that asks what a test tells it to."""

from __future__ import annotations

import asyncio
from typing import Any

from barnabas.client.core.address import Address
from barnabas.protocol import Message
from barnabas.protocol.messages.produce import ProduceRequest
from barnabas.records.record import Record, build_batch
from barnabas.simulation.histories.records import BY_NAME_MAX
from barnabas.simulation.world.client import SimulatedClient
from barnabas.simulation.world.routed_client import RoutedClient

TIMEOUT_MS = 9_000.0


class Asking:
    """`serve` is the client's job: only processes have a host that the network knows."""

    def __init__(self) -> None:
        self._requests: asyncio.Queue[Any] = asyncio.Queue()

    async def serve(self, client: SimulatedClient) -> None:
        assert isinstance(client, RoutedClient)
        while True:
            request, response, address, future = await self._requests.get()
            version_max = BY_NAME_MAX if isinstance(request, ProduceRequest) else None
            if address is not None:
                answer = await client.ask_at(
                    address, request, response, timeout_ms=TIMEOUT_MS, version_max=version_max
                )
            else:
                answer = await client.ask(request, response, timeout_ms=TIMEOUT_MS, version_max=version_max)
            future.set_result(answer)

    async def ask(self, request: Message, response: type[Message], address: Address | None = None) -> Any:
        """What this broker says, or the one that the request is for; None: nothing."""
        future = asyncio.get_running_loop().create_future()
        self._requests.put_nowait((request, response, address, future))
        return await future


def produced(topic: str, value: bytes, acks: int, partition: int = 0) -> ProduceRequest:
    data = ProduceRequest.TopicProduceData
    part = data.PartitionProduceData(index=partition, records=bytes(build_batch([Record(value=value)])))
    return ProduceRequest(acks=acks, timeout_ms=2000, topic_data=[data(name=topic, partition_data=[part])])
