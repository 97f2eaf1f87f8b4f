"""A host for share groups in tests: share coordinators respond when the test says so.

In: requests of members and administrators. Out: responses. `StateHost.respond` plays the share coordinators,
which keep the start offsets of partitions, and may refuse.
"""

from __future__ import annotations

from barnabas.groups.basics.settings import GroupSettings
from barnabas.protocol import ErrorCode, Message
from barnabas.protocol.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
)
from barnabas.protocol.messages.initialize_share_group_state import InitializeShareGroupStateResponse
from barnabas.protocol.messages.share_group_describe import (
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from barnabas.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

from ..host import Host

Initialized = InitializeShareGroupStateResponse.InitializeStateResult
Deleted = DeleteShareGroupStateResponse.DeleteStateResult
AT_ONCE = GroupSettings(share_assignment_interval_ms=0)


class StateHost(Host):
    """`states` are the start offsets that share coordinators keep, by group, topic and partition."""

    def __init__(self, topics: dict[str, int], settings: GroupSettings = AT_ONCE) -> None:
        super().__init__(settings, topics)
        self.states: dict[tuple[str, str, int], int] = {}

    def respond(self, code: ErrorCode = ErrorCode.NONE) -> int:
        """Let share coordinators respond to all requests, all with this code. Returns how many they were."""
        calls, self.state_calls = self.state_calls, []
        for call in calls:
            deletes = isinstance(call.request, DeleteShareGroupStateRequest)
            results: list[Initialized | Deleted] = []
            for topic in call.request.topics:
                result: Initialized | Deleted = (Deleted if deletes else Initialized)(topic_id=topic.topic_id)
                results.append(result)
                for each in topic.partitions:
                    part = type(result).PartitionResult(partition=each.partition, error_code=code)
                    result.partitions.append(part)  # type: ignore[arg-type]
                    key = call.request.group_id, self.name_of(topic.topic_id), each.partition
                    if code:
                        continue
                    if deletes:
                        self.states.pop(key, None)
                    else:
                        self.states[key] = each.start_offset
            kind = DeleteShareGroupStateResponse if deletes else InitializeShareGroupStateResponse
            response = kind(results=results)
            self.take(self.shard.state_response(call.number, response, self.image, self.now_ms))
        return len(calls)

    def name_of(self, topic_id: bytes) -> str:
        topic = self.image.topics.by_id.get(topic_id)
        return topic.name if topic is not None else topic_id.hex()

    # Requests

    def beat(
        self,
        group_id: str,
        member_id: str,
        epoch: int,
        topics: list[str] | None = None,
        rack_id: str | None = None,
    ) -> ShareGroupHeartbeatResponse:
        request = ShareGroupHeartbeatRequest(
            group_id=group_id,
            member_id=member_id,
            member_epoch=epoch,
            rack_id=rack_id,
            subscribed_topic_names=topics,
        )
        reply = self.ask("client", request, 1)
        assert isinstance(reply, ShareGroupHeartbeatResponse)
        return reply

    def describe(self, group_id: str) -> ShareGroupDescribeResponse.DescribedGroup:
        reply = self.ask("client", ShareGroupDescribeRequest(group_ids=[group_id]), 1)
        assert isinstance(reply, ShareGroupDescribeResponse)
        return reply.groups[0]

    def wait_for(self, request: Message, version: int, client: str = "admin") -> Message:
        """The response to a request of an administrator, after share coordinators responded."""
        reply = self.ask(client, request, version)
        if reply is None:
            self.respond()
            reply = self.answers.pop(client)
        return reply

    def held(self, reply: ShareGroupHeartbeatResponse) -> dict[str, list[int]] | None:
        if reply.assignment is None:
            return None
        return {self.name_of(each.topic_id): each.partitions for each in reply.assignment.topic_partitions}


class ShareClient:
    """A member of a share group, like real clients."""

    def __init__(self, host: StateHost, group_id: str, member_id: str, topics: list[str]) -> None:
        self.host = host
        self.group_id = group_id
        self.member_id = member_id
        self.topics = topics
        self.epoch = 0
        self.held: dict[str, list[int]] = {}

    def beat(self) -> ErrorCode:
        topics = self.topics if self.epoch == 0 else None
        reply = self.host.beat(self.group_id, self.member_id, self.epoch, topics)
        code = ErrorCode(reply.error_code)
        if code:
            self.epoch, self.held = 0, {}
            return code
        self.epoch = reply.member_epoch
        held = self.host.held(reply)
        self.held = self.held if held is None else held
        return code

    def leave(self) -> None:
        self.host.beat(self.group_id, self.member_id, -1)
        self.epoch, self.held = 0, {}


def settle(host: StateHost, *clients: ShareClient) -> None:
    """All beat, and share coordinators respond, until nothing changes."""
    while True:
        before = [(client.epoch, client.held) for client in clients]
        for client in clients:
            client.beat()
        if not host.respond() and before == [(client.epoch, client.held) for client in clients]:
            return
