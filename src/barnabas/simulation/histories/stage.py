"""The stage of a history: starts the node and the clients, injects faults, ends them, and waits for progress.

In: settings, clients, a plan of faults. Out: the order of events that all histories share.
Does not know: what the clients do, what is checked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from barnabas.client.core.address import Address
from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from barnabas.simulation.world.client import Job, SimulatedClient
from barnabas.simulation.world.faults import (
    ALL_KINDS,
    DISK_KINDS,
    POWER_KINDS,
    WITHOUT_POWER,
    Faults,
    Kind,
    Plan,
)
from barnabas.simulation.world.loop import Stuck
from barnabas.simulation.world.node import SimulatedNode
from barnabas.simulation.world.world import World

LOOK_S = 0.05
DISK_CHANCE = 0.3
ALREADY_THERE = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)


@dataclass(frozen=True, slots=True)
class Promise:
    """The promise of a node's settings for acknowledged records, and which faults must not break it."""

    name: str
    properties: dict[str, str]
    kinds: tuple[Kind, ...]
    survives_power_loss: bool


# Apache Kafka's default: acknowledged records survive as long as the operating system does.
WRITTEN = Promise("written", {}, WITHOUT_POWER, survives_power_loss=False)
SYNCED = Promise(
    "synced", {"log.flush.interval.messages": "1"}, ALL_KINDS + 3 * POWER_KINDS, survives_power_loss=True
)
# A power loss may remove acknowledged records; the remaining ones must be consistent.
HOPED = Promise("hoped", {}, ALL_KINDS, survives_power_loss=False)
# Logs roll, and those of coordinators are compacted, every few seconds.
COMPACTED = {
    "log.roll.ms": "1500",
    "log.cleaner.backoff.ms": "700",
    "log.cleaner.min.cleanable.ratio": "0.01",
}
PROMISES = (WRITTEN, SYNCED, SYNCED, HOPED)


def promise_of(rng: Random) -> Promise:
    return rng.choice(PROMISES)


def kinds_of(promise: Promise, rng: Random) -> tuple[Kind, ...]:
    """The faults for a promise. Disk faults occur only in some histories, since they hide other faults."""
    return promise.kinds + DISK_KINDS if rng.random() < DISK_CHANCE else promise.kinds


class Machines(Protocol):
    """The interface of a node or a cluster that a history uses."""

    on_power_loss: list[Callable[[], None]]

    @property
    def is_up(self) -> bool: ...

    @property
    def lives(self) -> int: ...

    @property
    def power_losses(self) -> int: ...

    async def supervise(self) -> None: ...


class FaultInjector(Protocol):
    def schedule(self, faults: Plan) -> None: ...

    def repair_all(self) -> None: ...


class Stage:
    """The stage of a history with one node."""

    replication_factor = 1

    def __init__(self, world: World, properties: dict[str, str]) -> None:
        self.world = world
        self.clients: list[SimulatedClient] = []
        self.faults_are_over = False
        self.node = self._build(properties)

    def _build(self, properties: dict[str, str]) -> Machines:
        self._one = SimulatedNode(self.world, properties=properties)
        return self._one

    def _client(self, name: str, job: Job) -> SimulatedClient:
        return SimulatedClient(self.world, [Address(*self._one.bootstrap)], name, job)

    def _fault_injector(self, clients: Sequence[SimulatedClient]) -> FaultInjector:
        return Faults(self.world, [self._one], clients)

    def node_at(self, host: str) -> SimulatedNode | None:
        return self._one if host == self._one.host else None

    async def open(self) -> None:
        self.world.start(self.node.supervise())
        await self.until(lambda: self.node.is_up, 30, "the node starts")

    def add(self, name: str, job: Job) -> SimulatedClient:
        client = self._client(name, job)
        self.clients.append(client)
        return client

    async def inject_faults(self, faults: Plan, seconds: float, clients: Sequence[SimulatedClient]) -> None:
        """Inject the faults, then repair everything and wait until the node is up."""
        injector = self._fault_injector(clients)
        injector.schedule(faults)
        await asyncio.sleep(seconds)
        self.world.loop.call_soon(injector.repair_all)
        await asyncio.sleep(0)
        self.faults_are_over = True
        await self.until(lambda: self.node.is_up, 60, "the node is up again")

    async def until(self, condition: Callable[[], bool], seconds: float, what: str) -> None:
        """Wait for a condition; `Stuck` if it is not true in time."""
        end = self.world.loop.time() + seconds
        while not condition():
            if self.world.loop.time() > end:
                raise Stuck(f"{what}: not within {seconds:.0f} s")
            await asyncio.sleep(LOOK_S)


async def create_topic(stage: Stage, name: str, partitions: int) -> bytes:
    """Create a topic with a client before faults are injected. Returns its id."""
    created: list[bytes] = []
    topic = CreateTopicsRequest.CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=stage.replication_factor
    )
    request = CreateTopicsRequest(topics=[topic], timeout_ms=5000)

    async def create(client: SimulatedClient) -> None:
        response = await client.ask_until_answered(
            request, CreateTopicsResponse, lambda response: response.topics[0].error_code in ALREADY_THERE
        )
        created.append(response.topics[0].topic_id)

    stage.add(f"creator of {name}", create)
    await stage.until(lambda: bool(created), 60, f"topic {name} is created")
    return created[0]
