"""A member of a classic group on an event loop: it joins, leads if it is elected, sends heartbeats, leaves.

In: a cluster, the settings of the membership, and a Listener with the member's own part: its metadata, the
assignment if it leads, its reactions. Out: calls of the listener, in order, one at a time. The member joins
again by itself after rebalances, lost sessions and moves of the coordinator; it ends with `failure` when the
coordinator refuses it for good. Does not know: topics, offsets, the content of metadata.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from barnabas.client.core.cluster import ClusterCore
from barnabas.client.core.coordinators import GROUP, Coordinators
from barnabas.client.core.errors import ClientError, Unreachable
from barnabas.client.core.topology import Node
from barnabas.client.groups.membership import (
    GroupSettings,
    JoinedMember,
    Membership,
    Offer,
    State,
    Step,
    coordinator_problem,
)
from barnabas.protocol import KafkaError, Message
from barnabas.protocol.messages.heartbeat import HeartbeatResponse
from barnabas.protocol.messages.join_group import JoinGroupResponse
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from barnabas.protocol.messages.sync_group import SyncGroupResponse

log = logging.getLogger("barnabas.groups")

R = TypeVar("R", bound=Message)

JOIN_SLACK_MS = 5_000  # the coordinator responds to a join after the rebalance timeout at the latest
LEAVE_TIMEOUT_S = 5.0
RETRY_S = 0.1
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Assignment:
    """The assignment of a member in one generation."""

    generation: int
    member_id: str
    protocol: str
    leader: str
    data: bytes


class Listener(Protocol):
    """The member's own part. Heartbeats go on while a coroutine of it runs."""

    def offers(self) -> Sequence[Offer]:
        """Protocols in order of preference, with the metadata of this moment: asked at each join."""

    async def assign(self, protocol: str, members: Sequence[JoinedMember]) -> Mapping[str, bytes]:
        """Compute the assignments by member id: this member leads the group."""

    async def on_assigned(self, assignment: Assignment) -> None:
        """Begin with the assignment."""

    async def on_revoked(self) -> None:
        """Finish before the next join, or before leaving: the coordinator still accepts commits."""

    async def on_lost(self) -> None:
        """Stop at once: the assignment may belong to others already. Commits are refused."""


class GroupMember:
    """`start`, then the listener is called; `stop` leaves the group."""

    def __init__(self, cluster: ClusterCore, settings: GroupSettings, listener: Listener) -> None:
        self.cluster = cluster
        self.settings = settings
        self.membership = Membership(settings)
        self.failure: Exception | None = None
        self._listener = listener
        self._coordinators = Coordinators(cluster, GROUP)
        # Brokers respond in order, and a join waits for other members.
        self._joining = f"group member {next(_numbers)}"
        self._is_due = asyncio.Event()  # the member has to join again
        self._reason = ""
        self._is_lost = False
        self._refusal: Exception | None = None
        self._was_assigned = False
        self._session_ends_at = 0.0
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def is_stable(self) -> bool:
        """Whether the assignment holds: no rebalance is known, and the session is not over."""
        is_due = self._is_due.is_set()
        return self.membership.state is State.STABLE and not is_due and self._now() < self._session_ends_at

    def start(self) -> None:
        self._tasks = [asyncio.create_task(self._take_part()), asyncio.create_task(self._send_heartbeats())]

    async def ended(self) -> None:
        """Wait until the member is stopped; raises what it failed with."""
        await asyncio.wait(self._tasks[:1])
        if self.failure is not None:
            raise self.failure

    def rejoin(self, reason: str) -> None:
        """Join again, with new metadata: asked for by the member itself."""
        self._reason = reason
        self._is_due.set()

    async def stop(self, *, leave: bool | None = None) -> None:
        """Revoke, and leave the group. A static member stays in it unless told to leave."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        try:
            if self._was_assigned:
                self._was_assigned = False
                await self._listener.on_revoked()
        finally:
            should_leave = self.settings.instance_id is None if leave is None else leave
            if should_leave and self.membership.member_id:
                await self._leave()
            await self.cluster.disconnect(self._joining)

    # -- taking part -------------------------------------------------------------------------------

    async def _take_part(self) -> None:
        try:
            while True:
                assignment = await self._enter()
                self._was_assigned = True
                await self._listener.on_assigned(assignment)
                await self._is_due.wait()
                if self._is_lost:
                    await self._lose()
                else:
                    await self._listener.on_revoked()
        except Exception as error:
            self.failure = error
            log.error("the member of group %s gave up: %s", self.settings.group_id, error)
            await self._lose()
            self._tasks[1].cancel()

    async def _enter(self) -> Assignment:
        """Join and sync until there is an assignment."""
        for attempt in itertools.count():
            if attempt > 1:  # the first one may only have got a member id
                await asyncio.sleep(RETRY_S)
            step, data = await self._join_once()
            if step is Step.GO_ON:
                membership = self.membership
                return Assignment(
                    membership.generation, membership.member_id, membership.protocol, membership.leader, data
                )
            if step is Step.LOST:
                await self._lose()
        raise AssertionError("joining ends with an assignment or an error")

    async def _join_once(self) -> tuple[Step, bytes]:
        if self._refusal is not None:
            raise self._refusal
        membership = self.membership
        self._is_due.clear()
        self._is_lost = False
        request = membership.join_request(self._listener.offers(), self._reason)
        timeout_ms = self.settings.rebalance_timeout_ms + JOIN_SLACK_MS
        step = membership.joined(await self._ask_patiently(request, JoinGroupResponse, timeout_ms))
        if step is not Step.GO_ON:
            return step, b""
        self._renew_session(self._now())
        self._reason = ""
        plan: Mapping[str, bytes] = {}
        if membership.assigns:
            plan = await self._listener.assign(membership.protocol, membership.members)
        response = await self._ask_patiently(membership.sync_request(plan), SyncGroupResponse, timeout_ms)
        return membership.synced(response), bytes(response.assignment)

    async def _lose(self) -> None:
        self._is_lost = False
        if self._was_assigned:
            self._was_assigned = False
            await self._listener.on_lost()

    # -- heartbeats --------------------------------------------------------------------------------

    async def _send_heartbeats(self) -> None:
        try:
            while True:
                await asyncio.sleep(self.settings.heartbeat_interval_ms / 1000)
                while self.membership.state in (State.SYNCING, State.STABLE) and not self._is_lost:
                    if await self._heartbeat():
                        break
                    await asyncio.sleep(RETRY_S)
        except Exception as error:  # without heartbeats the member would be removed and not notice
            self._refusal = error
            self._give_up_assignment()

    async def _heartbeat(self) -> bool:
        """Send one heartbeat; False when nobody responded."""
        sent_at = self._now()
        membership = self.membership
        request = membership.heartbeat_request()
        try:
            async with asyncio.timeout_at(self._session_ends_at):
                response = await self._ask(request, HeartbeatResponse, None)
        except (TimeoutError, KafkaError, ClientError) as error:
            is_current = membership.state is State.STABLE and request.generation_id == membership.generation
            if is_current and self._now() >= self._session_ends_at:
                log.warning(
                    "the session of group %s ended: %s", self.settings.group_id, error or "no response"
                )
                membership.session_ended()
                self._give_up_assignment()
            return False
        self._renew_session(sent_at)
        try:
            step = membership.handle_heartbeat_response(request, response)
        except KafkaError as error:
            self._refusal = error  # a static member that joined again would fence its successor
            step = Step.LOST
        if step is Step.LOST:
            self._give_up_assignment()
        elif step is Step.JOIN:
            self._is_due.set()
        return True

    def _give_up_assignment(self) -> None:
        self._is_lost = True
        self._is_due.set()

    def _renew_session(self, sent_at: float) -> None:
        self._session_ends_at = sent_at + self.settings.session_timeout_ms / 1000

    # -- the coordinator ---------------------------------------------------------------------------

    async def _ask_patiently(self, request: Message, response_type: type[R], timeout_ms: float) -> R:
        """As `_ask`, for as long as it takes, by the connection for joins."""
        while True:
            try:
                return await self._ask(request, response_type, timeout_ms, self._joining)
            except KafkaError as error:
                if not error.code.retriable:
                    raise
                log.warning("group %s: %s", self.settings.group_id, error)
            except Unreachable as error:
                if not self.cluster.may_retry:
                    raise
                log.warning("group %s: %s", self.settings.group_id, error)
            await asyncio.sleep(RETRY_S)

    async def _ask(
        self, request: Message, response_type: type[R], timeout_ms: float | None, purpose: str = ""
    ) -> R:
        """The response of the coordinator, which is found again after it moved."""
        group_id = self.settings.group_id

        async def question(node: Node) -> R:
            connection = await self.cluster.connection_to(node.address, purpose)
            try:
                response = await connection.send(request, response_type, timeout_ms=timeout_ms)
            except BaseException:
                if purpose:
                    await connection.close()  # behind a join that waits no other request gets a response
                raise
            problem = coordinator_problem(response.error_code, group_id)  # type: ignore[attr-defined]
            if problem is not None:
                raise problem
            return response

        return await self._coordinators.ask_one(group_id, question)

    async def _leave(self) -> None:
        """Leave; a coordinator that does not hear of it notices the end of the session."""
        membership = self.membership
        group_id = self.settings.group_id

        async def question(node: Node) -> LeaveGroupResponse:
            connection = await self.cluster.connection_to(node.address)
            request = membership.leave_request(connection.version_for(LeaveGroupRequest), "the member stops")
            response = await connection.send(request, LeaveGroupResponse)
            problem = coordinator_problem(response.error_code, group_id)
            if problem is not None:
                raise problem
            return response

        try:
            async with asyncio.timeout(LEAVE_TIMEOUT_S):
                await self._coordinators.ask_one(group_id, question)
        except (TimeoutError, KafkaError, ClientError) as error:
            log.warning("group %s was not told that a member left: %s", group_id, error or "no response")
        membership.left()

    def _now(self) -> float:
        return asyncio.get_running_loop().time()
