"""A worker of a cluster: its seat in the group, the internal topics, work that it gets and gives up.

In: records of the internal topics, assignments of the group's leader. Out: what runs here. The leader writes
the config topic; other workers send requests to it. An Apache worker may lead or follow: topics and messages
are Connect's own.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from barnabas.client.core.cluster import ClusterCore
from barnabas.client.core.fetching import ConsumerRecord
from barnabas.client.groups.member import Assignment as Given
from barnabas.client.groups.member import GroupMember
from barnabas.client.groups.membership import GroupSettings, JoinedMember, Offer
from barnabas.connect.herder.config_state import SESSION_KEY, Change, Record
from barnabas.connect.herder.distributed import signing
from barnabas.connect.herder.distributed.assignor import FIRST, Plan, assign, eager
from barnabas.connect.herder.distributed.fencing import Fencing
from barnabas.connect.herder.distributed.protocol import (
    CONFIG_MISMATCH,
    CONNECTOR,
    PROTOCOLS,
    Assignment,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from barnabas.connect.herder.distributed.rebalances import Rebalances
from barnabas.connect.herder.distributed.topics import InternalTopics, internal_topic
from barnabas.connect.herder.errors import Elsewhere, Refused
from barnabas.connect.herder.herder import Herder
from barnabas.connect.herder.offsets import Offsets
from barnabas.connect.herder.states import State, Status, TaskId, TaskRunner
from barnabas.connect.herder.worker_state import Place
from barnabas.connect.plugins import FencedError, Plugins

log = logging.getLogger("barnabas.connect")

CONFIG, STATUS, OFFSET = "config.storage", "status.storage", "offset.storage"
OFFERS = {
    "eager": ("default",),
    "compatible": ("compatible", "default"),
    "sessioned": ("sessioned", "compatible", "default"),
}
RESTART_S, RESTART_S_MAX = 1.0, 30.0
KEY_LOOK_S = 60.0
REBALANCING = (
    "Cannot complete request momentarily due to no known leader URL, likely because a rebalance was underway."
)
Send = Callable[[str, str, bytes, dict[str, str]], Awaitable[None]]  # method, URL, body, headers
Bytes = tuple[bytes, bytes | None]
UNREAD = "The config topic was not read to its end within {} ms (worker.sync.timeout.ms)"
FENCED = (
    "Failed to write to config topic; this may be due to a transient error and the request can be safely "
    "retried: another worker leads now"
)


class Leading(Protocol):
    """Writes the config topic so that no former leader can."""

    def take_over(self) -> None: ...
    def write(self, records: Sequence[Bytes]) -> None: ...
    def close(self) -> None: ...


class OwnTopics(Protocol):
    """Offsets topics of connectors."""

    def topic(self, config: Mapping[str, str]) -> str: ...
    def read(self, name: str, config: Mapping[str, str]) -> list[tuple[bytes, bytes]]: ...
    def write(self, name: str, config: Mapping[str, str], records: Sequence[Bytes]) -> None: ...


class DistributedHerder(Herder):
    def __init__(
        self,
        worker: Mapping[str, str],
        url: str,
        plugins: Plugins,
        runner: TaskRunner,
        cluster: ClusterCore,
        send: Send,
        own_topics: OwnTopics,
        leading: Leading | None = None,
    ) -> None:
        """`leading` writes the config topic in transactions, where sources write exactly once."""
        super().__init__(worker, url.split("://", 1)[-1].rstrip("/"), plugins, runner)
        self.url = url.rstrip("/") + "/"
        self.group = worker["group.id"]
        self.leader_url = ""
        self.rebalances = Rebalances()
        self._cluster = cluster
        self._send = send
        self._own_topics = own_topics
        self._leading = leading
        self._led = False  # whether this worker led in the generation before
        self._protocol = worker.get("connect.protocol", "sessioned").lower()
        self._held: set[TaskId] = set()
        self._plan: Plan = FIRST
        self._plan_generation = -1
        self._urls: dict[str, str] = {}  # of members, for the leader
        self._is_caught_up = False
        self._gives_up = False
        self._timer: asyncio.TimerHandle | None = None
        self._topics = InternalTopics(
            cluster,
            [
                internal_topic(worker, CONFIG, 1),
                internal_topic(worker, STATUS, 5),
                internal_topic(worker, OFFSET, 25),
            ],
            self._record,
        )
        self._fencing = Fencing(self.group, cluster, self.state, self._read_config, self.write)
        self._fences: dict[str, asyncio.Lock] = {}  # of connectors: tasks start side by side
        self._settings = GroupSettings(
            self.group,
            "connect",
            session_timeout_ms=int(worker.get("session.timeout.ms", "10000")),
            rebalance_timeout_ms=int(worker.get("rebalance.timeout.ms", "60000")),
            heartbeat_interval_ms=int(worker.get("heartbeat.interval.ms", "3000")),
        )
        self._member = GroupMember(cluster, self._settings, self)
        self._seat: asyncio.Task[None] | None = None
        self._keys: asyncio.Task[None] | None = None
        self._has_joined = False

    # -- life --------------------------------------------------------------------------------------

    async def start(self) -> None:
        await self._topics.start()
        self._is_caught_up = True
        await super().start()
        self._seat = asyncio.create_task(self._take_part())
        self._keys = asyncio.create_task(self._keep_keys_fresh())

    async def stop(self) -> None:
        for task in (self._seat, self._keys):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        if self._timer is not None:
            self._timer.cancel()
        await super().stop()
        for place in [place for place, status in self.statuses.items() if self._is_mine(status)]:
            await self._tell(place, State.UNASSIGNED, None, None)
        await self._member.stop()
        await self._topics.stop()
        if self._leading is not None:
            await asyncio.to_thread(self._leading.close)

    def _is_mine(self, status: Status) -> bool:
        return status.worker_id == self.worker_id and status.state is not State.UNASSIGNED

    async def _take_part(self) -> None:
        pause_s = RESTART_S
        while True:
            self._member.start()
            try:
                await self._member.ended()
            except Exception as error:
                log.error("the worker cannot take part in group %s: %s", self.group, error)
            await self._member.stop()
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, RESTART_S_MAX)
            self._member = GroupMember(self._cluster, self._settings, self)

    # -- records -----------------------------------------------------------------------------------

    def _record(self, setting: str, record: ConsumerRecord) -> None:
        if setting == OFFSET:
            self.offsets.apply(record.key, record.value)
            return
        try:
            key = (record.key or b"").decode()
            value = None if record.value is None else json.loads(record.value)
        except ValueError:
            log.error("a record of %s is no JSON and is skipped: offset %d", record.topic, record.offset)
            value, key = None, ""
        if setting == STATUS:
            self._status_record(key, value)
            return
        self.state.offset = record.offset + 1
        self.applied(key, value, is_old=not self._is_caught_up)

    async def _read_config(self) -> None:
        """Read the config topic to its end, for as long as `worker.sync.timeout.ms` allows."""
        timeout_ms = int(self.worker.get("worker.sync.timeout.ms", "3000"))
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._topics.read_to_end(CONFIG)
        except TimeoutError:
            raise Refused(500, UNREAD.format(timeout_ms)) from None

    def _status_record(self, key: str, value: Any) -> None:
        if key.startswith("status-topic-"):
            topic, _, name = key.removeprefix("status-topic-").rpartition(":connector-")
            if value is None:
                self.topics.get(name, {}).pop(topic, None)
            else:
                self.topics.setdefault(name, {})[topic] = int(value.get("topic", {}).get("task", 0))
            return
        place = place_of(key)
        if place is None:
            return
        if value is None:
            self.statuses.pop(place, None)
            return
        try:
            self.statuses[place] = Status.of_record(value)
        except (KeyError, ValueError, TypeError):
            log.error("a status that cannot be read is skipped: %s", key)

    def on_changed(self, change: Change) -> None:
        if self._is_caught_up and change in (Change.CONFIG, Change.REMOVED, Change.TASKS):
            known = {TaskId(place.connector, place.task) for place in self._plan_or_held()}
            if self._wanted() != known:
                self._member.rejoin(f"connectors or tasks changed: {change}")

    def _plan_or_held(self) -> set[TaskId]:
        return self._plan.known if self.is_leader and self._plan is not FIRST else set()

    def _wanted(self) -> frozenset[TaskId]:
        """Everything that some worker must run."""
        found = {TaskId(name, CONNECTOR) for name in self.state.connectors}
        for name, configs in self.state.tasks.items():
            found.update(TaskId(name, number) for number in range(len(configs)))
        return frozenset(found)

    # -- the group ---------------------------------------------------------------------------------

    @property
    def is_leader(self) -> bool:
        return self.leader_url == self.url

    def offers(self) -> Sequence[Offer]:
        held = frozenset(self._held)
        subscription = Subscription(self.url, self.state.offset, held)
        return [
            Offer(name, encode_subscription(PROTOCOLS[name], subscription)) for name in OFFERS[self._protocol]
        ]

    async def assign(self, protocol: str, members: Sequence[JoinedMember]) -> Mapping[str, bytes]:
        known = {each.member_id: decode_subscription(each.metadata) for each in members}
        self._urls = {member: each.url for member, each in known.items()}
        version = PROTOCOLS.get(protocol, 0)
        mine = self._member.membership.member_id
        newest = max(each.offset for each in known.values())
        if self.state.offset < newest:
            with suppress(Refused):
                await self._read_config()
        if self.state.offset < newest:
            failed = Assignment(CONFIG_MISMATCH, mine, self.url, newest)
            return dict.fromkeys(known, encode_assignment(version, failed))
        generation = self._member.membership.generation
        last = self._plan if self._plan_generation == generation - 1 else FIRST
        held = {member: each.held for member, each in known.items()}
        if version == 0:
            plan = eager(held, self._wanted())
        else:
            delay_ms = int(self.worker.get("scheduled.rebalance.max.delay.ms", "300000"))
            plan = assign(held, self._wanted(), last, int(time.time() * 1000), delay_ms)
        self._plan, self._plan_generation = plan, generation
        return {
            member: encode_assignment(
                version,
                Assignment(
                    0,
                    mine,
                    self.url,
                    self.state.offset,
                    frozenset(plan.added.get(member, ())),
                    frozenset(plan.revoked.get(member, ())),
                    plan.delay_ms,
                ),
            )
            for member in known
        }

    async def on_assigned(self, given: Given) -> None:
        assignment = decode_assignment(given.data)
        self.rebalances.ended()
        self._has_joined = True
        self.generation, self.leader_url = given.generation, assignment.leader_url
        if assignment.error or assignment.offset > self.state.offset:
            try:
                await self._read_config()
            except Refused as refused:  # by an old configuration nothing may run
                self._held, self.leader_url = set(), ""
                self._member.rejoin(str(refused))
                self.wake()
                return
        if assignment.error:
            self._member.rejoin("the leader has not read the newest configuration")
            return
        if self._plan_generation == given.generation - 1 and not self.is_leader:
            self._plan = FIRST
        if PROTOCOLS.get(given.protocol, 0) == 0:
            self._held = set(assignment.added)
        else:
            self._held = (self._held - assignment.revoked) | assignment.added
        self._gives_up = bool(assignment.revoked)
        if self._timer is not None:
            self._timer.cancel()
        if assignment.delay_ms > 0:
            self._timer = asyncio.get_running_loop().call_later(
                assignment.delay_ms / 1000, self._member.rejoin, "the delay of a rebalance is over"
            )
        if self.is_leader and not self._led and self._leading is not None:
            await asyncio.to_thread(self._leading.take_over)
            await self._topics.read_to_end(CONFIG)
        self._led = self.is_leader
        if self.is_leader:
            await self._renew_session_key()
        self.retry_now()

    async def on_revoked(self) -> None:
        """Keep everything while the group rebalances, except in the oldest protocol."""
        self.rebalances.began()
        if self._protocol == "eager":
            await self.on_lost()

    async def on_lost(self) -> None:
        self._held, self.leader_url, self._led = set(), "", False
        self.wake()
        await self.settled()

    def _reconcile(self) -> None:
        super()._reconcile()
        if self._gives_up and self.has_own_work_only():
            self._gives_up = False
            self._member.rejoin("revoked work has ended")

    async def _renew_session_key(self) -> None:
        now_ms = int(time.time() * 1000)
        ttl_ms = int(self.worker.get("inter.worker.key.ttl.ms", "3600000"))
        if self._protocol == "sessioned" and signing.is_expired(self.state.session_key, now_ms, ttl_ms):
            await self.write([(SESSION_KEY, signing.key_of(self.worker, now_ms))])

    async def _keep_keys_fresh(self) -> None:
        """The leader renews the session key when its time is over, also between rebalances."""
        ttl_s = int(self.worker.get("inter.worker.key.ttl.ms", "3600000")) / 1000
        while True:
            await asyncio.sleep(min(max(ttl_s / 10, 1.0), KEY_LOOK_S))
            if self.is_leader:
                try:
                    await self._renew_session_key()
                except Exception as error:
                    log.warning("the session key is not renewed; it is tried again: %s", error)

    # -- what differs from a standalone worker -----------------------------------------------------

    def owns_connector(self, name: str) -> bool:
        return TaskId(name, CONNECTOR) in self._held

    def owns_task(self, task: TaskId) -> bool:
        return task in self._held

    def must_lead(self) -> None:
        if not self.leader_url:
            raise Refused(409, REBALANCING)
        if not self.is_leader:
            raise Elsewhere(self.leader_url)

    def must_own(self, place: Place) -> None:
        wanted = TaskId(place[0], CONNECTOR if place[1] is None else place[1])
        if wanted in self._held:
            return
        if not self.is_leader:
            self.must_lead()
        for member, work in self._plan.held.items():
            if wanted in work and member in self._urls:
                raise Elsewhere(self._urls[member])
        raise Refused(
            409, "Cannot complete request because of a conflicting operation (e.g. worker rebalance)"
        )

    async def write(self, changes: Sequence[Record]) -> None:
        found = [(key.encode(), None if value is None else compact(value)) for key, value in changes]
        if self._leading is None or not self.is_leader:
            await self._topics.write(CONFIG, found)
            return
        try:
            await asyncio.to_thread(self._leading.write, found)
        except FencedError:
            raise Refused(500, FENCED) from None
        await self._topics.read_to_end(CONFIG)

    async def offsets_of(self, name: str) -> Offsets:
        config = self.providers.resolve(self.state.connectors.get(name, {}))
        if not self._own_topics.topic(config):
            return self.offsets
        found = Offsets()
        for key, value in self.offsets.records(name, self.offsets.of(name)):
            found.apply(key, value)
        for key, value in await asyncio.to_thread(self._own_topics.read, name, config):
            found.apply(key, value)
        return found

    async def write_offsets(self, name: str, changes: Sequence[Bytes]) -> None:
        config = self.providers.resolve(self.state.connectors.get(name, {}))
        if self._own_topics.topic(config):
            await asyncio.to_thread(self._own_topics.write, name, config, changes)
        await self._topics.write(OFFSET, changes)

    def publishes_here(self) -> bool:
        return self.is_leader

    async def publish_tasks(self, name: str, configs: Sequence[Mapping[str, str]]) -> None:
        if self.is_leader:
            await super().publish_tasks(name, configs)
            return
        if not self.leader_url:
            raise Refused(409, REBALANCING)
        await self._ask_leader("POST", f"connectors/{name}/tasks", compact([dict(each) for each in configs]))

    async def _ask_leader(self, method: str, path: str, body: bytes) -> None:
        key = self.state.session_key
        algorithm = self.worker.get("inter.worker.signature.algorithm", "HmacSHA256")
        is_signed = key is not None and self._protocol == "sessioned"
        headers = signing.signed(key, body, algorithm) if key is not None and is_signed else {}
        await self._send(method, self.leader_url + path, body, headers)

    async def before_task(self, task: TaskId) -> None:
        """Fence producers of earlier tasks, where sources write exactly once (KIP-618)."""
        is_exact = self.worker.get("exactly.once.source.support", "disabled").lower() == "enabled"
        name = task.connector
        async with self._fences.setdefault(name, asyncio.Lock()):
            if is_exact and name in self.state.fencing_due and self.kind(name) == "source":
                await self.fence(name)
                await self._read_config()

    async def fence(self, name: str) -> None:
        if self.is_leader:
            await self._fencing.fence(name)
        else:
            await self._ask_leader("PUT", f"connectors/{name}/fence", b"")

    def may_forget(self, place: Place) -> bool:
        return self.is_leader or self.statuses[place].worker_id == self.worker_id

    async def put_status(self, place: Place, status: Status | None) -> None:
        await super().put_status(place, status)
        await self._topics.send(
            STATUS, status_key(place), None if status is None else compact(status.record())
        )

    def health(self) -> tuple[int, str, str]:
        if not self._has_joined:
            return 503, "starting", "Worker is still starting up."
        return super().health()

    async def reset_topics(self, name: str) -> None:
        """Forget the topics that a connector used, on all workers."""
        for topic in list(self.topics.get(name, ())):
            await self._topics.send(STATUS, topic_key(topic, name), None)
        await super().reset_topics(name)

    def used_topic(self, task: TaskId, topic: str) -> None:
        if topic in self.topics.get(task.connector, ()):
            return
        super().used_topic(task, topic)
        value = {"topic": {"name": topic, "connector": task.connector, "task": task.task,
                           "discoverTimestamp": int(time.time() * 1000)}}  # fmt: skip
        key = topic_key(topic, task.connector)
        self._tell_soon(self._topics.send(STATUS, key, compact(value)))


def compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def status_key(place: Place) -> bytes:
    name, task = place
    return (f"status-connector-{name}" if task is None else f"status-task-{name}-{task}").encode()


def topic_key(topic: str, connector: str) -> bytes:
    return f"status-topic-{topic}:connector-{connector}".encode()


def place_of(key: str) -> Place | None:
    if key.startswith("status-connector-"):
        return key.removeprefix("status-connector-"), None
    if key.startswith("status-task-"):
        name, dash, number = key.removeprefix("status-task-").rpartition("-")
        if dash and number.isdigit():
            return name, int(number)
    return None
