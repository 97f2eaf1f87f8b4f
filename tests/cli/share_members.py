"""Members of share groups for tools to describe: our own share consumers, on an event loop in a thread.

`ShareMembers(bootstrap).join("workers", "letters", client_id="ann")` returns when the group describes the
member with its partitions; `leave` ends all members. They release what they read.
"""

import asyncio
import threading
from types import TracebackType
from typing import Self

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.share_groups import ShareGroupDescription
from barnabas.client.cluster import Cluster
from barnabas.client.consumers.share_consumer import ShareConsumer, ShareConsumerSettings
from barnabas.client.core.acknowledgements import AcknowledgeType
from barnabas.client.core.address import parse_bootstrap
from barnabas.testing.waiting import until

ASSIGNED_SECONDS_MAX = 60.0
POLL_MS = 100


class ShareMembers:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._members: list[ShareMemberThread] = []

    def join(self, group: str, topic: str, client_id: str) -> None:
        self._members.append(ShareMemberThread(self._bootstrap, group, topic, client_id))
        asyncio.run(until_assigned(self._bootstrap, group, client_id))

    def leave(self) -> None:
        members, self._members = self._members, []
        for member in members:
            member.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()


class ShareMemberThread:
    def __init__(self, bootstrap: str, group: str, topic: str, client_id: str) -> None:
        self._ended = threading.Event()
        arguments = (bootstrap, group, topic, client_id)
        self._thread = threading.Thread(target=lambda: asyncio.run(self._live(*arguments)))
        self._thread.start()

    async def _live(self, bootstrap: str, group: str, topic: str, client_id: str) -> None:
        async with Cluster(parse_bootstrap(bootstrap), client_id=client_id) as cluster:
            consumer = ShareConsumer(cluster, ShareConsumerSettings(group, explicit=True))
            await consumer.subscribe([topic])
            try:
                while not self._ended.is_set():
                    for record in await consumer.poll(POLL_MS):
                        consumer.acknowledge(record, AcknowledgeType.RELEASE)
                    await asyncio.sleep(POLL_MS / 1000)
            finally:
                await consumer.close()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()


async def until_assigned(bootstrap: str, group: str, client_id: str) -> None:
    async with Cluster(parse_bootstrap(bootstrap)) as cluster:
        admin = Admin(cluster)

        async def is_assigned() -> bool:
            found = (await admin.describe_share_groups([group]))[group]
            if not isinstance(found, ShareGroupDescription):
                return False
            return any(each.client_id == client_id and each.assignment for each in found.members)

        await until(is_assigned, ASSIGNED_SECONDS_MAX, f"the partitions of {client_id} in {group}")
