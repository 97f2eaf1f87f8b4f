"""A node that lacks descriptors for some work: it is done when there are some."""

from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path

from barnabas.broker.node import Node
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.topics import NewTopic
from barnabas.client.cluster import Cluster
from barnabas.client.core.address import Address
from barnabas.runtime.disk import Disk
from barnabas.settings import BrokerSettings
from barnabas.testing import Broker
from barnabas.testing.waiting import until


class ShortDisk(Disk):
    """Refuses to open files with this text in their path."""

    refused_part: str | None = None
    refusals = 0

    def open(self, path: str, flags: int, mode: int = 0o777) -> int:
        if self.refused_part is not None and self.refused_part in path:
            self.refusals += 1
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return super().open(path, flags, mode)


def test_a_partition_is_created_once_descriptors_are_available(tmp_path: Path) -> None:
    described = Broker(tmp_path / "data")
    disk = ShortDisk()

    async def main() -> None:
        node = Node(BrokerSettings.load(described.properties), format_empty=True, disk=disk)
        await node.start()
        disk.refused_part = "/orders-"
        async with Cluster([Address("127.0.0.1", described.port)]) as cluster:
            creating = asyncio.ensure_future(Admin(cluster).create_topic(NewTopic("orders", 1)))
            await until(lambda: disk.refusals > 3)
            assert node.broker.partitions.get("orders", 0) is None
            disk.refused_part = None
            await until(lambda: node.broker.partitions.get("orders", 0) is not None)
            await creating
        partition = node.broker.partitions.get("orders", 0)
        assert partition is not None and partition.is_leader
        assert not node.broker.partitions.is_offline("orders", 0)
        assert node.broker.unexpected.count == 0
        await node.stop()

    asyncio.run(main())
