"""A member of a share group whose heartbeats get lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from barnabas.client.consumers.share_member import ShareMember
from barnabas.client.core.address import Address
from barnabas.client.core.coordinators import Coordinators
from barnabas.client.core.errors import ConnectionLost
from barnabas.client.core.topology import Node
from barnabas.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

TOPIC_ID = bytes(range(16))
NODE = Node(1, "localhost", 9092)
Response = ShareGroupHeartbeatResponse


class Coordinator:
    """Repeats an assignment only to members that tell their topics, as Kafka's. Loses the second response,
    which has it."""

    may_retry = True
    network = None

    def __init__(self) -> None:
        self.heartbeats: list[list[str] | None] = []

    async def connection_to(self, address: Address) -> Coordinator:
        return self

    async def send(self, request: ShareGroupHeartbeatRequest, response: object) -> Response:
        self.heartbeats.append(request.subscribed_topic_names)
        count = len(self.heartbeats)
        if count == 2:
            raise ConnectionLost(NODE.address, "planted")
        is_full = request.subscribed_topic_names is not None
        found = [Response.TopicPartitions(topic_id=TOPIC_ID, partitions=[0])] if count > 2 else []
        return Response(
            member_epoch=min(count, 2),
            heartbeat_interval_ms=1,
            assignment=Response.Assignment(topic_partitions=found) if is_full else None,
        )


async def ask_until_answered(self: Any, group: str, question: Callable[[Node], Awaitable[Any]]) -> Any:
    while True:
        try:
            return await question(NODE)
        except ConnectionLost:
            continue


def test_an_assignment_is_learnt_although_its_response_was_lost(monkeypatch: Any) -> None:
    monkeypatch.setattr(Coordinators, "ask_one", ask_until_answered)
    coordinator = Coordinator()

    async def main() -> None:
        member = ShareMember(coordinator, "group", "member", lambda: None)  # type: ignore[arg-type]
        member.start(["topic"])
        async with asyncio.timeout(30):
            while not member.assignment:
                await asyncio.sleep(0)
        await member.stop()

    asyncio.run(main())

    assert coordinator.heartbeats[:3] == [["topic"], None, ["topic"]]
