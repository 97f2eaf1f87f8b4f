"""One of several processes leads: elected in a classic group, as long as its session holds.

In: a cluster, a group. Out: `is_leader`, and calls of `changed`. The present leader stays if it is still a
member. Two may believe for a moment that they lead, if one of them slept: what a leader writes must bear
that. Does not know: what the leader does.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence

from barnabas.client.core.cluster import ClusterCore
from barnabas.client.groups.member import Assignment, GroupMember
from barnabas.client.groups.membership import GroupSettings, JoinedMember, Offer

log = logging.getLogger("barnabas.groups")

PROTOCOL = "leader"
RESTART_S, RESTART_S_MAX = 1.0, 30.0
NAMES_MAX = 100


class Leadership:
    """`start`, then `changed` is called at each change; `stop` leaves the group."""

    def __init__(
        self, cluster: ClusterCore, settings: GroupSettings, name: str, changed: Callable[[], None]
    ) -> None:
        self.name = name  # of this process, for others
        self.leader = ""  # the name of the leader; empty while nobody is elected
        self.names: tuple[str, ...] = (name,)  # of all processes that take part, as of the last election
        self.problem: str | None = "this process has not joined its group yet"
        self._leaderless_since_s = time.monotonic()
        self._cluster = cluster
        self._settings = settings
        self._changed = changed
        self._is_elected = False
        self._member = GroupMember(cluster, settings, self)
        self._task: asyncio.Task[None] | None = None

    @property
    def is_leader(self) -> bool:
        return self._is_elected and self._member.is_stable

    @property
    def leaderless_s(self) -> float:
        """Seconds for which this process has known no leader; 0 while it knows one."""
        return 0.0 if self.leader else time.monotonic() - self._leaderless_since_s

    def start(self) -> None:
        self._leaderless_since_s = time.monotonic()
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        if self._task is None:
            return
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        await self._member.stop()

    async def _run(self) -> None:
        """Be a member; try again after a refusal, which an operator may mend."""
        pause_s = RESTART_S
        while True:
            self._member.start()
            try:
                await self._member.ended()
            except Exception as error:
                self.problem = f"this process cannot take part in group {self._settings.group_id}: {error}"
                log.error("%s; the next attempt is in %.0f s", self.problem, pause_s)
            await self._member.stop()
            self._conclude("", False)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, RESTART_S_MAX)
            self._member = GroupMember(self._cluster, self._settings, self)

    def _conclude(self, leader: str, is_elected: bool) -> None:
        if self.leader and not leader:
            self._leaderless_since_s = time.monotonic()
        self.leader, was = leader, self._is_elected
        self._is_elected = is_elected
        if was != is_elected:
            self._changed()

    # -- what the group calls ----------------------------------------------------------------------

    def offers(self) -> Sequence[Offer]:
        metadata = {"name": self.name, "leads": self._is_elected}
        return [Offer(PROTOCOL, json.dumps(metadata).encode())]

    async def assign(self, protocol: str, members: Sequence[JoinedMember]) -> Mapping[str, bytes]:
        known = {member.member_id: metadata_of(member.metadata) for member in members}
        chosen = min(known, key=lambda member_id: (not known[member_id][1], member_id))
        names = sorted({name for name, _ in known.values() if name})[:NAMES_MAX]
        data = json.dumps({"member": chosen, "name": known[chosen][0], "names": names}).encode()
        return dict.fromkeys(known, data)

    async def on_assigned(self, assignment: Assignment) -> None:
        found = json.loads(assignment.data)
        self.problem = None
        self.names = tuple(map(str, found.get("names", [found["name"]])))
        self._conclude(str(found["name"]), found["member"] == assignment.member_id)

    async def on_revoked(self) -> None:
        """Lead on while the group rebalances: heartbeats go on, and the next outcome decides."""

    async def on_lost(self) -> None:
        self._conclude("", False)


def metadata_of(data: bytes) -> tuple[str, bool]:
    """The name of a member and whether it leads. A member that tells something else does not lead."""
    try:
        found = json.loads(data)
        return str(found["name"]), bool(found["leads"])
    except (ValueError, KeyError, TypeError):
        return "", False
