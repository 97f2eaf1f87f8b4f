"""`share-groups --reset-offsets`: computes new start offsets, prints them, and sets them with --execute.

In: options and a group. Out: the new offsets as a table. A group with members is left unchanged.
Does not know: how options are checked.
"""

import argparse

from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError
from barnabas.cli.groups.consumer_groups_reset import plan_table
from barnabas.cli.groups.consumer_groups_topics import partitions_named
from barnabas.cli.groups.reset_offsets import Offsets, at_time, log_offsets
from barnabas.cli.groups.reset_times import parse_datetime
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.offsets import OffsetSpec
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import ErrorCode, KafkaError

FORMS = ("to-datetime", "to-earliest", "to-latest")
INACTIVE = ("Empty", "Dead")


class GroupInUse(ToolError):
    """The offsets of a group with members are not touched."""


async def reset(options: argparse.Namespace, group: str, admin: Admin, out: Output) -> None:
    found = (await admin.describe_share_groups([group]))[group]
    if isinstance(found, KafkaError):
        if found.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise GroupInUse(found.message)
    elif found.state not in INACTIVE:
        raise GroupInUse(f"Share group '{group}' is not empty.")
    offsets = await new_offsets(options, await scope(options, group, admin), admin, out)
    if options.execute:
        await set_offsets(group, offsets, admin, as_kafka=options.as_kafka)
    for line in plan_table({group: offsets}):
        out.line(line)


async def scope(options: argparse.Namespace, group: str, admin: Admin) -> list[TopicPartition]:
    if options.topic:
        partitions, missing = await partitions_named(options.topic, admin)
        if missing:
            raise missing[0][1]
        return partitions
    known = (await admin.share_group_offsets([group]))[group]
    if isinstance(known, KafkaError):
        raise known
    return list(known)


async def new_offsets(
    options: argparse.Namespace, partitions: list[TopicPartition], admin: Admin, out: Output
) -> Offsets:
    if options.to_earliest:
        return await log_offsets(admin, partitions, OffsetSpec.EARLIEST)
    if options.to_latest:
        return await log_offsets(admin, partitions, OffsetSpec.LATEST)
    return await at_time(admin, partitions, parse_datetime(options.to_datetime), out)


async def set_offsets(group: str, offsets: Offsets, admin: Admin, *, as_kafka: bool) -> None:
    failed: dict[TopicPartition, KafkaError]
    try:
        results = await admin.alter_share_group_offsets(group, offsets)
        failed = {topic_partition: error for topic_partition, error in results.items() if error is not None}
    except KafkaError as error:
        failed = dict.fromkeys(offsets, error)
    if failed:
        names = ", ".join(map(str, sorted(failed)))
        first = next(iter(failed.values()))
        text = f"Failed altering group offsets for the following partitions: [{names}]"
        raise KafkaError(first.code, text if as_kafka else f"{text}: {first.message}")
