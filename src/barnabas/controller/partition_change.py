"""The change of one partition: builds the record with everything that follows from the change.

In: a partition, and the wanted change (replicas, ISR, election). Out: a PartitionChangeRecord, or nothing if
nothing changes. In this order: complete a reassignment whose new replicas are all in sync; with too small an
ISR, keep its former members eligible (KIP-966); elect a leader where one is needed; raise the leader epoch
where replicas left, so that their fetches are refused.
Does not know: the reason, requests, other partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import Enum

from barnabas.metadata.partitions import (
    NO_LEADER,
    NO_LEADER_CHANGE,
    NO_RECOVERY_CHANGE,
    RECOVERING,
    PartitionRegistration,
    is_online,
)
from barnabas.protocol.log_records.metadata import PartitionChangeRecord

Replicas = tuple[int, ...]


class Election(Enum):
    ONLINE = "a leader in sync, where the one there is cannot lead"
    PREFERRED = "the first replica, if it is in sync"
    UNCLEAN = "any replica that is there, if none in sync is"


@dataclass(frozen=True, slots=True)
class Rules:
    """The facts that decide an election in one topic."""

    may_lead: Callable[[int], bool]
    log_dirs: Callable[[int], tuple[bytes, ...]]  # a broker's online directories
    min_insync_replicas: int
    elr_enabled: bool
    unclean_allowed: bool
    bump_epoch_on_isr_shrink: bool
    # of a new replica; None: records hold no directories
    default_directory: Callable[[int], bytes] | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """The wanted values; `None` keeps a value."""

    isr: Replicas | None = None
    replicas: Replicas | None = None
    removing: Replicas | None = None
    adding: Replicas | None = None
    recovery_state: int | None = None
    unclean: Collection[int] = ()  # brokers that lost unsynced records: they are no longer eligible
    election: Election = Election.ONLINE


def build(
    partition: PartitionRegistration, topic_id: bytes, number: int, wanted: Wanted, rules: Rules
) -> PartitionChangeRecord | None:
    before = partition
    isr = partition.isr if wanted.isr is None else wanted.isr
    replicas = partition.replicas if wanted.replicas is None else wanted.replicas
    removing = partition.removing_replicas if wanted.removing is None else wanted.removing
    adding = partition.adding_replicas if wanted.adding is None else wanted.adding
    completed = _completed(replicas, removing, adding, isr)
    if completed is not None:
        replicas, isr = completed
        removing = adding = ()
    elr = _eligible(partition, isr, rules, wanted.unclean)
    leader, is_unclean = _elect(partition, replicas, isr, elr, rules, wanted.election)
    record = PartitionChangeRecord(partition_id=number, topic_id=topic_id)
    if leader != before.leader:
        record.leader = leader
        if leader in elr:
            isr, elr = (leader,), tuple(replica for replica in elr if replica != leader)
        if is_unclean:
            isr, elr = (leader,), ()
            if before.leader_recovery_state != RECOVERING:
                record.leader_recovery_state = RECOVERING
    if record.leader == NO_LEADER_CHANGE and not set(before.replicas) <= set(replicas):
        record.leader = before.leader
    if elr != before.elr:
        record.eligible_leader_replicas = list(elr)
    # Without eligible leader replicas the last ISR is kept: otherwise no replica could lead again.
    if (isr or rules.elr_enabled) and isr != before.isr:
        record.isr = list(isr)
    _bump_epoch_on_shrink(record, before, isr, rules)
    _record_last_leader(record, before, rules)
    _assign(record, before, replicas, rules)
    if removing != before.removing_replicas:
        record.removing_replicas = list(removing)
    if adding != before.adding_replicas:
        record.adding_replicas = list(adding)
    if wanted.recovery_state not in (None, before.leader_recovery_state):
        record.leader_recovery_state = wanted.recovery_state
    return None if _changes_nothing(record) else record


def _completed(
    replicas: Replicas, removing: Replicas, adding: Replicas, isr: Replicas
) -> tuple[Replicas, Replicas] | None:
    """Replicas and ISR after a reassignment; None while new replicas are behind, or if there is no
    reassignment."""
    if not removing and not adding:
        return None
    isr_after = tuple(replica for replica in isr if replica not in removing)
    replicas_after = tuple(replica for replica in replicas if replica not in removing)
    if not isr_after or not replicas_after or not set(replicas_after) <= set(isr_after):
        return None
    return replicas_after, isr_after


def _eligible(
    partition: PartitionRegistration, isr: Replicas, rules: Rules, unclean: Collection[int]
) -> Replicas:
    if not rules.elr_enabled or len(isr) >= rules.min_insync_replicas:
        return ()
    were_in_sync = {*partition.elr, *partition.isr}
    return tuple(sorted(replica for replica in were_in_sync if replica not in isr and replica not in unclean))


def _elect(
    partition: PartitionRegistration,
    replicas: Replicas,
    isr: Replicas,
    elr: Replicas,
    rules: Rules,
    election: Election,
) -> tuple[int, bool]:
    """The leader, and whether electing it may lose records. The current leader stays if it can."""
    candidates = isr or elr

    def is_valid(replica: int) -> bool:
        return replica in candidates and _may_lead(partition, replica, rules)

    if election is Election.PREFERRED and is_valid(replicas[0]):
        return replicas[0], False
    if is_valid(partition.leader):
        return partition.leader, False
    for replica in replicas:
        if is_valid(replica):
            return replica, False
    if rules.elr_enabled and not candidates and len(partition.last_known_elr) == 1:
        last = partition.last_known_elr[0]
        if _may_lead(partition, last, rules):
            return last, True
    if election is Election.UNCLEAN or (rules.unclean_allowed and election is Election.ONLINE):
        for replica in replicas:
            if _may_lead(partition, replica, rules):
                return replica, True
    return NO_LEADER, False


def _may_lead(partition: PartitionRegistration, replica: int, rules: Rules) -> bool:
    """Whether a broker may lead: it is active, and the replica is in one of its online directories."""
    return rules.may_lead(replica) and is_online(partition.directory_of(replica), rules.log_dirs(replica))


def _bump_epoch_on_shrink(
    record: PartitionChangeRecord, partition: PartitionRegistration, isr: Replicas, rules: Rules
) -> None:
    shrinks = record.isr is not None and not set(partition.isr) <= set(isr)
    if rules.bump_epoch_on_isr_shrink and shrinks and record.leader == NO_LEADER_CHANGE:
        record.leader = partition.leader


def _record_last_leader(
    record: PartitionChangeRecord, partition: PartitionRegistration, rules: Rules
) -> None:
    """Record the last known leader while the ISR is empty, until a replica leads again."""
    if not rules.elr_enabled:
        return
    if record.isr == [] and partition.leader != NO_LEADER and partition.last_known_elr != (partition.leader,):
        record.last_known_elr = [partition.leader]
    elif partition.last_known_elr:
        leads = record.leader >= 0 or (record.leader == NO_LEADER_CHANGE and partition.leader != NO_LEADER)
        if leads:
            record.last_known_elr = []


def _assign(
    record: PartitionChangeRecord, partition: PartitionRegistration, replicas: Replicas, rules: Rules
) -> None:
    if replicas == partition.replicas:
        return
    record.replicas = list(replicas)
    default = rules.default_directory
    if default is not None:
        directories = tuple(
            partition.directory_of(replica) if replica in partition.replicas else default(replica)
            for replica in replicas
        )
        if directories != partition.directories:
            record.directories = list(directories)


def _changes_nothing(record: PartitionChangeRecord) -> bool:
    return (
        record.leader == NO_LEADER_CHANGE
        and record.isr is None
        and record.eligible_leader_replicas is None
        and record.last_known_elr is None
        and record.leader_recovery_state == NO_RECOVERY_CHANGE
        and record.replicas is None
        and record.directories is None
        and record.removing_replicas is None
        and record.adding_replicas is None
    )
