"""This node's seat in the registry's group: it learns who the primary is, and tells when it changes.

In: a cluster, the node's identity. Out: the primary, or None; `changed` is called with each new outcome.
While the group rebalances the outcome is not settled, and writes wait. Does not know: the log, HTTP.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from barnabas.client.core.cluster import ClusterCore
from barnabas.client.groups.member import Assignment, GroupMember
from barnabas.client.groups.membership import GroupSettings, JoinedMember, Offer
from barnabas.registry.election.identity import (
    DUPLICATE_URLS,
    NOBODY,
    Election,
    Identity,
    elect,
    election_of,
    identity_of,
)

log = logging.getLogger("barnabas.registry")

PROTOCOL_TYPE = "sr"
PROTOCOL = "v0"
RESTART_S, RESTART_S_MAX = 1.0, 30.0


@dataclass(frozen=True, slots=True)
class ElectionSettings:
    group_id: str = "schema-registry"
    session_timeout_ms: int = 10_000
    rebalance_timeout_ms: int = 300_000
    heartbeat_interval_ms: int = 3_000


class Seat:
    """A Listener of the group."""

    def __init__(
        self,
        cluster: ClusterCore,
        settings: ElectionSettings,
        identity: Identity,
        changed: Callable[[], None],
    ) -> None:
        self.identity = identity
        self.election = NOBODY
        self.problem: str | None = "the node has not joined its group yet"
        self._changed = changed
        self._cluster = cluster
        self._settings = GroupSettings(
            settings.group_id,
            PROTOCOL_TYPE,
            session_timeout_ms=settings.session_timeout_ms,
            rebalance_timeout_ms=settings.rebalance_timeout_ms,
            heartbeat_interval_ms=settings.heartbeat_interval_ms,
        )
        self._member = GroupMember(cluster, self._settings, self)
        self._settled = asyncio.Event()
        self._took_part = False  # since the last refusal
        self._task: asyncio.Task[None] | None = None

    @property
    def is_primary(self) -> bool:
        """Whether this node may write: it is elected, and its session is not over."""
        return self._is_elected and self._member.is_stable

    @property
    def primary(self) -> Identity | None:
        """The primary as far as this node knows."""
        return self.election.primary

    @property
    def _is_elected(self) -> bool:
        mine = self._member.membership.member_id
        return self.election.primary is not None and self.election.member_id == mine != ""

    async def settled(self, timeout_s: float) -> None:
        """Wait until the group has an outcome, at most for some time."""
        if self._settled.is_set():
            return
        try:
            async with asyncio.timeout(timeout_s):
                await self._settled.wait()
        except TimeoutError:
            return

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._member.stop()

    def doubt(self, reason: str) -> None:
        """Ask the group again: another node seems to be the primary."""
        self._settled.clear()
        self._member.rejoin(reason)

    async def _run(self) -> None:
        """Be a member; try again after a refusal, which an operator may mend."""
        pause_s = RESTART_S
        while True:
            self._took_part = False
            self._member.start()
            try:
                await self._member.ended()
            except Exception as error:
                if self._took_part:
                    pause_s = RESTART_S
                self.problem = f"the node cannot take part in the group {self._settings.group_id}: {error}"
                log.error("%s; the next attempt is in %.0f s", self.problem, pause_s)
            await self._member.stop()
            self._conclude(NOBODY)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, RESTART_S_MAX)
            self._member = GroupMember(self._cluster, self._settings, self)

    # -- what the group calls ----------------------------------------------------------------------

    def offers(self) -> Sequence[Offer]:
        return [Offer(PROTOCOL, replace(self.identity, is_primary=self._is_elected).encode())]

    async def assign(self, protocol: str, members: Sequence[JoinedMember]) -> Mapping[str, bytes]:
        known: dict[str, Identity] = {}
        for member in members:
            try:
                known[member.member_id] = identity_of(member.metadata)
            except ValueError as error:
                log.warning("the member %s of the registry's group is ignored: %s", member.member_id, error)
        assignment = elect(known).encode()
        return {member.member_id: assignment for member in members}

    async def on_assigned(self, assignment: Assignment) -> None:
        try:
            election = election_of(assignment.data)
        except ValueError as error:
            log.error("the group's leader sent an assignment that cannot be read: %s", error)
            election = NOBODY
        self.problem = None
        self._took_part = True
        if election.error == DUPLICATE_URLS:
            self.problem = "two nodes of the registry have the same URL: set host.name or listeners"
            log.error("%s", self.problem)
        elif election.error:
            self.problem = f"the election of the primary failed with error {election.error}"
            log.error("%s", self.problem)
        self._conclude(election)

    async def on_revoked(self) -> None:
        self._settled.clear()  # the outcome counts until the next one is known, but nobody writes meanwhile

    async def on_lost(self) -> None:
        self.problem = "the node lost its place in the group"
        self._conclude(NOBODY)

    def _conclude(self, election: Election) -> None:
        if election.primary != self.election.primary or election.member_id != self.election.member_id:
            url = "nobody" if election.primary is None else election.primary.url
            log.info("the primary of the registry is %s", url)
        self.election = election
        self._settled.set()
        self._changed()
