"""Members of groups for tools to describe: real consumers, each polled in a thread of its own.

`Members(bootstrap).join("readers", "letters", client_id="ann")` returns when the group is stable and contains
the member; `leave` ends all members.
"""

import asyncio
import threading
from types import TracebackType
from typing import Any, Self

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.groups import GroupDescription
from barnabas.client.cluster import Cluster
from barnabas.client.core.address import parse_bootstrap
from barnabas.testing.waiting import until

STABLE_SECONDS_MAX = 60.0
POLL_S = 0.1
LOOK_S = 0.1
SESSION_TIMEOUT_MS = "6000"


class Members:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._consumers: list[Member] = []

    def join(self, group: str, topic: str, **settings: str) -> None:
        """Add a member; settings are keywords: `client_id`, `group_instance_id`, `group_protocol`."""
        configuration: dict[str, Any] = {
            "bootstrap.servers": self._bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": "false",
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
        if configuration.get("group.protocol") != "consumer":
            configuration["session.timeout.ms"] = (
                SESSION_TIMEOUT_MS  # a static member stays until its session expires
            )
        self._consumers.append(Member(configuration, topic))
        in_group = sum(member.group == group for member in self._consumers)
        asyncio.run(until_stable(self._bootstrap, group, in_group))

    def leave(self) -> None:
        consumers, self._consumers = self._consumers, []
        for consumer in consumers:
            consumer.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()


class Member:
    def __init__(self, configuration: dict[str, Any], topic: str) -> None:
        from confluent_kafka import Consumer

        self.group = configuration["group.id"]
        self._consumer = Consumer(configuration)
        self._consumer.subscribe([topic])
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._live, name=f"member of {self.group}")
        self._thread.start()

    def _live(self) -> None:
        while not self._ended.is_set():
            self._consumer.poll(POLL_S)
        self._consumer.close()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()


async def until_stable(bootstrap: str, group: str, members: int) -> None:
    """Wait until a group has this many members, each with its assignment."""
    async with Cluster(parse_bootstrap(bootstrap)) as cluster:
        admin = Admin(cluster)

        async def is_stable() -> bool:
            found = (await admin.describe_groups([group]))[group]
            if not isinstance(found, GroupDescription) or found.state != "Stable":
                return False
            settled = [m for m in found.members if m.assignment and m.target in ((), m.assignment)]
            return len(found.members) == len(settled) == members

        await until(is_stable, STABLE_SECONDS_MAX, f"{members} settled members of {group}")
