"""Leaders that the controller elects on its own: the preferred ones where others lead, any where nobody does.

In: the image, from time to time. Out: PartitionChangeRecords, at most so many at once, so that clients find
their way meanwhile. Does not know: how often.
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
PARTITIONS_A_STEP = 64


@InSteps
def balance_leaders(context: Context) -> Steps[Decision[int]]:
    """Partitions that their preferred leader could lead, and does not (`auto.leader.rebalance.enable`)."""
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
    """`None` says that somebody else may have a turn."""
    for topic in context.image.topics.by_id.values():
        rules: Rules | None = None
        for count, (number, partition) in enumerate(topic.partitions.items()):
            if not count % PARTITIONS_A_STEP:
                yield None
            if partition.leader != partition.replicas[0]:
                rules = rules or rules_for(context, topic, context.is_active, asks_topic=False)
                record = build(partition, topic.id, number, Wanted(election=Election.PREFERRED), rules)
                if record is not None:
                    yield record


@InSteps
def elect_unclean_leaders(context: Context) -> Steps[Decision[int]]:
    """Partitions that nobody leads, in topics where losing records is better than waiting."""
    records: list[PartitionChangeRecord] = []
    for topic in context.image.topics.by_id.values():
        rules: Rules | None = None
        for count, (number, partition) in enumerate(topic.partitions.items()):
            if not count % PARTITIONS_A_STEP:
                yield
            if partition.leader == NO_LEADER and len(records) < ELECTIONS_MAX:
                if not context.unclean_election_allowed(topic.name):
                    break
                rules = rules or rules_for(context, topic, context.is_active)
                record = build(partition, topic.id, number, Wanted(election=Election.UNCLEAN), rules)
                if record is not None:
                    records.append(record)
    return Decision(len(records), records)
