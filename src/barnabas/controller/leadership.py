"""Leadership: leader, ISR and eligible replicas of partitions, after brokers come and go.

In: a partition, the brokers that leave its ISR, the brokers that may lead. Out: a PartitionChangeRecord, or
nothing if nothing changes (see `partition_change`). All partitions are checked, which takes long: `None`
among the records marks a point where other work may run.
Does not know: why brokers come and go; reassignments.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from barnabas.controller.context import Context
from barnabas.controller.partition_change import Rules, Wanted, build
from barnabas.metadata.partitions import NO_LEADER, PartitionRegistration
from barnabas.metadata.steps import Steps
from barnabas.metadata.topics import TopicImage
from barnabas.metadata.versions import DIRECTORY_ASSIGNMENT, NO_EPOCH_BUMP_ON_ISR_SHRINK
from barnabas.protocol.log_records.metadata import PartitionChangeRecord

PARTITIONS_PER_STEP = 256  # unchanged ones; checking one takes a fraction of a microsecond


def change(
    partition: PartitionRegistration,
    topic_id: bytes,
    number: int,
    isr: tuple[int, ...],
    rules: Rules,
    unclean: Collection[int] = (),
) -> PartitionChangeRecord | None:
    """The record that makes `isr` the in-sync replicas and elects a leader if needed.
    `unclean` are brokers that lost unsynced records: they are no longer eligible."""
    return build(partition, topic_id, number, Wanted(isr=isr, unclean=unclean), rules)


def rules_for(
    context: Context,
    topic: TopicImage,
    may_lead: Callable[[int], bool],
    *,
    unclean_allowed: bool = False,
    uses_topic_setting: bool = True,
) -> Rules:
    """`uses_topic_setting`: whether the topic's setting may allow unclean elections."""
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
        unclean_allowed=unclean_allowed
        or (uses_topic_setting and context.unclean_election_allowed(topic.name)),
        bump_epoch_on_isr_shrink=context.level < NO_EPOCH_BUMP_ON_ISR_SHRINK,
        default_directory=context.default_directory if context.level >= DIRECTORY_ASSIGNMENT else None,
    )


def without_broker(context: Context, broker_id: int) -> Iterator[PartitionChangeRecord | None]:
    """Remove a broker that is fenced or shuts down from every ISR and every leadership."""
    return _remove(context, broker_id, lambda partition: broker_id in partition.isr)


def without_directories(
    context: Context, broker_id: int, directories: Collection[bytes]
) -> Iterator[PartitionChangeRecord | None]:
    """Remove a broker from the ISR of the partitions in its failed directories."""
    return _remove(
        context,
        broker_id,
        lambda partition: broker_id in partition.isr and partition.directory_of(broker_id) in directories,
    )


def after_unclean_shutdown(context: Context, broker_id: int) -> Iterator[PartitionChangeRecord | None]:
    """Remove a broker that died without syncing. Its last records may be lost, so it is not eligible
    either."""
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
) -> Iterator[PartitionChangeRecord | None]:
    def may_lead(replica: int) -> bool:
        return replica != broker_id and context.is_active(replica)

    for topic in context.image.topics.by_id.values():
        rules: Rules | None = None
        for count, (number, partition) in enumerate(topic.partitions.items()):
            if not count % PARTITIONS_PER_STEP:
                yield None
            if concerns(partition):
                rules = rules or rules_for(context, topic, may_lead)
                isr = tuple(replica for replica in partition.isr if replica != broker_id)
                record = change(partition, topic.id, number, isr, rules, unclean)
                if record is not None:
                    yield record


def with_broker(context: Context, broker_id: int) -> Iterator[PartitionChangeRecord | None]:
    """Let an unfenced broker lead partitions without a leader."""

    def may_lead(replica: int) -> bool:
        return replica == broker_id or context.is_active(replica)

    for topic in context.image.topics.by_id.values():
        rules: Rules | None = None
        for count, (number, partition) in enumerate(topic.partitions.items()):
            if not count % PARTITIONS_PER_STEP:
                yield None
            if partition.leader == NO_LEADER:
                rules = rules or rules_for(context, topic, may_lead)
                record = change(partition, topic.id, number, partition.isr, rules)
                if record is not None:
                    yield record


def leads_any(context: Context, broker_id: int) -> Steps[bool]:
    for topic in context.image.topics.by_id.values():
        for count, partition in enumerate(topic.partitions.values()):
            if partition.leader == broker_id:
                return True
            if not count % PARTITIONS_PER_STEP:
                yield
    return False
