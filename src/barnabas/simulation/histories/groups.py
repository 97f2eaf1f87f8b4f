"""A history of groups: eager, cooperative and consumer-protocol members join, leave, pause, die and commit.

Checks (see `group_checks`): one owner for each partition in a generation; epochs never decrease; a partition
is reassigned only after its owner has revoked it or its session has expired; requests of replaced members are
refused; no committed offset is lost. Progress: after the faults, every partition gets an owner whose commits
succeed.
"""

from __future__ import annotations

import asyncio
from functools import partial

from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from barnabas.simulation.histories.classic_member import COOPERATIVE, EAGER, ClassicMember
from barnabas.simulation.histories.consumer_member import CONSUMER, ConsumerMember
from barnabas.simulation.histories.group_member import MIXED, SESSION_MS, Group
from barnabas.simulation.histories.stage import COMPACTED, Stage, create_topic, kinds_of, promise_of
from barnabas.simulation.models.group_checks import Generations, Offsets, Ownership
from barnabas.simulation.world.client import Job, SimulatedClient
from barnabas.simulation.world.faults import Kind, Plan, plan
from barnabas.simulation.world.world import World, rng_of

TOPIC = "jobs"
SECONDS = 40.0
SECONDS_TO_RECOVER = 120.0
FAULTS_MAX = 18
FAULT_S_MEAN = 6.0  # long enough for some sessions to expire
SETTLED_S = 3.0
GROUP_SETTINGS = {
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": str(SESSION_MS),
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.assignment.interval.ms": "0",
}


class GroupsHistory:
    name = "groups"
    seconds_max = 900.0
    seconds = SECONDS

    def __init__(self, seed: int) -> None:
        rng = rng_of(seed, "plan")
        self.promise = promise_of(rng)
        self.partitions = rng.randrange(1, 7)
        self.kinds = [rng.choice((EAGER, COOPERATIVE, CONSUMER, MIXED)) for _ in range(rng.randrange(1, 4))]
        self.sizes = [rng.randrange(2, 5) for _ in self.kinds]
        self.statics = rng.random() < 0.3
        self.compacts = rng.random() < 0.5
        self.growth = rng.choice((0, 0, 1, 3))
        self.grows_after_s = rng.uniform(1.0, self.seconds)
        self.faults: Plan = plan(
            rng,
            kinds_of(self.promise, rng) + 4 * (Kind.PAUSE_CLIENT,),
            until_s=SECONDS,
            count_max=FAULTS_MAX,
            duration_s_mean=FAULT_S_MEAN,
        )
        self.groups: list[Group] = []
        self._topic_id = b""
        self._stage: Stage

    @property
    def settings(self) -> dict[str, str]:
        """The settings of the broker that groups need."""
        return GROUP_SETTINGS

    def make_stage(self, world: World, properties: dict[str, str]) -> Stage:
        return Stage(world, properties)

    async def run(self, world: World, faults: Plan) -> dict[str, int]:
        compacted = COMPACTED if self.compacts else {}
        stage = self._stage = self.make_stage(
            world, {**self.settings, **compacted, **self.promise.properties}
        )
        await stage.open()
        self._topic_id = await create_topic(stage, TOPIC, self.partitions)
        workers = []
        for index, (kind, size) in enumerate(zip(self.kinds, self.sizes, strict=True)):
            group = self._group(f"{kind}-{index}", kind)
            self.groups.append(group)
            workers += [stage.add(f"{group.name}-{n}", self._job(group, n)) for n in range(size)]
        stage.node.on_power_loss.append(self._lost_power)
        if self.growth:
            stage.add("administrator", self._grow)
        await stage.inject_faults(faults, self.seconds, workers)
        for group in self.groups:
            group.is_calm = True
        for group in self.groups:
            await stage.until(
                partial(self._is_settled, group),
                SECONDS_TO_RECOVER,
                f"every partition of {group.name} has an owner that commits",
            )
        return {
            "lives": stage.node.lives,
            "power losses": stage.node.power_losses,
            "generations": sum(group.generations.newest for group in self.groups),
        }

    def _group(self, name: str, kind: str) -> Group:
        now = self._stage.world.loop.time
        return Group(
            name,
            TOPIC,
            kind,
            lambda: self.partitions,
            Offsets(name),
            Ownership(name, now, SESSION_MS / 1000),
            Generations(name),
        )

    def _job(self, group: Group, number: int) -> Job:
        async def run(client: SimulatedClient) -> None:
            if group.kind == CONSUMER or (group.kind == MIXED and number % 2):
                await ConsumerMember(client, group, self._topic_id).run()
            else:
                is_static = self.statics and number % 2 and group.kind != MIXED
                instance_id = client.host if is_static else None
                await ClassicMember(client, group, instance_id).run()

        return run

    async def _grow(self, client: SimulatedClient) -> None:
        """Add partitions to the topic."""
        await asyncio.sleep(self.grows_after_s)
        count = self.partitions + self.growth
        wanted = CreatePartitionsRequest.CreatePartitionsTopic(name=TOPIC, count=count)
        await client.ask_until_answered(
            CreatePartitionsRequest(topics=[wanted], timeout_ms=3000),
            CreatePartitionsResponse,
            lambda response: response.results[0].error_code in (ErrorCode.NONE, ErrorCode.INVALID_PARTITIONS),
        )
        self.partitions = count

    def _lost_power(self) -> None:
        if not self.promise.survives_power_loss:
            for group in self.groups:
                group.is_trusted = False

    def _is_settled(self, group: Group) -> bool:
        """Whether one member owns every partition, and a recent commit of it succeeded."""
        now_s = self._stage.world.loop.time()
        owned = sorted(p for partitions in group.owned.values() for p in partitions)
        return owned == list(range(self.partitions)) and all(
            now_s - group.committed_s.get(p, float("-inf")) < SETTLED_S for p in owned
        )
