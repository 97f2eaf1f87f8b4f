"""The controller part of a node in a folder: formatted, started, stopped, killed; without sockets and
partitions.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from barnabas.broker.partitions.metadata_partition import load_bootstrap, open_metadata_log
from barnabas.broker.setup.formatting import FormatRequest, format_directories
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.messages.create_topics import CreateTopicsRequest
from barnabas.quorum.broker_lifecycle import BrokerIdentity, BrokerLifecycle
from barnabas.quorum.controller import Controller
from barnabas.runtime.clock import SystemClock
from barnabas.runtime.disk import REAL_DISK, Disk
from barnabas.settings.broker import BrokerSettings
from barnabas.storage.files import meta_properties
from barnabas.storage.logs.context import LogContext

CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
T = TypeVar("T")


def settings_for(folder: Path, **overrides: str) -> BrokerSettings:
    """`overrides` with underscores for dots."""
    values = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": "1@127.0.0.1:9093",
        "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(folder),
    }
    values.update({name.replace("_", "."): value for name, value in overrides.items()})
    if "controller.quorum.bootstrap.servers" in values:
        del values["controller.quorum.voters"]
    return BrokerSettings.load(values)


class TimelessClock(SystemClock):
    """Work takes no time on this clock, so that small work is done at once on a busy machine too."""

    def work_s(self) -> float:
        return 0.0


class Node:
    """`published` holds the committed deltas, in order."""

    def __init__(self, settings: BrokerSettings, disk: Disk = REAL_DISK) -> None:
        self.settings = settings
        self.context = LogContext(disk)
        self.clock = TimelessClock()
        self.published: list[tuple[MetadataDelta, MetadataImage]] = []

    def format(self, **request: Any) -> list[str]:
        return format_directories(
            self.settings,
            CLUSTER_ID,
            FormatRequest(**request),
            now_ms=self.clock.now_ms(),
            random_bytes=os.urandom,
            disk=self.context.disk,
        )

    async def start(self, previous_epoch: int = -1) -> Node:
        settings, clock = self.settings, self.clock
        properties = meta_properties.load(self.context.disk, settings.metadata_log_dir)
        assert properties is not None
        assert properties.directory_id is not None
        self.log = open_metadata_log(settings, properties.directory_id, self.context, clock)
        self.log.add_listener(lambda delta, image: self.published.append((delta, image)))
        self.controller = Controller(settings, properties.cluster_id, self.log, clock, random.Random())
        await self.controller.start(load_bootstrap(self.context.disk, settings.metadata_log_dir))
        identity = BrokerIdentity(
            settings.node_id,
            properties.cluster_id,
            os.urandom(16),
            settings.advertised_listeners,
            [properties.directory_id],
            previous_epoch=previous_epoch,
        )
        self.lifecycle = BrokerLifecycle(
            identity, self.controller.handle, lambda: self.log.image.provenance.offset, 2_000
        )
        await self.lifecycle.register()
        await self.lifecycle.unfence()
        return self

    def sync_in_threads(self) -> None:
        loop = asyncio.get_running_loop()

        async def run(work: Callable[[], None]) -> None:
            await loop.run_in_executor(None, work)

        self.log.run_slow_work_with(run)

    async def create(self, name: str, partitions: int = 1, **configs: str) -> Any:
        topic = CreateTopicsRequest.CreatableTopic
        response = await self.controller.handle(
            CreateTopicsRequest(
                topics=[
                    topic(
                        name=name,
                        num_partitions=partitions,
                        replication_factor=1,
                        configs=[
                            topic.CreatableTopicConfig(name=key.replace("_", "."), value=value)
                            for key, value in configs.items()
                        ],
                    )
                ]
            )
        )
        return response.topics[0]

    async def stop(self) -> int:
        """Make a controlled shutdown. Returns the broker epoch for the clean shutdown file."""
        assert await self.lifecycle.stop(5_000)
        await self.controller.stop()
        await self.log.close()
        return self.lifecycle.epoch

    async def kill(self) -> None:
        """Kill the node: nothing is closed or synced."""
        self.controller._timer.cancel()  # type: ignore[union-attr]
        self.lifecycle._heartbeats.cancel()  # type: ignore[union-attr]
        await asyncio.wait([self.lifecycle._heartbeats])  # type: ignore[list-item]


def run(main: Callable[[], Awaitable[T]]) -> T:
    async def within() -> T:
        return await main()

    return asyncio.run(within())
