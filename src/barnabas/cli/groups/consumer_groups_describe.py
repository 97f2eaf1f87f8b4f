"""The output of `consumer-groups --describe`: offsets and lag, members, or the state of groups.

In: group ids. Out: a table for each group, in Kafka's columns; notes on the state of a group go to standard
error. Does not know: options other than the kind of table and --verbose.
"""

import argparse
from collections.abc import Collection, Iterable, Sequence

from barnabas.cli.frame.output import Output
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.group_offsets import Committed
from barnabas.client.admin.groups import GroupDescription, GroupMember
from barnabas.client.admin.offsets import FoundOffset, OffsetSpec
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import KafkaError

MISSING = "-"
REBALANCING = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")
WIDE = 15  # the minimum width of most columns
LAST = 0  # the width of a column without padding

Row = Sequence[str]
Columns = dict[str, int]  # name: minimum width

OFFSET_COLUMNS: Columns = {
    "GROUP": WIDE,
    "TOPIC": WIDE,
    "PARTITION": 10,
    "LEADER-EPOCH": WIDE,
    "CURRENT-OFFSET": WIDE,
    "LOG-END-OFFSET": WIDE,
    "LAG": WIDE,
    "CONSUMER-ID": WIDE,
    "HOST": WIDE,
    "CLIENT-ID": LAST,
}
MEMBER_COLUMNS: Columns = {
    "GROUP": WIDE,
    "CONSUMER-ID": WIDE,
    "GROUP-INSTANCE-ID": 17,
    "HOST": WIDE,
    "CLIENT-ID": WIDE,
    "#PARTITIONS": WIDE,
    "CURRENT-EPOCH": WIDE,
    "CURRENT-ASSIGNMENT": 20,
    "TARGET-EPOCH": WIDE,
    "TARGET-ASSIGNMENT": 20,
    "UPGRADED": LAST,
}
STATE_COLUMNS: Columns = {
    "GROUP": WIDE,
    "COORDINATOR (ID)": 25,
    "ASSIGNMENT-STRATEGY": 20,
    "STATE": 20,
    "GROUP-EPOCH": WIDE,
    "TARGET-ASSIGNMENT-EPOCH": 25,
    "#MEMBERS": LAST,
}
VERBOSE_OFFSETS = {"LEADER-EPOCH"}
VERBOSE_MEMBERS = {"CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT"}
VERBOSE_STATE = {"GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"}


async def describe(options: argparse.Namespace, groups: Iterable[str], admin: Admin, out: Output) -> None:
    described = await admin.describe_groups(groups)
    for result in described.values():
        if isinstance(result, KafkaError):
            raise result
    for _, group in sorted(described.items()):
        assert isinstance(group, GroupDescription)
        if options.members:
            note_state(group, out)
            show(member_table(group, verbose=options.verbose), out)
        elif options.state is not None:
            note_state(group, out)
            show(state_table(group, verbose=options.verbose), out)
        else:
            rows = await offset_rows(group, admin)
            note_state(group, out)
            if rows:
                show(table(OFFSET_COLUMNS, rows, () if options.verbose else VERBOSE_OFFSETS), out)


def note_state(group: GroupDescription, out: Output) -> None:
    if group.state == "Empty":
        out.note(f"\nConsumer group '{group.group_id}' has no active members.")
    elif group.state in REBALANCING:
        out.note(f"\nWarning: Consumer group '{group.group_id}' is rebalancing.")


def show(lines: Iterable[str], out: Output) -> None:
    out.line()
    for line in lines:
        out.line(line)


def table(columns: Columns, rows: Sequence[Row], hidden: Collection[str] = ()) -> list[str]:
    """Make each column as wide as its widest cell, and at least as wide as its minimum."""
    lines = [""] * (len(rows) + 1)
    for index, (name, least) in enumerate(columns.items()):
        if name in hidden:
            continue
        cells = [name, *(row[index] for row in rows)]
        width = 0 if least == LAST else max(least, *map(len, cells))
        lines = [f"{line} {cell:<{width}}" for line, cell in zip(lines, cells, strict=True)]
    return [line[1:] for line in lines]


def number(value: int | None) -> str:
    return MISSING if value is None else str(value)


async def offset_rows(group: GroupDescription, admin: Admin) -> list[Row]:
    """A row for each partition: those of members first (most partitions first), then unassigned ones."""
    committed = await admin.committed_offsets(group.group_id)
    owners: list[tuple[Sequence[TopicPartition], Row]] = [
        (sorted(member.assignment), (member.member_id, member.host, member.client_id))
        for member in sorted(group.members, key=lambda each: (-len(each.assignment), each.member_id))
    ]
    assigned = {partition for partitions, _ in owners for partition in partitions}
    owners.append((sorted(set(committed) - assigned), (MISSING, MISSING, MISSING)))
    wanted = dict.fromkeys(
        [partition for partitions, _ in owners for partition in partitions], OffsetSpec.LATEST
    )
    ends = {
        partition: found.offset
        for partition, found in (await admin.list_offsets(wanted)).items()
        if isinstance(found, FoundOffset)
    }
    return [
        (group.group_id, *position_cells(partition, committed, ends.get(partition)), *owner)
        for partitions, owner in owners
        for partition in partitions
    ]


def position_cells(topic_partition: TopicPartition, committed: Committed, end: int | None) -> list[str]:
    at = committed.get(topic_partition)
    epoch = None if at is None or at.leader_epoch < 0 else at.leader_epoch
    offset = None if at is None else at.offset
    lag = None if offset is None or end is None else end - offset
    return [topic_partition.topic, str(topic_partition.partition), *map(number, (epoch, offset, end, lag))]


def member_table(group: GroupDescription, *, verbose: bool) -> list[str]:
    members = sorted(group.members, key=lambda member: member.member_id)
    hidden = set() if verbose else set(VERBOSE_MEMBERS)
    if all(member.instance_id is None for member in members):
        hidden.add("GROUP-INSTANCE-ID")
    if not verbose or not any(member.is_classic for member in members):
        hidden.add("UPGRADED")
    lines = table(MEMBER_COLUMNS, [member_row(group, member) for member in members], hidden)
    return (
        lines if verbose else [f"{line} " for line in lines]
    )  # Kafka's short table ends each line with a space


def member_row(group: GroupDescription, member: GroupMember) -> Row:
    return (
        group.group_id,
        member.member_id,
        member.instance_id or "",
        member.host,
        member.client_id,
        str(len(member.assignment)),
        number(member.epoch),
        assignment_text(member.assignment),
        number(group.target_epoch),
        assignment_text(member.target),
        str(not member.is_classic).lower(),
    )


def assignment_text(partitions: Iterable[TopicPartition]) -> str:
    """`orders:0,1;payments:0`."""
    topics: dict[str, list[int]] = {}
    for topic_partition in sorted(partitions):
        topics.setdefault(topic_partition.topic, []).append(topic_partition.partition)
    return ";".join(f"{name}:{','.join(map(str, found))}" for name, found in topics.items()) or MISSING


def state_table(group: GroupDescription, *, verbose: bool) -> list[str]:
    node = group.coordinator
    row = (
        group.group_id,
        f"{node.host}:{node.port}  ({node.id})",
        group.assignor or MISSING,
        group.state,
        number(group.epoch),
        number(group.target_epoch),
        str(len(group.members)),
    )
    return table(STATE_COLUMNS, [row], () if verbose else VERBOSE_STATE)
