"""Leadership: who leads a partition, who is in sync and who stays eligible, after brokers come and go.

In: a partition, the brokers that leave its ISR, the brokers that may lead. Out: a PartitionChangeRecord, or
nothing when all stays as it is. Eligible leader replicas (KIP-966): when too few are in sync to acknowledge
writes, those that were in sync last stay eligible, and the last leader is remembered.
Does not know: why brokers come and go; reassignments change replicas elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from barnabas.controller.context import Context
from barnabas.metadata.partitions import (
    NO_LEADER,
    NO_LEADER_CHANGE,
    NO_RECOVERY_CHANGE,
    RECOVERING,
    PartitionRegistration,
    is_online,
)
from barnabas.metadata.topics import TopicImage
from barnabas.metadata.versions import NO_EPOCH_BUMP_ON_ISR_SHRINK
from barnabas.protocol.log_records.metadata import PartitionChangeRecord


@dataclass(frozen=True, slots=True)
class Rules:
    """What decides an election in one topic."""

    may_lead: Callable[[int], bool]
    log_dirs: Callable[[int], tuple[bytes, ...]]  # a broker's directories that are online
    min_insync_replicas: int
    elr_enabled: bool
    unclean_allowed: bool
    bump_epoch_on_isr_shrink: bool


def change(
    partition: PartitionRegistration,
    topic_id: bytes,
    number: int,
    isr: tuple[int, ...],
    rules: Rules,
    unclean: Collection[int] = (),
) -> PartitionChangeRecord | None:
    """The record that makes `isr` the in-sync replicas and elects a leader if need be.

    `unclean` are brokers that lost what they had not synced: they are no longer eligible.
    """
    elr = _eligible(partition, isr, rules, unclean)
    leader, is_unclean = _elect(partition, isr, elr, rules)
    record = PartitionChangeRecord(partition_id=number, topic_id=topic_id)
    if leader != partition.leader:
        record.leader = leader
        if is_unclean:
            isr, elr = (leader,), ()
            if partition.leader_recovery_state != RECOVERING:
                record.leader_recovery_state = RECOVERING
        elif leader in elr:
            isr, elr = (leader,), tuple(replica for replica in elr if replica != leader)
    if elr != partition.elr:
        record.eligible_leader_replicas = list(elr)
    # Without eligible leader replicas the last ISR is kept, or nobody could ever lead again.
    if (isr or rules.elr_enabled) and isr != partition.isr:
        record.isr = list(isr)
    _bump_epoch_on_shrink(record, partition, isr, rules)
    _remember_leader(record, partition, rules)
    return None if _changes_nothing(record) else record


def _eligible(
    partition: PartitionRegistration, isr: tuple[int, ...], rules: Rules, unclean: Collection[int]
) -> tuple[int, ...]:
    if not rules.elr_enabled or len(isr) >= rules.min_insync_replicas:
        return ()
    were_in_sync = {*partition.elr, *partition.isr}
    return tuple(sorted(replica for replica in were_in_sync if replica not in isr and replica not in unclean))


def _elect(
    partition: PartitionRegistration, isr: tuple[int, ...], elr: tuple[int, ...], rules: Rules
) -> tuple[int, bool]:
    """The leader, and whether electing it may lose records. The current one stays while it can."""
    candidates = isr or elr
    if partition.leader in candidates and _may_lead(partition, partition.leader, rules):
        return partition.leader, False
    for replica in partition.replicas:
        if replica in candidates and _may_lead(partition, replica, rules):
            return replica, False
    if rules.elr_enabled and not candidates and len(partition.last_known_elr) == 1:
        last = partition.last_known_elr[0]
        if _may_lead(partition, last, rules):
            return last, True
    if rules.unclean_allowed:
        for replica in partition.replicas:
            if _may_lead(partition, replica, rules):
                return replica, True
    return NO_LEADER, False


def _may_lead(partition: PartitionRegistration, replica: int, rules: Rules) -> bool:
    """A broker leads only what lies in a directory that it has."""
    return rules.may_lead(replica) and is_online(partition.directory_of(replica), rules.log_dirs(replica))


def _bump_epoch_on_shrink(
    record: PartitionChangeRecord, partition: PartitionRegistration, isr: tuple[int, ...], rules: Rules
) -> None:
    shrinks = record.isr is not None and not set(partition.isr) <= set(isr)
    if rules.bump_epoch_on_isr_shrink and shrinks and record.leader == NO_LEADER_CHANGE:
        record.leader = partition.leader


def _remember_leader(record: PartitionChangeRecord, partition: PartitionRegistration, rules: Rules) -> None:
    """The last known leader, from when nobody is in sync until somebody leads again."""
    if not rules.elr_enabled:
        return
    if record.isr == [] and partition.leader != NO_LEADER and partition.last_known_elr != (partition.leader,):
        record.last_known_elr = [partition.leader]
    elif partition.last_known_elr:
        leads = record.leader >= 0 or (record.leader == NO_LEADER_CHANGE and partition.leader != NO_LEADER)
        if leads:
            record.last_known_elr = []


def _changes_nothing(record: PartitionChangeRecord) -> bool:
    return (
        record.leader == NO_LEADER_CHANGE
        and record.isr is None
        and record.eligible_leader_replicas is None
        and record.last_known_elr is None
        and record.leader_recovery_state == NO_RECOVERY_CHANGE
    )


def rules_for(
    context: Context, topic: TopicImage, may_lead: Callable[[int], bool], *, unclean_allowed: bool = False
) -> Rules:
    first = topic.partitions.get(0)
    brokers = context.image.cluster.brokers

    def log_dirs(broker_id: int) -> tuple[bytes, ...]:
        broker = brokers.get(broker_id)
        return broker.log_dirs if broker is not None else ()

    return Rules(
        may_lead=may_lead,
        log_dirs=log_dirs,
        min_insync_replicas=context.min_insync_replicas(topic.name, len(first.replicas) if first else 1),
        elr_enabled=context.image.features.elr_enabled,
        unclean_allowed=unclean_allowed or context.unclean_election_allowed(topic.name),
        bump_epoch_on_isr_shrink=context.level < NO_EPOCH_BUMP_ON_ISR_SHRINK,
    )


def without_broker(context: Context, broker_id: int) -> Iterator[PartitionChangeRecord]:
    """A broker is fenced or leaves: it is out of every ISR and leads nothing."""
    return _remove(context, broker_id, lambda partition: broker_id in partition.isr)


def without_directories(
    context: Context, broker_id: int, directories: Collection[bytes]
) -> Iterator[PartitionChangeRecord]:
    """Some of a broker's directories failed: it is out of the ISR of the partitions in them."""
    return _remove(
        context,
        broker_id,
        lambda partition: broker_id in partition.isr and partition.directory_of(broker_id) in directories,
    )


def after_unclean_shutdown(context: Context, broker_id: int) -> Iterator[PartitionChangeRecord]:
    """A broker died without syncing: what it held last cannot be trusted, so it is not eligible either."""
    return _remove(
        context,
        broker_id,
        lambda partition: broker_id in partition.isr or broker_id in partition.elr,
        unclean=(broker_id,),
    )


def _remove(
    context: Context,
    broker_id: int,
    concerns: Callable[[PartitionRegistration], bool],
    unclean: Collection[int] = (),
) -> Iterator[PartitionChangeRecord]:
    def may_lead(replica: int) -> bool:
        return replica != broker_id and context.is_active(replica)

    for topic in context.image.topics.by_id.values():
        rules: Rules | None = None
        for number, partition in topic.partitions.items():
            if concerns(partition):
                rules = rules or rules_for(context, topic, may_lead)
                isr = tuple(replica for replica in partition.isr if replica != broker_id)
                record = change(partition, topic.id, number, isr, rules, unclean)
                if record is not None:
                    yield record


def with_broker(context: Context, broker_id: int) -> Iterator[PartitionChangeRecord]:
    """A broker is unfenced: partitions without a leader may be led by it."""

    def may_lead(replica: int) -> bool:
        return replica == broker_id or context.is_active(replica)

    for topic in context.image.topics.by_id.values():
        rules: Rules | None = None
        for number, partition in topic.partitions.items():
            if partition.leader == NO_LEADER:
                rules = rules or rules_for(context, topic, may_lead)
                record = change(partition, topic.id, number, partition.isr, rules)
                if record is not None:
                    yield record


def leads_any(context: Context, broker_id: int) -> bool:
    return any(
        partition.leader == broker_id
        for topic in context.image.topics.by_id.values()
        for partition in topic.partitions.values()
    )
