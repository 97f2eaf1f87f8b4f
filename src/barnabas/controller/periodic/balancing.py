"""Elections on the controller's own initiative: preferred leaders, and any leader where none is left.

In: the image, at intervals. Out: PartitionChangeRecords, a bounded number at once, so that clients can
follow.
Does not know: how often.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.controller.context import Context
from barnabas.controller.decision import Decision, InSteps
from barnabas.controller.leadership import rules_for
from barnabas.controller.partition_change import Election, Rules, Wanted, build
from barnabas.metadata.partitions import NO_LEADER
from barnabas.metadata.steps import Steps
from barnabas.protocol.log_records.metadata import PartitionChangeRecord

ELECTIONS_MAX = 1_000
PARTITIONS_PER_STEP = 64


@InSteps
def balance_leaders(context: Context) -> Steps[Decision[int]]:
    """Elect the preferred leader of partitions that another replica leads
    (`auto.leader.rebalance.enable`)."""
    records = []
    for record in _preferred(context):
        if record is None:
            yield
            continue
        records.append(record)
        if len(records) >= ELECTIONS_MAX:
            break
    return Decision(len(records), records)


def _preferred(context: Context) -> Iterator[PartitionChangeRecord | None]:
    """`None` marks a point where other work may run."""
    for topic in context.image.topics.by_id.values():
        rules: Rules | None = None
        for count, (number, partition) in enumerate(topic.partitions.items()):
            if not count % PARTITIONS_PER_STEP:
                yield None
            if partition.leader != partition.replicas[0]:
                rules = rules or rules_for(context, topic, context.is_active, uses_topic_setting=False)
                record = build(partition, topic.id, number, Wanted(election=Election.PREFERRED), rules)
                if record is not None:
                    yield record


@InSteps
def elect_unclean_leaders(context: Context) -> Steps[Decision[int]]:
    """Elect any replica for partitions without a leader, in topics that allow unclean elections."""
    records: list[PartitionChangeRecord] = []
    for topic in context.image.topics.by_id.values():
        rules: Rules | None = None
        for count, (number, partition) in enumerate(topic.partitions.items()):
            if not count % PARTITIONS_PER_STEP:
                yield
            if partition.leader == NO_LEADER and len(records) < ELECTIONS_MAX:
                if not context.unclean_election_allowed(topic.name):
                    break
                rules = rules or rules_for(context, topic, context.is_active)
                record = build(partition, topic.id, number, Wanted(election=Election.UNCLEAN), rules)
                if record is not None:
                    records.append(record)
    return Decision(len(records), records)
