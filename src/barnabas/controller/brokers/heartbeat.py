"""Heartbeats: unfence brokers that caught up, fence silent ones, permit controlled shutdowns.

In: BrokerHeartbeat, or the time alone for silent brokers. Out: registration changes, and the changes of
partitions that follow from them.

     register         caught up           wants to stop             leads nothing
    ---------> FENCED ---------> UNFENCED --------------> CONTROLLED ------------> FENCED, may stop
                      <---------                           SHUTDOWN
                        silent

Does not know: how often brokers send heartbeats; the caller records the contact in the sessions.
"""

from __future__ import annotations

from enum import Enum

from barnabas.controller import leadership
from barnabas.controller.context import Context
from barnabas.controller.decision import Decision, InSteps, collect
from barnabas.metadata.cluster import FENCE, IN_CONTROLLED_SHUTDOWN, UNFENCE, BrokerRegistration
from barnabas.metadata.steps import Steps
from barnabas.metadata.versions import CORDONED_LOG_DIRS, DIRECTORY_ASSIGNMENT
from barnabas.protocol import Message
from barnabas.protocol.log_records.metadata import BrokerRegistrationChangeRecord
from barnabas.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse


class BrokerState(Enum):
    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    SHUTDOWN_NOW = "shutdown now"


@InSteps
def heartbeat(
    context: Context, request: BrokerHeartbeatRequest, registered_at: int
) -> Steps[Decision[BrokerHeartbeatResponse]]:
    """Decide a heartbeat. A broker is caught up once it has read to `registered_at`, the offset of its
    registration."""
    context.check_broker_epoch(request.broker_id, request.broker_epoch)
    broker = context.image.cluster.brokers[request.broker_id]
    before = _state(broker)
    after = yield from _next_state(context, broker, request, registered_at)
    records: list[Message] = []
    if after is not before:
        records.extend((yield from _transition(context, broker, after)))
    records.extend((yield from _directory_changes(context, broker, request)))
    reply = BrokerHeartbeatResponse(
        is_caught_up=request.current_metadata_offset >= registered_at,
        is_fenced=after in (BrokerState.FENCED, BrokerState.SHUTDOWN_NOW),
        should_shut_down=after is BrokerState.SHUTDOWN_NOW,
    )
    return Decision(reply, records)


@InSteps
def fence_silent(context: Context) -> Steps[Decision[int | None]]:
    """Fence the broker that has been silent longest, if any. One at a time, so that the next decision sees
    the effect."""
    unfenced = [broker.id for broker in context.image.cluster.brokers.values() if not broker.fenced]
    for broker_id in context.sessions.expired(unfenced, context.now_ms):
        broker = context.image.cluster.brokers[broker_id]
        return Decision(broker_id, (yield from _transition(context, broker, BrokerState.FENCED)))
    return Decision(None)


def _state(broker: BrokerRegistration) -> BrokerState:
    if broker.fenced:
        return BrokerState.FENCED
    return BrokerState.CONTROLLED_SHUTDOWN if broker.in_controlled_shutdown else BrokerState.UNFENCED


def _next_state(
    context: Context, broker: BrokerRegistration, request: BrokerHeartbeatRequest, registered_at: int
) -> Steps[BrokerState]:
    state = _state(broker)
    if state is BrokerState.FENCED:
        if request.want_shut_down:
            return BrokerState.SHUTDOWN_NOW
        caught_up = request.current_metadata_offset >= registered_at
        return BrokerState.UNFENCED if caught_up and not request.want_fence else state
    if state is BrokerState.UNFENCED:
        if request.want_fence:
            return BrokerState.SHUTDOWN_NOW if request.want_shut_down else BrokerState.FENCED
        if request.want_shut_down:
            leads = yield from leadership.leads_any(context, broker.id)
            return BrokerState.CONTROLLED_SHUTDOWN if leads else BrokerState.SHUTDOWN_NOW
        return state
    if (yield from leadership.leads_any(context, broker.id)):
        return state
    return BrokerState.SHUTDOWN_NOW if _others_have_read(context, broker) else state


def _others_have_read(context: Context, broker: BrokerRegistration) -> bool:
    """Whether every active broker has read the records that moved leaders away from this one."""
    active = [each.id for each in context.image.cluster.brokers.values() if each.is_active]
    lowest = context.sessions.lowest_active_offset(active)
    session = context.sessions.get(broker.id)
    moved_at = session.controlled_shutdown_offset if session is not None else -1
    return lowest is None or moved_at <= lowest


def _transition(context: Context, broker: BrokerRegistration, state: BrokerState) -> Steps[list[Message]]:
    records: list[Message] = []
    change = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch)
    if state is BrokerState.UNFENCED:
        change.fenced = UNFENCE
        records.append(change)
        yield from collect(leadership.with_broker(context, broker.id), records)
    elif state is BrokerState.CONTROLLED_SHUTDOWN:
        change.in_controlled_shutdown = IN_CONTROLLED_SHUTDOWN
        records.append(change)
        yield from collect(leadership.without_broker(context, broker.id), records)
    elif not broker.fenced:
        change.fenced = FENCE
        yield from collect(leadership.without_broker(context, broker.id), records)
        records.append(change)
    return records


def _directory_changes(
    context: Context, broker: BrokerRegistration, request: BrokerHeartbeatRequest
) -> Steps[list[Message]]:
    """The records for directories that went offline or were cordoned since the broker's last heartbeat."""
    records: list[Message] = []
    offline = set(request.offline_log_dirs).intersection(broker.log_dirs)
    if context.level >= DIRECTORY_ASSIGNMENT and offline:
        yield from collect(leadership.without_directories(context, broker.id, offline), records)
        online = [directory for directory in broker.log_dirs if directory not in offline]
        records.append(
            BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, log_dirs=online)
        )
    cordoned = request.cordoned_log_dirs
    if context.level >= CORDONED_LOG_DIRS and cordoned is not None:
        known = broker.cordoned_log_dirs
        if known is None or sorted(known) != sorted(cordoned):
            records.append(
                BrokerRegistrationChangeRecord(
                    broker_id=broker.id, broker_epoch=broker.epoch, cordoned_log_dirs=list(cordoned)
                )
            )
    return records
