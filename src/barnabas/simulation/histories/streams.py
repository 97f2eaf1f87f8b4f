"""A history of streams groups: members of several processes join, leave, pause, die, run tasks and commit.

Checks (see `group_checks`): those of groups of the consumer protocol, for active tasks; and a process never
runs a task twice, as active task or standby. Progress: after the faults every task has an owner whose commits
succeed, and every task with a store has its standby in another process.
"""

from __future__ import annotations

from barnabas.simulation.histories.group_member import SESSION_MS, Group
from barnabas.simulation.histories.groups import GROUP_SETTINGS, GroupsHistory
from barnabas.simulation.histories.streams_member import STREAMS, StreamsMember
from barnabas.simulation.models.group_checks import Copies
from barnabas.simulation.world.client import Job, SimulatedClient
from barnabas.simulation.world.world import rng_of

STREAMS_SETTINGS = {
    "group.streams.min.session.timeout.ms": "1000",
    "group.streams.session.timeout.ms": str(SESSION_MS),
    "group.streams.min.heartbeat.interval.ms": "100",
    "group.streams.heartbeat.interval.ms": "500",
    "group.streams.assignment.interval.ms": "0",
}


class StreamsHistory(GroupsHistory):
    name = "streams"

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        rng = rng_of(seed, "streams")
        self.kinds = [STREAMS] * min(len(self.kinds), 2)
        self.sizes = self.sizes[: len(self.kinds)]
        self.has_store = rng.random() < 0.7
        self.standbys = rng.choice((0, 1, 1)) if self.has_store else 0
        self.threads = rng.choice((1, 1, 2))  # of a process
        self.delay_ms = rng.choice((0, 0, 700))
        if self.has_store:
            self.growth = 0  # a changelog topic does not grow with the source topic
        self.copies: dict[str, Copies] = {}

    @property
    def settings(self) -> dict[str, str]:
        return {
            **GROUP_SETTINGS,
            **STREAMS_SETTINGS,
            "group.streams.num.standby.replicas": str(self.standbys),
            "group.streams.initial.rebalance.delay.ms": str(self.delay_ms),
        }

    def _job(self, group: Group, number: int) -> Job:
        now = self._stage.world.loop.time
        copies = self.copies.setdefault(group.name, Copies(group.name, now, SESSION_MS / 1000))
        process = f"process-{number // self.threads}"

        async def run(client: SimulatedClient) -> None:
            await StreamsMember(client, group, process, copies, has_store=self.has_store).run()

        return run

    def _is_settled(self, group: Group) -> bool:
        """Whether one member runs every task, and another process has a standby of it."""
        if not super()._is_settled(group):
            return False
        size = self.sizes[self.groups.index(group)]
        if not self.standbys or size <= self.threads:
            return True  # one process alone has no place for standbys
        copies = sorted(number for some in self.copies[group.name].shown.values() for number in some)
        return copies == list(range(self.partitions))
