"""A member of a share group on an event loop: heartbeats, and the partitions that the group assigns to it.

In: a cluster, a group id, topics. Out: the assignment, which changes without asking (a share group has no
rebalance: members simply read what they are told, KIP-932). The member joins again by itself when it was
fenced or the coordinator moved; it ends with `failure` when the coordinator refuses it for good.
Does not know: records, share sessions.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Callable, Iterable

from barnabas.client.core.cluster import ClusterCore
from barnabas.client.core.coordinators import GROUP, Coordinators
from barnabas.client.core.errors import ClientError, Unreachable, error_of
from barnabas.client.core.network import Network
from barnabas.client.core.share_session import Place
from barnabas.client.core.topology import Node
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

log = logging.getLogger("barnabas.consumers")

JOIN_EPOCH, LEAVE_EPOCH = 0, -1
FENCED = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID)
FIRST_INTERVAL_MS = 1_000  # until the coordinator tells its own
RETRY_S = 0.1
LEAVE_TIMEOUT_S = 5.0


def new_member_id(network: Network) -> str:
    """A random id in the form of Kafka's UUIDs."""
    data = bytes(int(network.uniform(0, 256)) & 0xFF for _ in range(16))
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


class ShareMember:
    """`start`, then `assignment` changes, each time with a call of `on_change`; `stop` leaves the group."""

    def __init__(
        self,
        cluster: ClusterCore,
        group_id: str,
        member_id: str,
        on_change: Callable[[], None],
        rack_id: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.epoch = JOIN_EPOCH
        self.assignment: frozenset[Place] = frozenset()
        self.failure: Exception | None = None
        self._cluster = cluster
        self._coordinators = Coordinators(cluster, GROUP)
        self._on_change = on_change
        self._rack_id = rack_id
        self._topics: tuple[str, ...] = ()
        self._sent_topics: tuple[str, ...] | None = None  # of the last heartbeat that was answered
        self._interval_ms = FIRST_INTERVAL_MS
        self._is_due = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self, topics: Iterable[str]) -> None:
        self._topics = tuple(sorted(topics))
        self._task = asyncio.create_task(self._take_part())

    def subscribe(self, topics: Iterable[str]) -> None:
        """Tell the coordinator about other topics with the next heartbeat, which is sent at once."""
        self._topics = tuple(sorted(topics))
        self._is_due.set()

    async def stop(self) -> None:
        """Leave the group. A coordinator that does not hear of it notices the end of the session."""
        if self._task is None:
            return
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._task = None
        if self.epoch == JOIN_EPOCH:
            return
        self.epoch = LEAVE_EPOCH
        try:
            async with asyncio.timeout(LEAVE_TIMEOUT_S):
                await self._send(self._request())
        except (TimeoutError, KafkaError, ClientError) as error:
            log.warning("share group %s was not told that a member left: %s", self.group_id, error or "")
        self._become_stranger()

    # -- heartbeats --------------------------------------------------------------------------------

    async def _take_part(self) -> None:
        while True:
            self._is_due.clear()
            try:
                pause_s = await self._heartbeat()
            except (KafkaError, ClientError) as error:
                is_passing = isinstance(error, Unreachable) and self._cluster.may_retry
                if not is_passing and not (isinstance(error, KafkaError) and error.code.retriable):
                    self.failure = error
                    self._set_assignment(frozenset())
                    return
                log.warning("share group %s: %s", self.group_id, error)
                self._sent_topics = None  # a lost response may have had the assignment
                pause_s = RETRY_S
            await self._pause(pause_s)

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._is_due.wait()
        except TimeoutError:
            pass

    async def _heartbeat(self) -> float:
        """Send one heartbeat; the time until the next one."""
        topics = self._topics
        response = await self._send(self._request())
        if response.error_code in FENCED:
            log.warning("share group %s fenced its member %s", self.group_id, self.member_id)
            self._become_stranger()
            return RETRY_S
        if response.error_code:
            reason = response.error_message or error_of(response.error_code).message
            raise error_of(response.error_code, f"share group {self.group_id}: {reason}")
        self.epoch = response.member_epoch
        self._sent_topics = topics
        self._interval_ms = max(1, response.heartbeat_interval_ms)
        if response.assignment is not None:
            self._set_assignment(
                frozenset(
                    (topic.topic_id, index)
                    for topic in response.assignment.topic_partitions
                    for index in topic.partitions
                )
            )
        return self._interval_ms / 1000

    def _request(self) -> ShareGroupHeartbeatRequest:
        is_joining = self.epoch == JOIN_EPOCH
        tells_topics = is_joining or (self.epoch != LEAVE_EPOCH and self._topics != self._sent_topics)
        return ShareGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=self.epoch,
            rack_id=self._rack_id if is_joining else None,
            subscribed_topic_names=list(self._topics) if tells_topics else None,
        )

    async def _send(self, request: ShareGroupHeartbeatRequest) -> ShareGroupHeartbeatResponse:
        """The response of the coordinator, which is found again after it moved. From the second attempt on
        the member tells its topics: a lost response may have had its assignment, which the coordinator
        repeats only then."""
        attempts = 0

        async def question(node: Node) -> ShareGroupHeartbeatResponse:
            nonlocal attempts
            attempts += 1
            if attempts > 1 and request.member_epoch != LEAVE_EPOCH:
                request.subscribed_topic_names = list(self._topics)
            connection = await self._cluster.connection_to(node.address)
            response = await connection.send(request, ShareGroupHeartbeatResponse)
            if response.error_code and error_of(response.error_code).code.retriable:
                raise error_of(response.error_code, response.error_message)
            return response

        return await self._coordinators.ask_one(self.group_id, question)

    def _become_stranger(self) -> None:
        self.epoch = JOIN_EPOCH
        self._sent_topics = None
        self._set_assignment(frozenset())

    def _set_assignment(self, assignment: frozenset[Place]) -> None:
        if assignment != self.assignment or self.failure is not None:
            self.assignment = assignment
            self._on_change()
