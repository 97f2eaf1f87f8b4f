"""A coordinator and what is around it, with real logs and no sockets.

In: a folder, settings. Out: partitions that it leads, a tick to close, answers to wait for.
Does not know: what is coordinated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar, cast

from barnabas.broker.api.context import RequestContext
from barnabas.broker.metrics import Metrics
from barnabas.broker.partitions.partition import Partition
from barnabas.broker.partitions.topic_rules import rules_of
from barnabas.broker.produce.tick import Tick
from barnabas.connection.arena import Arena
from barnabas.metadata.image import EMPTY_IMAGE
from barnabas.protocol import Message
from barnabas.runtime.pieces import Pieces
from barnabas.runtime.threads import Threads
from barnabas.settings import BrokerSettings, TopicSettings
from barnabas.storage.logs.log import Log
from barnabas.testing.waiting import PATIENCE_S, until

SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "C",
    "listeners": "PLAINTEXT://:0,C://:0",
    "listener.security.protocol.map": "C:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "controller.quorum.voters": "1@h:1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}


class Clock:
    ms = 1_000
    set_by_ms = 0

    def now_ms(self) -> int:
        return self.ms + self.set_by_ms

    def steady_ms(self) -> int:
        return self.ms

    def work_s(self) -> float:
        return 0.0


class CoordinatorWorld:
    """Subclasses create the `coordinator`, which has one partition."""

    coordinator: Any

    def __init__(self, folder: Path, loop: asyncio.AbstractEventLoop) -> None:
        self.settings = BrokerSettings.load(SETTINGS)
        self.clock = Clock()
        self.tick = Tick(Arena(), loop.call_soon, lambda due, done: done({}))
        self.rules = rules_of(TopicSettings.resolve({}, self.settings))
        self.folder = folder
        self.logs: list[Log] = []
        self.broker = SimpleNamespace(
            access=None,
            settings=self.settings,
            clock=self.clock,
            threads=Threads(loop, 2),
            loop=loop,
            image=EMPTY_IMAGE,
            pieces=Pieces(self.clock.work_s),
            unexpected=self.tick.unexpected,
        )

    def new_partition(self, topic: str, leader_epoch: int) -> Partition:
        log = Log.create(str(self.folder / f"{topic}-0"), self.rules.log, now_ms=self.clock.ms)
        self.logs.append(log)
        partition = Partition(topic, 0, topic[:2].encode() * 8, log, 1, self.tick, Metrics().topic(topic))
        partition.configure(self.rules)
        partition.lead(leader_epoch, (1,))
        return partition

    def ask(self, request: Message, version: int = 5) -> Any:
        """Send a request. Out: the response, or a Deferred."""
        return self.coordinator.hosts[0].handle_part(request, self.context(version))

    def context(self, version: int) -> RequestContext:
        context = SimpleNamespace(
            client_id="test",
            host="127.0.0.1",
            version=version,
            broker=self.broker,
            rights=None,
            correlation_id=0,
        )
        return cast(RequestContext, context)

    async def active(self) -> None:
        """Wait until the host has loaded."""
        await until(lambda: self.coordinator.hosts[0].error is None, what="the host has loaded")

    async def close(self) -> None:
        await self.coordinator.close()
        self.broker.threads.close()
        for log in self.logs:
            log.close()


World = TypeVar("World", bound=CoordinatorWorld)


def run(
    make: Callable[[asyncio.AbstractEventLoop], World], scenario: Callable[[World], Awaitable[None]]
) -> None:
    """Run the scenario in a world of its own."""

    async def all_of_it() -> None:
        world = make(asyncio.get_running_loop())
        try:
            world.coordinator.start()
            await world.coordinator.started()
            await scenario(world)
        finally:
            await world.close()

    asyncio.run(all_of_it())


async def resolved(deferred: Any) -> Any:
    if isinstance(deferred, Message):
        return deferred
    future: asyncio.Future[Message | None] = asyncio.get_running_loop().create_future()
    deferred.then(future.set_result)
    return await asyncio.wait_for(future, PATIENCE_S)


def disk_is_full(*_: object) -> int:
    raise OSError(28, "No space left on device")
