"""`streams-groups --reset-offsets`: new offsets of source topics, and internal topics deleted on request.

In: options and groups. Out: the new offsets, as a table or CSV. Groups with members are left unchanged.
Does not know: how options are checked.
"""

import argparse
import re
from collections.abc import Iterable

from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import UsageError
from barnabas.cli.groups.consumer_groups_plan import Plan, csv_text
from barnabas.cli.groups.consumer_groups_problems import Problems, reason_of
from barnabas.cli.groups.consumer_groups_reset import INACTIVE, Planner, commit
from barnabas.cli.groups.consumer_groups_topics import partitions_named
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.group_offsets import Committed
from barnabas.client.admin.streams_groups import StreamsGroupDescription
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import ErrorCode, KafkaError

INTERNAL = re.compile(
    r".*(-changelog|-repartition|-subscription-registration-topic|-subscription-response-topic"
    r"|.-KTABLE-FK-JOIN-SUBSCRIPTION-(REGISTRATION|RESPONSE)-\d+-topic)"
)
NO_GROUP = ErrorCode.GROUP_ID_NOT_FOUND


async def reset(
    options: argparse.Namespace, groups: list[str], admin: Admin, out: Output, problems: Problems
) -> None:
    plan: Plan = {}
    for group_id, found in (await admin.describe_streams_groups(groups)).items():
        group = None if isinstance(found, KafkaError) else found
        if isinstance(found, KafkaError) and found.code != NO_GROUP:
            raise found
        if group is not None and group.state not in INACTIVE:
            problems.report(
                f"Assignments can only be reset if the group '{group_id}' is inactive, "
                f"but the current state is {group.state}."
            )
            plan[group_id] = {}
            continue
        plan[group_id] = await StreamsPlanner(options, group, admin, out, problems).offsets_for(group_id)
        if options.execute:
            await commit(group_id, plan[group_id], admin)
            await delete_internal(options, group, admin, problems)
    if options.export:
        out.line(csv_text(plan, with_groups=len(options.group or ()) != 1))
    else:
        for line in plan_table(plan):
            out.line(line)


def plan_table(plan: Plan) -> list[str]:
    rows = [("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET")] if plan else []
    for group, offsets in plan.items():
        for topic_partition, offset in sorted(offsets.items()):
            rows.append((group, topic_partition.topic, str(topic_partition.partition), str(offset)))
    return ["", *(f"{a:<30} {b:<30} {c:<10} {d:<15}" for a, b, c, d in rows)]


class StreamsPlanner(Planner):
    """Computes the new offsets of the source topics of one group."""

    def __init__(
        self,
        options: argparse.Namespace,
        group: StreamsGroupDescription | None,
        admin: Admin,
        out: Output,
        problems: Problems,
    ) -> None:
        super().__init__(options, admin, out, problems)
        self._group = group

    async def _scope(self, committed: Committed) -> list[TopicPartition]:
        options = self._options
        if options.all_input_topics:
            sources = input_topics(self._group)
            return [topic_partition for topic_partition in committed if topic_partition.topic in sources]
        if options.input_topic:
            partitions, missing = await partitions_named(options.input_topic, self._admin)
            if missing:
                raise missing[0][1]
            if not all(topic_partition in committed for topic_partition in partitions):
                name = "" if self._group is None else self._group.group_id
                self._problems.report(f"One or more topics are not part of the group '{name}'.")
                return []
            return partitions
        if options.from_file is None:
            raise UsageError("One of the reset scopes should be defined: --all-topics, --topic.")
        return []


def input_topics(group: StreamsGroupDescription | None) -> set[str]:
    """The topics that an application reads and did not make itself."""
    return {topic for each in (group.subtopologies if group else ()) for topic in each.source_topics}


def internal_topics(group: StreamsGroupDescription, problems: Problems) -> list[str]:
    """The internal topics of a group that bear its name; others are reported and left alone."""
    sources = input_topics(group)
    found = []
    for subtopology in group.subtopologies:
        for topic in (*subtopology.repartition_sources, *subtopology.changelogs):
            if topic in sources:
                continue
            if topic.startswith(f"{group.group_id}-") and INTERNAL.fullmatch(topic):
                found.append(topic)
            else:
                problems.report(
                    f"The internal topic '{topic}' is not inferred as internal and thus will not be deleted "
                    f"with the group '{group.group_id}'."
                )
    return list(dict.fromkeys(found))


async def delete_internal(
    options: argparse.Namespace, group: StreamsGroupDescription | None, admin: Admin, problems: Problems
) -> None:
    topics: Iterable[str] = options.delete_internal_topic or ()
    if group is None:
        return
    if options.delete_all_internal_topics:
        topics = internal_topics(group, problems)
    try:
        await admin.delete_topics(topics)
    except KafkaError as error:
        if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            why = "because the topics do not exist."
        else:
            why = f"due to {reason_of(error)}"
        problems.report(f"Deleting internal topics for group '{group.group_id}' failed {why}")
