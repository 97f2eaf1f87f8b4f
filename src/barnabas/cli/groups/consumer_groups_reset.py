"""`consumer-groups --reset-offsets`: computes new offsets, prints them, and commits them with --execute.

In: options and groups. Out: the new offsets, as a table or CSV. Groups with members are left unchanged. An
offset outside of the log is moved to the nearer end of the log. Does not know: how options are checked.
"""

import argparse
import time
from collections.abc import Iterable, Mapping

from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError, UsageError
from barnabas.cli.groups.consumer_groups_plan import Plan, csv_text, read_plan
from barnabas.cli.groups.consumer_groups_problems import Problems
from barnabas.cli.groups.consumer_groups_topics import partitions_named
from barnabas.cli.groups.reset_offsets import Offsets, at_time, log_offsets
from barnabas.cli.groups.reset_times import parse_datetime, parse_duration
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.group_offsets import Committed
from barnabas.client.admin.groups import GroupDescription
from barnabas.client.admin.offsets import OffsetSpec
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import ErrorCode, KafkaError

FORMS = (
    "to-offset",
    "to-datetime",
    "by-duration",
    "to-earliest",
    "to-latest",
    "to-current",
    "shift-by",
    "from-file",
)
INACTIVE = ("Empty", "Dead")


async def reset(
    options: argparse.Namespace, groups: list[str], admin: Admin, out: Output, problems: Problems
) -> None:
    planner = Planner(options, admin, out, problems)
    plan: Plan = {}
    for group, found in (await admin.describe_groups(groups)).items():
        if isinstance(found, KafkaError) and found.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise found
        if isinstance(found, GroupDescription) and found.state not in INACTIVE:
            problems.report(
                f"Assignments can only be reset if the group '{group}' is inactive, "
                f"but the current state is {found.state}."
            )
            plan[group] = {}
            continue
        plan[group] = await planner.offsets_for(group)
        if options.execute:
            await commit(group, plan[group], admin)
    if options.export:
        out.line(csv_text(plan, with_groups=len(options.group or ()) != 1))
    else:
        for line in plan_table(plan):
            out.line(line)


async def commit(group: str, offsets: Offsets, admin: Admin) -> None:
    if not offsets:
        return
    for topic_partition, error in (await admin.alter_offsets(group, offsets)).items():
        if error is not None:
            raise KafkaError(
                error.code, f"the offset of {topic_partition} cannot be committed: {error.message}"
            )


def plan_table(plan: Plan) -> list[str]:
    topics = [partition.topic for offsets in plan.values() for partition in offsets]
    group_width = max([15, *map(len, plan)])
    topic_width = max([15, *map(len, topics)])
    rows = [("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET")]
    for group, offsets in plan.items():
        rows += [(group, *map(str, (*partition, offset))) for partition, offset in sorted(offsets.items())]  # type: ignore[misc]
    lines = [f"{a:<{group_width}} {b:<{topic_width}} {c:<10} {d}" for a, b, c, d in rows]
    return ["", *lines]


class Planner:
    """Computes the new offsets of one group after the other, by the form that the options choose."""

    def __init__(self, options: argparse.Namespace, admin: Admin, out: Output, problems: Problems) -> None:
        self._options = options
        self._admin = admin
        self._out = out
        self._problems = problems
        self._now_ms = int(time.time() * 1000)
        self._file: Plan | None = None

    async def offsets_for(self, group: str) -> Offsets:
        options = self._options
        committed = await self._admin.committed_offsets(group)
        wanted = await self._scope(committed)
        if options.to_offset is not None:
            offset = whole_number(options.to_offset, "to-offset")
            return await self._within_logs(dict.fromkeys(wanted, offset))
        if options.to_earliest:
            return await self._log_offsets(wanted, OffsetSpec.EARLIEST)
        if options.to_latest:
            return await self._log_offsets(wanted, OffsetSpec.LATEST)
        if options.shift_by is not None:
            return await self._shifted(wanted, committed, whole_number(options.shift_by, "shift-by"))
        if options.to_datetime is not None:
            return await self._at_time(wanted, parse_datetime(options.to_datetime))
        if options.by_duration is not None:
            return await self._at_time(wanted, self._now_ms - parse_duration(options.by_duration))
        if options.from_file is not None:
            return await self._from_file(group)
        if options.to_current:
            known = {
                topic_partition: committed[topic_partition].offset
                for topic_partition in wanted
                if topic_partition in committed
            }
            others = [topic_partition for topic_partition in wanted if topic_partition not in committed]
            return known | await self._log_offsets(others, OffsetSpec.LATEST)
        forms = ", ".join(f"[{form}]" for form in FORMS)
        raise UsageError(f"Option '[reset-offsets]' requires one of the following scenarios: [{forms}]")

    async def _scope(self, committed: Committed) -> list[TopicPartition]:
        if self._options.all_topics:
            return list(committed)
        if self._options.topic:
            partitions, missing = await partitions_named(self._options.topic, self._admin)
            if missing:
                raise missing[0][1]
            return partitions
        if self._options.from_file is None:
            raise UsageError("One of the reset scopes should be defined: --all-topics, --topic.")
        return []

    async def _log_offsets(self, partitions: Iterable[TopicPartition], spec: int) -> Offsets:
        return await log_offsets(self._admin, partitions, spec)

    async def _at_time(self, partitions: list[TopicPartition], timestamp_ms: int) -> Offsets:
        return await at_time(self._admin, partitions, timestamp_ms, self._out)

    async def _shifted(self, partitions: list[TopicPartition], committed: Committed, by: int) -> Offsets:
        for topic_partition in partitions:
            if topic_partition not in committed:
                raise UsageError(
                    f"Cannot shift offset for partition {topic_partition} since there is no current"
                    " committed offset"
                )
        return await self._within_logs(
            {topic_partition: committed[topic_partition].offset + by for topic_partition in partitions}
        )

    async def _from_file(self, group: str) -> Offsets:
        if self._file is None:
            groups = self._options.group or []
            self._file = read_plan(self._options.from_file, groups[0] if len(groups) == 1 else None)
        if group not in self._file:
            self._problems.report(f"No reset plan for group {group} found")
            return {}
        return await self._within_logs(self._file[group])

    async def _within_logs(self, offsets: Mapping[TopicPartition, int]) -> Offsets:
        """Move offsets outside of a log to the nearer end of the log."""
        starts = await self._log_offsets(offsets, OffsetSpec.EARLIEST)
        ends = await self._log_offsets(offsets, OffsetSpec.LATEST)
        moved: Offsets = {}
        for topic_partition, offset in offsets.items():
            moved[topic_partition] = min(max(offset, starts[topic_partition]), ends[topic_partition])
            if moved[topic_partition] != offset:
                side = "higher than latest" if offset > ends[topic_partition] else "lower than earliest"
                self._out.note(
                    f"New offset ({offset}) is {side} offset for topic partition {topic_partition}. "
                    f"Value will be set to {moved[topic_partition]}"
                )
        return moved


def whole_number(text: str, option: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ToolError(f"Cannot parse argument '{text}' of option {option}") from None
