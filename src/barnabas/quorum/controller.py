"""The controller of a node: decides requests, appends the records, responds when they are committed.

In: controller requests, from the node's own broker (`handle`, in process) and from others through the
CONTROLLER listener. Out: responses. Committed images go to the listeners of the metadata log.
A controller is active while its node leads the quorum: from `activate` (called when the log's epoch is open)
to `renounce`. Otherwise it refuses with NOT_CONTROLLER.

Start of a node that is the only voter (some milliseconds, three syncs of the log):
  1. `broker.metadata_partition.open_metadata_log(...)` loads the newest snapshot and the log after it.
  2. `Controller(settings, cluster_id, metadata_log, clock, rng)`, then `await controller.start(bootstrap)`:
     elects this node, writes the bootstrap records into an empty log, registers the controller.
     `handle` serves requests from here on.
  3. `BrokerLifecycle(...)`, `await lifecycle.register()`: the broker registers, fenced, and gets its epoch.
  4. The broker makes its partitions from `metadata_log.image`, adds its listener, then
     `await lifecycle.unfence()`: the first heartbeat unfences it and elects leaders; heartbeats continue.
  5. `metadata_log.run_slow_work_with(threads.run)`: clients may wait from now on, so syncs leave the loop.
Stop: `lifecycle.stop(timeout_ms)` (controlled shutdown), `controller.stop()`, `metadata_log.close()`.

Does not know: sockets, authorization (callers check before they call).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, TypeVar

from barnabas.controller import producer_ids
from barnabas.controller.activation import activate
from barnabas.controller.brokers import heartbeat as heartbeats
from barnabas.controller.brokers import registration
from barnabas.controller.brokers.directories import assign_replicas_to_dirs
from barnabas.controller.configs import alter_configs, incremental_alter_configs, resealed
from barnabas.controller.context import Context, Rng, unlimited
from barnabas.controller.create_partitions import create_partitions
from barnabas.controller.create_topics import create_topics
from barnabas.controller.decision import Decision, in_steps
from barnabas.controller.delete_topics import delete_topics
from barnabas.controller.refusals import refusal
from barnabas.controller.sessions import BrokerSessions
from barnabas.decisions.awaited import AwaitedHost
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.steps import Steps
from barnabas.metadata.versions import CONTROLLER_REGISTRATION, reason_unsupported, supported_features
from barnabas.protocol import ApiKey, ErrorCode, KafkaError, Message
from barnabas.protocol.log_records.metadata import NoOpRecord
from barnabas.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from barnabas.protocol.messages.alter_configs import AlterConfigsRequest
from barnabas.protocol.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from barnabas.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from barnabas.protocol.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from barnabas.protocol.messages.controller_registration import ControllerRegistrationRequest
from barnabas.protocol.messages.create_partitions import CreatePartitionsRequest
from barnabas.protocol.messages.create_topics import CreateTopicsRequest
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest
from barnabas.protocol.messages.describe_quorum import DescribeQuorumRequest
from barnabas.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from barnabas.protocol.messages.unregister_broker import UnregisterBrokerRequest
from barnabas.quorum.controller_state import ControllerState
from barnabas.quorum.listener_entries import listener_entries
from barnabas.quorum.metadata_log import MetadataLog
from barnabas.quorum.periodic_decisions import PeriodicDecisions
from barnabas.quorum.quorum_stats import ControllerStats
from barnabas.raft.quorum_description import describe_quorum, not_leader_response
from barnabas.runtime.clock import Clock
from barnabas.security.principal import ANONYMOUS, Principal
from barnabas.settings.broker import BrokerSettings
from barnabas.settings.errors import SettingsError
from barnabas.settings.listeners import EndPoint
from barnabas.settings.secrets import Secrets

logger = logging.getLogger(__name__)

Reply = TypeVar("Reply")
TIMER_MS = 500
DESCRIBE_QUORUM_LATEST = 2

# Requests that need one decision, made from the context alone.
_DECISIONS: Mapping[type[Message], Callable[[Context, Any], Decision[Message]]] = {
    CreateTopicsRequest: create_topics,
    DeleteTopicsRequest: delete_topics,
    CreatePartitionsRequest: create_partitions,
    IncrementalAlterConfigsRequest: incremental_alter_configs,
    AlterConfigsRequest: alter_configs,
    AllocateProducerIdsRequest: producer_ids.allocate,
    ControllerRegistrationRequest: registration.register_controller,
    UnregisterBrokerRequest: registration.unregister_broker,
    AssignReplicasToDirsRequest: assign_replicas_to_dirs,
}

# The same for rare requests: their modules are imported on first use.
_RARE = {
    ApiKey.ALTER_CLIENT_QUOTAS: ("quotas", "alter_client_quotas"),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: ("scram", "alter_user_scram_credentials"),
    ApiKey.CREATE_ACLS: ("acls", "create_acls"),
    ApiKey.DELETE_ACLS: ("acls", "delete_acls"),
    ApiKey.UPDATE_FEATURES: ("features", "update_features"),
    ApiKey.ELECT_LEADERS: ("elections", "elect_leaders"),
    ApiKey.ALTER_PARTITION: ("alter_partition", "alter_partition"),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: ("reassignments", "alter_partition_reassignments"),
    ApiKey.CREATE_DELEGATION_TOKEN: ("delegation_tokens", "create_token"),
    ApiKey.RENEW_DELEGATION_TOKEN: ("delegation_tokens", "renew_token"),
    ApiKey.EXPIRE_DELEGATION_TOKEN: ("delegation_tokens", "expire_token"),
}


def _decision_on(request: Message) -> Callable[[Context, Any], Decision[Message]] | None:
    rare = _RARE.get(request.schema.key) if type(request) not in _DECISIONS else None  # type: ignore[call-overload]
    if rare is not None:
        module, name = rare
        found: Callable[[Context, Any], Decision[Message]]
        found = getattr(import_module(f"barnabas.controller.{module}"), name)
        return found
    return _DECISIONS.get(type(request))


class Controller:
    def __init__(
        self,
        settings: BrokerSettings,
        cluster_id: str,
        metadata_log: MetadataLog,
        clock: Clock,
        rng: Rng,
        secrets: Secrets | None = None,
    ) -> None:
        self._settings = settings
        self._secrets = secrets
        self._cluster_id = cluster_id
        self._log = metadata_log
        self._clock = clock
        self._rng = rng
        self._incarnation_id = rng.randbytes(16)
        self.stats = ControllerStats()
        self._sessions: BrokerSessions
        self._state: ControllerState
        self._host: AwaitedHost[Message] | None = None  # set while this controller is the active one
        self._served_by: dict[type[Message], Callable[[Any], Awaitable[Message]]] = {}
        self._run_before: dict[type[Message], Callable[[Any], Awaitable[None]]] = {}
        self._is_draining = False  # set by `drain`, before the node stops
        self._bootstrap: Sequence[Message] = ()
        self._listeners: Sequence[EndPoint] = settings.advertised_controller_listeners
        self._idle_ms: int = settings["metadata.max.idle.interval.ms"]
        self._timer: asyncio.TimerHandle | None = None
        self._fencing: asyncio.Task[None] | None = None
        self._periodic = PeriodicDecisions(settings, self._context)
        self._last_timer_ms = 0
        self._effective_settings = settings
        self._dynamic_configs: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {})

    @property
    def image(self) -> MetadataImage:
        """The committed image."""
        return self._log.image

    @property
    def leader_id(self) -> int:
        """The active controller's node id; -1 while there is none."""
        leader = self._log.leader
        return leader.node_id if leader is not None else -1

    @property
    def incarnation_id(self) -> bytes:
        return self._incarnation_id

    def silent_ms(self) -> dict[int, int]:
        """The time since the last heartbeat of each broker that is not fenced, if this controller is
        active."""
        if self._host is None:
            return {}
        brokers, now_ms = self._state.image.cluster.brokers.values(), self._session_ms()
        return {each.id: self._sessions.silent_ms(each.id, now_ms) for each in brokers if not each.fenced}

    @property
    def kraft_version(self) -> int:
        return self._log.membership.kraft_version

    @property
    def is_active(self) -> bool:
        return self._host is not None and not self._is_draining

    async def drain(self, timeout_ms: int) -> None:
        """Refuse new requests and wait for those in progress, so that clients go to the next controller."""
        self._is_draining = True
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                waiting = self._log.committed(self._log.end_offset)
                if waiting is not None:
                    await waiting
        except (TimeoutError, KafkaError) as error:
            logger.info("stopped before all decisions were committed: %s", error)

    def serve_with(self, request: type[Message], serve: Callable[[Any], Awaitable[Message]]) -> None:
        """Serve this request type with `serve`, while this controller is active. The quorum's own requests
        use it."""
        self._served_by[request] = serve

    def run_before(self, request: type[Message], work: Callable[[Any], Awaitable[None]]) -> None:
        """Run `work` before a request of this type is decided. It may refuse the request with a
        KafkaError."""
        self._run_before[request] = work

    def prepare(self, bootstrap: Sequence[Message], listeners: Sequence[EndPoint] | None = None) -> None:
        """Set what `activate` needs: the first records of a new cluster, and where this controller
        listens."""
        self._bootstrap = bootstrap
        if listeners is not None:
            self._listeners = listeners

    async def start(self, bootstrap: Sequence[Message], listeners: Sequence[EndPoint] | None = None) -> None:
        """Lead a quorum that consists of this node alone."""
        self.prepare(bootstrap, listeners)
        unsupported = reason_unsupported(self._log.image.features.finalized)
        if unsupported is not None:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, unsupported)
        self._log.lead_alone()
        await self.activate()

    def activate(self) -> Awaitable[object]:
        """Begin to decide, because this node leads the quorum. Returns an awaitable for the first
        decisions."""
        self._sessions = BrokerSessions(self._settings["broker.session.timeout.ms"])
        state = self._state = ControllerState(self._log, self._sessions, self.stats)
        host = self._host = AwaitedHost(state, self._log, self._log.pieces, state.prepare)
        host.observe = self.stats.decided
        self.stats.activations += 1
        min_insync_replicas: int = self._settings["min.insync.replicas"]
        image, transactions = state.image, state.transactions
        first = activate(image, transactions.is_open, self._bootstrap, min_insync_replicas)
        writes = [host.write(lambda: Decision(None, first))]
        request = self.registration()
        writes.append(host.write(lambda: self._register_self(request)))
        secrets = self._secrets
        if secrets is not None:
            writes.append(host.write(lambda: Decision(None, resealed(image.configs, secrets))))
        now_ms = self._last_timer_ms = self._session_ms()
        self._periodic.start(host, now_ms)
        is_alone = len(self._log.membership.voters.ids) == 1
        for broker in image.cluster.brokers.values():
            # Our own broker starts with us: its earlier session has ended, so there is no timeout to wait
            # for.
            is_own = broker.id == self._settings.node_id and self._settings.is_broker and is_alone
            if not broker.fenced and not is_own:
                self._sessions.touch(broker.id, now_ms)
        self._schedule_timer()
        return asyncio.gather(*writes)

    def renounce(self, error: KafkaError) -> None:
        """Stop deciding, because this node no longer leads the quorum."""
        if self._timer is not None:
            self._timer.cancel()
        self._periodic.renounce()
        if self._host is not None:
            self._host.close(error)
            self._host = None

    async def stop(self) -> None:
        """Stop deciding. The log still commits what was decided."""
        self.renounce(KafkaError(ErrorCode.NOT_CONTROLLER, "the controller has stopped"))
        if self._fencing is not None:
            await asyncio.wait([self._fencing])
        await self._periodic.stop()

    # Requests

    async def handle(
        self,
        request: Message,
        version: int | None = None,
        charge_mutations: Callable[[int], None] = unlimited,
        principal: Principal = ANONYMOUS,
    ) -> Any:
        """Return the response to a controller request; errors of the whole request are inside the response.
        `version` is the request's version: old versions know fewer error codes.
        `charge_mutations` counts partitions that are created or deleted, and raises if a quota forbids
        them. `principal` is the caller."""
        try:
            return await self._handle(request, version, charge_mutations, principal)
        except KafkaError as error:
            return refusal(request, error, version)

    async def _handle(
        self,
        request: Message,
        version: int | None,
        charge_mutations: Callable[[int], None],
        principal: Principal,
    ) -> Message:
        if isinstance(request, DescribeQuorumRequest):
            return self._describe_quorum(request, DESCRIBE_QUORUM_LATEST if version is None else version)
        host = self._host
        if host is None or self._is_draining:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "this node is not the active controller")
        first = self._run_before.get(type(request))
        if first is not None:
            await first(request)
        serve = self._served_by.get(type(request))
        if serve is not None:
            return await serve(request)
        decide = _decision_on(request)
        if decide is not None:
            steps = in_steps(decide)
            return await host.write(lambda: steps(self._context(charge_mutations, principal), request))
        if isinstance(request, BrokerHeartbeatRequest):
            self._note_contact(request)
            return await host.write(lambda: self._heartbeat(request))
        if isinstance(request, BrokerRegistrationRequest):
            return await host.write(lambda: self._register_broker(request))
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION, f"the controller does not serve {type(request).__name__}"
        )

    def _context(
        self, charge_mutations: Callable[[int], None] = unlimited, principal: Principal = ANONYMOUS
    ) -> Context:
        return Context(
            image=self._state.image,
            settings=self._dynamic_settings(),
            cluster_id=self._cluster_id,
            sessions=self._sessions,
            rng=self._rng,
            now_ms=self._session_ms(),
            next_offset=self._log.end_offset,
            kraft_version=self.kraft_version,
            secrets=self._secrets,
            charge_mutations=charge_mutations,
            principal=principal,
            wall_ms=self._clock.now_ms(),
        )

    def _dynamic_settings(self) -> BrokerSettings:
        """The node's settings, overridden by the dynamic ones: the cluster default first, then this
        broker's."""
        configs = self._state.image.configs
        dynamic = (configs.cluster_default, configs.broker(self._settings.node_id))
        if dynamic != self._dynamic_configs:
            self._dynamic_configs = dynamic
            default, own = dynamic
            if self._secrets is not None:
                default = self._secrets.opened("", default)
                own = self._secrets.opened(str(self._settings.node_id), own)
            try:
                self._effective_settings = self._settings.with_dynamic(default, own)
            except SettingsError as error:
                logger.warning("dynamic settings are ignored because they contradict each other: %s", error)
        return self._effective_settings

    def _session_ms(self) -> int:
        """Monotonic time: a change of the wall clock must not expire sessions."""
        return int(asyncio.get_running_loop().time() * 1000)

    def _register_broker(
        self, request: BrokerRegistrationRequest
    ) -> Steps[Decision[BrokerRegistrationResponse]]:
        context = self._context()
        decision = yield from registration.register_broker.steps(context, request)
        self._sessions.touch(request.broker_id, context.now_ms)
        return decision

    def _note_contact(self, request: BrokerHeartbeatRequest) -> None:
        """Record the contact now: the heartbeat itself may wait behind a long decision."""
        session = self._sessions.get(request.broker_id)
        broker = self._state.image.cluster.brokers.get(request.broker_id)
        if session is not None and broker is not None and broker.epoch == request.broker_epoch:
            session.last_contact_ms = self._session_ms()

    def _heartbeat(self, request: BrokerHeartbeatRequest) -> Steps[Decision[BrokerHeartbeatResponse]]:
        context = self._context()
        registered_at = self._state.registered_at.get(request.broker_id, 0)
        decision = yield from heartbeats.heartbeat.steps(context, request, registered_at)
        session = self._sessions.touch(request.broker_id, context.now_ms, request.current_metadata_offset)
        if decision.reply.is_fenced:
            session.controlled_shutdown_offset = -1
        elif request.want_shut_down and session.controlled_shutdown_offset < 0:
            session.controlled_shutdown_offset = context.next_offset + len(decision.records) - 1
        return decision

    def _describe_quorum(self, request: DescribeQuorumRequest, version: int) -> Message:
        leader = self._log.leader
        if leader is None:
            return not_leader_response(request)
        leader.forget_observers(self._clock.now_ms())
        return describe_quorum(request, version, leader, self._log.end_offset, self._clock.now_ms())

    # The controller's own registration

    def registration(self) -> ControllerRegistrationRequest:
        return ControllerRegistrationRequest(
            controller_id=self._settings.node_id,
            incarnation_id=self._incarnation_id,
            listeners=listener_entries(ControllerRegistrationRequest.Listener, self._listeners),
            features=[
                ControllerRegistrationRequest.Feature(
                    name=name, min_supported_version=lowest, max_supported_version=highest
                )
                for name, (lowest, highest) in supported_features().items()
            ],
        )

    def _register_self(self, request: ControllerRegistrationRequest) -> Decision[None]:
        context = self._context()
        if context.level < CONTROLLER_REGISTRATION:
            return Decision(None)
        return Decision(None, registration.register_controller(context, request).records)

    # Timers

    def _schedule_timer(self) -> None:
        delay_ms = min(self._idle_ms, TIMER_MS) if self._idle_ms > 0 else TIMER_MS
        now_ms = self._session_ms()
        unfenced = (each.id for each in self._state.image.cluster.brokers.values() if not each.fenced)
        delay_ms = self._sessions.until_next_expiry(unfenced, now_ms, delay_ms)
        self._timer = asyncio.get_running_loop().call_later(delay_ms / 1000, self._on_timer)

    def _on_timer(self) -> None:
        """Every half second: write a NoOpRecord into a quiet log, fence silent brokers, start the next
        snapshot."""
        if self._host is None or self._host.error is not None or self._log.error is not None:
            return
        is_idle = 0 < self._idle_ms <= self._clock.now_ms() - self._log.last_append_ms + TIMER_MS // 10
        if is_idle and not self._host.is_busy:
            self._write_no_op()
        now_ms = self._session_ms()
        if now_ms - self._last_timer_ms > max(self._sessions.timeout_ms // 2, 4 * TIMER_MS):
            # This process was suspended: it could not have received heartbeats.
            self._sessions.touch_all(now_ms)
        elif self._fencing is None and self._silent_brokers(now_ms):
            self._fencing = asyncio.get_running_loop().create_task(self._fence_silent())
        self._last_timer_ms = now_ms
        self._log.maybe_snapshot()
        self._periodic.check(now_ms)
        self._schedule_timer()

    def _write_no_op(self) -> None:
        host = self._host
        if host is None:
            return
        try:
            host.write_at_once(Decision(None, [NoOpRecord()]))
        except KafkaError as error:
            host.close(error)

    def _silent_brokers(self, now_ms: int) -> list[int]:
        brokers = self._state.image.cluster.brokers.values()
        return self._sessions.expired([broker.id for broker in brokers if not broker.fenced], now_ms)

    async def _fence_silent(self) -> None:
        host = self._host
        try:
            if host is None:
                return
            fenced = await host.write(lambda: heartbeats.fence_silent.steps(self._context()))
            if fenced is not None:
                self.stats.timed_out_heartbeats += 1
                silent_ms = self._sessions.silent_ms(fenced, self._session_ms())
                logger.warning(
                    "fenced broker %d: it sent no heartbeat for %d ms, longer than its session timeout",
                    fenced,
                    silent_ms,
                )
        except KafkaError as error:
            logger.error("could not fence a silent broker: %s", error)
        finally:
            self._fencing = None
