"""The output of `share-groups --describe`: start offsets and lag, members, or the state of groups.

In: group ids. Out: a table for each group, in Kafka's columns; notes on the state of a group go to standard
error. Does not know: options other than the kind of table and --verbose.
"""

import argparse
from collections.abc import Iterable

from barnabas.cli.frame.output import Output
from barnabas.cli.groups.consumer_groups_describe import LAST, assignment_text, number, show, table
from barnabas.cli.groups.consumer_groups_problems import Problems
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.share_groups import ShareGroupDescription, ShareOffset, ShareOffsets
from barnabas.protocol import KafkaError

OFFSET_COLUMNS = {
    "GROUP": 15,
    "TOPIC": 15,
    "PARTITION": 10,
    "LEADER-EPOCH": 13,
    "START-OFFSET": 13,
    "LAG": LAST,
}
MEMBER_COLUMNS = {
    "GROUP": 15,
    "CONSUMER-ID": 15,
    "HOST": 15,
    "CLIENT-ID": 15,
    "#PARTITIONS": 12,
    "MEMBER-EPOCH": 13,
    "ASSIGNMENT": LAST,
}
STATE_COLUMNS = {
    "GROUP": 15,
    "COORDINATOR (ID)": 25,
    "STATE": 15,
    "GROUP-EPOCH": 12,
    "ASSIGNMENT-EPOCH": 17,
    "#MEMBERS": LAST,
}
VERBOSE = {"LEADER-EPOCH", "MEMBER-EPOCH", "GROUP-EPOCH", "ASSIGNMENT-EPOCH"}
NO_OFFSET = ShareOffset(-1)


async def describe(
    options: argparse.Namespace, groups: Iterable[str], admin: Admin, out: Output, problems: Problems
) -> None:
    described = await admin.describe_share_groups(groups)
    for result in described.values():
        if isinstance(result, KafkaError):
            raise result
    hidden = () if options.verbose else VERBOSE
    for group_id, group in sorted(described.items()):
        assert isinstance(group, ShareGroupDescription)
        if options.members:
            note_state(group, out, problems)
            if group.members:
                show(table(MEMBER_COLUMNS, member_rows(group), hidden), out)
        elif options.state is not None:
            note_state(group, out, problems)
            show(table(STATE_COLUMNS, [state_row(group)], hidden), out)
        else:
            offsets = (await admin.share_group_offsets([group_id]))[group_id]
            if isinstance(offsets, KafkaError):
                raise offsets
            if offsets:
                show(table(OFFSET_COLUMNS, offset_rows(group_id, offsets), hidden), out)
            else:
                out.line(f"\nShare group '{group_id}' has no offset information.")


def note_state(group: ShareGroupDescription, out: Output, problems: Problems) -> None:
    if group.state == "Dead":
        problems.report(f"Share group '{group.group_id}' does not exist.")
    elif group.state == "Empty":
        out.note(f"\nShare group '{group.group_id}' has no active members.")


def offset_rows(group_id: str, offsets: ShareOffsets) -> list[tuple[str, ...]]:
    rows = []
    for where, found in sorted(offsets.items()):
        at = NO_OFFSET if found is None else found
        start = None if found is None else found.start_offset
        numbers = map(number, (at.leader_epoch, start, at.lag))
        rows.append((group_id, where.topic, str(where.partition), *numbers))
    return rows


def member_rows(group: ShareGroupDescription) -> list[tuple[str, ...]]:
    return [
        (
            group.group_id,
            member.member_id,
            member.host,
            member.client_id,
            str(len(member.assignment)),
            str(member.epoch),
            assignment_text(member.assignment) if member.assignment else "",
        )
        for member in sorted(group.members, key=lambda each: each.member_id)
    ]


def state_row(group: ShareGroupDescription) -> tuple[str, ...]:
    node = group.coordinator
    return (
        group.group_id,
        f"{node.host}:{node.port}  ({node.id})",
        group.state,
        str(group.epoch),
        str(group.assignment_epoch),
        str(len(group.members)),
    )
