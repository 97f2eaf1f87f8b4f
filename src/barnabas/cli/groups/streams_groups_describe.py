"""The output of `streams-groups --describe`: lag of source topics, members with tasks, or the state.

In: group ids. Out: a table for each group, in Kafka's columns. Does not know: options other than the kind of
table and --verbose.
"""

import argparse
from collections.abc import Iterable

from barnabas.cli.frame.output import Output
from barnabas.cli.groups.consumer_groups_describe import LAST, MISSING, WIDE, table
from barnabas.cli.groups.consumer_groups_problems import Problems
from barnabas.cli.groups.reset_offsets import log_offsets
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.offsets import OffsetSpec
from barnabas.client.admin.streams_groups import (
    StreamsGroupDescription,
    StreamsMemberDescription,
    TaskAssignment,
    TaskIds,
)
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import KafkaError

OFFSET_COLUMNS = {"GROUP": WIDE, "TOPIC": WIDE, "PARTITION": 10, "OFFSET-LAG": LAST}
VERBOSE_OFFSET_COLUMNS = {
    "GROUP": WIDE,
    "TOPIC": WIDE,
    "PARTITION": 10,
    "CURRENT-OFFSET": WIDE,
    "LEADER-EPOCH": WIDE,
    "LOG-END-OFFSET": WIDE,
    "OFFSET-LAG": WIDE,
}
MEMBER_COLUMNS = {"GROUP": WIDE, "MEMBER": WIDE, "PROCESS": WIDE, "CLIENT-ID": WIDE, "ASSIGNMENTS": LAST}
VERBOSE_MEMBER_COLUMNS = (
    "GROUP",
    "TARGET-ASSIGNMENT-EPOCH",
    "TOPOLOGY-EPOCH",
    "MEMBER",
    "MEMBER-PROTOCOL",
    "MEMBER-EPOCH",
    "PROCESS",
    "CLIENT-ID",
    "ASSIGNMENTS",
)
STATE_COLUMNS = {
    "GROUP": WIDE,
    "COORDINATOR (ID)": 25,
    "STATE": 25,
    "GROUP-EPOCH": WIDE,
    "TARGET-ASSIGNMENT-EPOCH": 25,
    "#MEMBERS": LAST,
}
VERBOSE_STATE = {"GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"}


async def describe(
    options: argparse.Namespace, groups: Iterable[str], admin: Admin, out: Output, problems: Problems
) -> None:
    for group_id in groups:
        group = (await admin.describe_streams_groups([group_id]))[group_id]
        if isinstance(group, KafkaError):
            raise group
        if options.state is not None:
            note_state(group, problems)
            hidden = () if options.verbose else VERBOSE_STATE
            lines = table(STATE_COLUMNS, [state_row(group)], hidden)
        elif not group.members:
            continue
        elif options.members:
            note_state(group, problems)
            lines = member_table(group, verbose=options.verbose)
        else:
            columns = VERBOSE_OFFSET_COLUMNS if options.verbose else OFFSET_COLUMNS
            lines = table(columns, await offset_rows(group, admin, verbose=options.verbose))
        for line in lines:
            out.line(line)


def note_state(group: StreamsGroupDescription, problems: Problems) -> None:
    if group.state == "Dead":
        problems.report(f"Streams group '{group.group_id}' does not exist.")
    elif group.state == "Empty":
        problems.report(f"Streams group '{group.group_id}' has no active members.")


def state_row(group: StreamsGroupDescription) -> list[str]:
    node = group.coordinator
    coordinator = f"{node.host}:{node.port} ({node.id})"
    epochs = map(str, (group.epoch, group.assignment_epoch))
    return [group.group_id, coordinator, group.state, *epochs, str(len(group.members))]


def member_table(group: StreamsGroupDescription, *, verbose: bool) -> list[str]:
    members = sorted(group.members, key=lambda member: member.member_id)
    if not verbose:
        rows = [
            (group.group_id, each.member_id, each.process_id, each.client_id, tasks_text(each.assignment))
            for each in members
        ]
        return table(MEMBER_COLUMNS, rows)
    # Kafka's format has no blank after the epoch of the topology.
    member_width = max([WIDE, *(len(each.member_id) for each in members)])
    cells = [VERBOSE_MEMBER_COLUMNS, *(verbose_cells(group, each) for each in members)]
    widths = [
        max(WIDE, len(group.group_id)),
        25,
        WIDE,
        member_width,
        WIDE,
        WIDE,
        max([WIDE, *(len(each.process_id) for each in members)]),
        max([WIDE, *(len(each.client_id) for each in members)]),
    ]
    lines = []
    for row in cells:
        padded = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)]
        lines.append(" ".join([*padded[:2], padded[2] + padded[3], *padded[4:], row[-1]]))
    return lines


def verbose_cells(group: StreamsGroupDescription, member: StreamsMemberDescription) -> tuple[str, ...]:
    return (
        group.group_id,
        str(group.assignment_epoch),
        str(group.topology_epoch),
        member.member_id,
        "classic" if member.is_classic else "streams",
        str(member.epoch),
        member.process_id,
        member.client_id,
        tasks_text(member.assignment) + tasks_text(member.target, "TARGET-"),
    )


def tasks_text(tasks: TaskAssignment, prefix: str = "") -> str:
    def of_type(name: str, ids: TaskIds) -> str:
        if not ids:
            return ""
        shown = "".join(f"{each}:[{','.join(map(str, numbers))}]; " for each, numbers in ids)
        return f"{prefix}{name}: {shown}"

    return (
        of_type("ACTIVE", tasks.active) + of_type("STANDBY", tasks.standby) + of_type("WARMUP", tasks.warmup)
    )


async def offset_rows(group: StreamsGroupDescription, admin: Admin, *, verbose: bool) -> list[list[str]]:
    """A row for each partition that active tasks read. Without a committed offset the lag is the whole
    log."""
    partitions = read_partitions(group)
    starts = await log_offsets(admin, partitions, OffsetSpec.EARLIEST)
    ends = await log_offsets(admin, partitions, OffsetSpec.LATEST)
    committed = await admin.committed_offsets(group.group_id)
    rows = []
    for topic_partition in partitions:
        known = committed.get(topic_partition)
        lag = ends[topic_partition] - (starts[topic_partition] if known is None else known.offset)
        row = [group.group_id, topic_partition.topic, str(topic_partition.partition)]
        if verbose:
            epoch = None if known is None else known.leader_epoch
            row.append(MISSING if known is None else str(known.offset))
            row.append(MISSING if epoch is None or epoch < 0 else str(epoch))
            row.append(str(ends[topic_partition]))
        rows.append([*row, str(lag)])
    return rows


def read_partitions(group: StreamsGroupDescription) -> list[TopicPartition]:
    topics = {each.name: (*each.source_topics, *each.repartition_sources) for each in group.subtopologies}
    return sorted(
        {
            TopicPartition(topic, number)
            for member in group.members
            for name, numbers in member.assignment.active
            for topic in topics.get(name, ())
            for number in numbers
        }
    )
