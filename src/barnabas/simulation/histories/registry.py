"""A history of a registry: nodes elect a primary, write numbers to their log, pause, die and are cut off.

Every write adds the next number to those that the node has applied, as a registry gives out ids. Some nodes
write now and then although they are not the primary. Checks: the log holds each number once, in order, so
each was decided on everything before it; a number that was told to a caller belongs to that write for good.
Progress: after the faults writes go on, and all nodes show the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from barnabas.client.core.errors import ClientError
from barnabas.client.core.transaction import Fenced
from barnabas.protocol import KafkaError
from barnabas.registry.election.identity import Identity
from barnabas.registry.election.seat import ElectionSettings, Seat
from barnabas.registry.log.changes import KeyValue
from barnabas.registry.log.schema_log import LogSettings, SchemaLog, StoreFailed, StoreTimedOut
from barnabas.registry.log.topic import TopicSettings, ensure_topic
from barnabas.simulation.histories.groups import GROUP_SETTINGS
from barnabas.simulation.histories.stage import COMPACTED, SYNCED, WRITTEN, Stage, kinds_of
from barnabas.simulation.world.client import SimulatedClient
from barnabas.simulation.world.clock import EPOCH_MS
from barnabas.simulation.world.faults import Kind, Plan, plan
from barnabas.simulation.world.world import World, rng_of

TOPIC = TopicSettings("_schemas")
GROUP = ElectionSettings("registry", session_timeout_ms=6_000, heartbeat_interval_ms=500)
LOG = LogSettings(TOPIC, timeout_ms=3_000)
SECONDS = 40.0
SECONDS_TO_RECOVER = 120.0
FAULTS_MAX = 18
FAULT_S_MEAN = 6.0  # long enough for some sessions to expire
BOLD_CHANCE = 0.1
WRITE_S_MEAN = 0.2
RETRY_S = 0.2
MORE = 3  # writes that must succeed after the faults


@dataclass(frozen=True, slots=True)
class Addition:
    records: tuple[KeyValue, ...]
    reply: int


@dataclass(slots=True)
class Numbers:
    """The state of one node: the name of the write that added each number, from 1 on."""

    fail: Callable[[str], None]
    names: list[bytes] = field(default_factory=list)

    def apply(self, key: bytes | None, value: bytes | None, timestamp_ms: int) -> None:
        if value is None or key is None:
            return
        if int(key) != len(self.names) + 1:
            self.fail(f"{value!r} added number {int(key)} behind {len(self.names)}: not the newest state")
        self.names.append(value)

    def adding(self, name: bytes) -> Callable[[], Awaitable[Addition]]:
        async def decide() -> Addition:
            number = len(self.names) + 1
            return Addition(((b"%d" % number, name),), number)

        return decide


class RegistryHistory:
    name = "registry"
    seconds_max = 900.0
    seconds = SECONDS

    def __init__(self, seed: int) -> None:
        rng = rng_of(seed, "plan")
        self.promise = rng.choice((WRITTEN, SYNCED))
        self.size = rng.randrange(2, 4)
        self.compacts = rng.random() < 0.5
        self.faults: Plan = plan(
            rng,
            kinds_of(self.promise, rng) + 6 * (Kind.PAUSE_CLIENT,),
            until_s=self.seconds,
            count_max=FAULTS_MAX,
            duration_s_mean=FAULT_S_MEAN,
        )
        self.told: dict[int, bytes] = {}
        self.fenced = 0
        self.is_calm = False
        self._states: dict[str, Numbers] = {}  # by host, of its current process
        self._world: World

    def make_stage(self, world: World, properties: dict[str, str]) -> Stage:
        return Stage(world, properties)

    async def run(self, world: World, faults: Plan) -> dict[str, int]:
        self._world = world
        compacted = COMPACTED if self.compacts else {}
        stage = self.make_stage(world, {**GROUP_SETTINGS, **compacted, **self.promise.properties})
        await stage.open()
        created: list[bytes] = []

        async def create(client: SimulatedClient) -> None:
            await reach(client)
            created.append(await ensure_topic(client.cluster, TOPIC, client.cluster.patience(60_000)))

        stage.add("creator", create)
        await stage.until(lambda: bool(created), 60, "the topic is created")
        nodes = [stage.add(f"registry-{number}", self._node) for number in range(self.size)]
        await stage.inject_faults(faults, self.seconds, nodes)
        goal = len(self.told) + MORE
        await stage.until(lambda: len(self.told) >= goal, SECONDS_TO_RECOVER, "writes go on after the faults")
        self.is_calm = True
        await stage.until(self._agree, SECONDS_TO_RECOVER, "all nodes show everything that was told")
        return {"lives": stage.node.lives, "numbers": len(self.told), "fenced": self.fenced}

    def _agree(self) -> bool:
        views = [state.names for state in self._states.values()]
        if len(views) < self.size or any(view != views[0] for view in views):
            return False
        return all(number <= len(views[0]) for number in self.told)

    # -- a node ------------------------------------------------------------------------------------

    async def _node(self, client: SimulatedClient) -> None:
        log, state = await self._started(client)
        self._states[client.host] = state
        seat = Seat(client.cluster, GROUP, Identity("http", client.host, 80), log.give_up_writing)
        seat.start()
        writes = 0
        while True:
            await asyncio.sleep(client.rng.expovariate(1 / WRITE_S_MEAN))
            is_bold = client.rng.random() < BOLD_CHANCE
            if self.is_calm or not (seat.is_primary or is_bold):
                continue
            writes += 1
            name = f"{client.host}/{client.lives}/{writes}".encode()
            try:
                number = await log.change(state.adding(name), anybody)
            except (StoreFailed, StoreTimedOut):
                continue
            except Fenced:
                self.fenced += 1
                log.give_up_writing()
                continue
            self._tell(number, name, state)

    def _tell(self, number: int, name: bytes, state: Numbers) -> None:
        if self.told.setdefault(number, name) != name:
            self._fail(f"number {number} was told to {self.told[number]!r} and to {name!r}")
        if state.names[number - 1] != name:
            self._fail(
                f"{name!r} was told number {number}, which the log gave to {state.names[number - 1]!r}"
            )

    async def _started(self, client: SimulatedClient) -> tuple[SchemaLog, Numbers]:
        await reach(client)
        while True:
            state = Numbers(self._fail)
            log = SchemaLog(client.cluster, LOG, state, lambda: EPOCH_MS / 1000 + self._world.loop.time())
            try:
                await log.start()
            except (KafkaError, ClientError, TimeoutError):
                await log.stop()
                await asyncio.sleep(RETRY_S)
            else:
                return log, state

    def _fail(self, what: str) -> None:
        self._world.fail(what, None)


def anybody() -> None:
    """Everybody may write: the fence alone decides."""


async def reach(client: SimulatedClient) -> None:
    """Learn the brokers: until then errors of connections are final."""
    while True:
        try:
            await client.cluster.refresh()
            return
        except (KafkaError, ClientError):
            await asyncio.sleep(RETRY_S)
