"""streams-reset: process the input of a Kafka Streams application again, as kafka-streams-application-reset.

In: an application id, topics, where to begin. Out: new offsets of input topics, internal topics deleted; the
lines of Kafka's tool. Members must be gone, or are removed with --force. An application of ours drops its
local state by itself: its offsets say that no state belongs to them. Does not know: plans.
"""

import argparse
import json
import time

from barnabas.cli.frame.connecting import add_bootstrap, add_command_config, cluster_from, load_properties
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError, ToolParser
from barnabas.cli.groups.consumer_groups_plan import read_plan
from barnabas.cli.groups.consumer_groups_problems import reason_of
from barnabas.cli.groups.consumer_groups_reset import whole_number
from barnabas.cli.groups.reset_offsets import Offsets, at_time, log_offsets
from barnabas.cli.groups.reset_times import parse_datetime, parse_duration
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.group_offsets import Committed
from barnabas.client.admin.groups import GroupDescription
from barnabas.client.admin.offsets import OffsetSpec
from barnabas.client.core.errors import ClientError
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import ErrorCode, KafkaError

EXAMPLES = (
    "--application-id words --dry-run",
    "--application-id words --input-topics lines,names",
    "--application-id words --input-topics lines --by-duration PT1H",
    "--application-id words --input-topics lines --shift-by -100 --internal-topics words-counts-changelog",
)
FORMS = (
    "to_offset",
    "to_datetime",
    "by_duration",
    "to_earliest",
    "to_latest",
    "shift_by",
    "from_file",
)
INTERNAL = ("-changelog", "-repartition", "-subscription-registration-topic", "-subscription-response-topic")
FOREIGN_KEY = ("KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-", "KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-")
VERSION = "barnabas.version"  # in the metadata of offsets that an application of ours committed
EMPTY = (
    "Partition {0.partition} from topic {0.topic} is empty, without a committed record."
    " Falling back to latest known offset."
)
NOT_INTERNAL = (
    "Invalid topic specified in the --internal-topics option. Ensure that the topics specified are all"
    " internal topics. Do a dry run without the --internal-topics option to see the list of all internal"
    " topics that can be deleted."
)


def add_arguments(parser: ToolParser) -> None:
    parser.set_defaults(as_kafka=parser.strict)
    parser.signed |= {"--by-duration", "--shift-by"}
    parser.add_argument("--application-id", metavar="ID", required=True, help="the application (required)")
    add_bootstrap(parser)
    add_command_config(parser)
    parser.add_argument("--config-file", metavar="FILE", help="the former name of --command-config")
    parser.add_argument(
        "--input-topics", metavar="TOPIC,...", help="topics to read again, from their beginning by default"
    )
    parser.add_argument(
        "--intermediate-topics", metavar="TOPIC,...", help="topics of the user to skip to the end of"
    )
    parser.add_argument(
        "--internal-topics", metavar="TOPIC,...", help="delete these internal topics only, not all"
    )
    forms = parser.add_argument_group("where to begin in input topics (at most one)")
    forms.add_argument("--to-earliest", action="store_true", help="the first record (the default)")
    forms.add_argument("--to-latest", action="store_true", help="the end of the log")
    forms.add_argument("--to-offset", metavar="N", help="an offset, or the nearer end of the log")
    forms.add_argument("--shift-by", metavar="N", help="forward by this many offsets, or back")
    forms.add_argument("--to-datetime", metavar="YYYY-MM-DDThh:mm:ss.sss", help="first record at this time")
    forms.add_argument("--by-duration", metavar="PnDTnHnMnS", help="first record of this recent time")
    forms.add_argument("--from-file", metavar="CSV", help="offsets in a file: topic,partition,offset")
    parser.add_argument("--dry-run", action="store_true", help="only show what would be done")
    parser.add_argument("--force", action="store_true", help="remove members that are left of the group")


async def run(options: argparse.Namespace, out: Output) -> int:
    given = [form.replace("_", "-") for form in FORMS if getattr(options, form) not in (None, False)]
    if len(given) > 1:
        raise ToolError(f"give only one of {', '.join(f'--{form}' for form in given)}")
    if options.config_file is not None:
        if options.command_config is not None:
            raise ToolError("give only one of --command-config and --config-file")
        text = "Option --config-file has been deprecated and will be removed in a future version."
        out.line(f"{text} Use --command-config instead.")
    properties = load_properties(options.command_config or options.config_file)
    try:
        async with cluster_from(options, properties) as cluster:
            return await Reset(options, Admin(cluster), out).run()
    except (ClientError, KafkaError) as error:
        raise ToolError(reason_of(error) if isinstance(error, KafkaError) else str(error)) from error


def names(text: str | None) -> list[str]:
    return [each.strip() for each in (text or "").split(",") if each.strip()]


def listed(topics: list[str]) -> str:
    return f"[{', '.join(topics)}]"


def is_internal(topic: str, application_id: str) -> bool:
    if not topic.startswith(f"{application_id}-"):
        return False
    return topic.endswith(INTERNAL) or (
        topic.endswith("-topic") and any(each in topic for each in FOREIGN_KEY)
    )


class Reset:
    """One run of the tool."""

    def __init__(self, options: argparse.Namespace, admin: Admin, out: Output) -> None:
        self._options, self._admin, self._out = options, admin, out
        self._group: str = options.application_id

    async def run(self) -> int:
        await self._check_members()
        if self._options.dry_run:
            text = "Dry run displays the actions which will be performed when running Streams Reset Tool"
            self._out.line(f"----{text}----")
        topics = [listing.name for listing in await self._admin.list_topics()]
        status = await self._offsets(topics)
        await self._internal(topics)
        return status

    async def _check_members(self) -> None:
        found = (await self._admin.describe_groups([self._group]))[self._group]
        if isinstance(found, KafkaError):
            if found.code == ErrorCode.GROUP_ID_NOT_FOUND:
                return
            raise found
        if not found.members:
            return
        if not self._options.force:
            members = ", ".join(str(member.client_id) for member in found.members)
            raise ToolError(
                f"Consumer group '{self._group}' is still active and has following members: [{members}]."
                " Make sure to stop all running application instances before running the reset tool. You can"
                " use option '--force' to remove active members from the group."
            )
        self._out.line("Force deleting all active members in the group: " + self._group)
        if not self._options.dry_run:
            await self._remove(found)

    async def _remove(self, group: GroupDescription) -> None:
        problems = await self._admin.remove_members(group)
        failed = {member: error for member, error in problems.items() if error is not None}
        if failed:
            text = ", ".join(f"{member}: {error.message}" for member, error in failed.items() if error)
            raise ToolError(f"members of {self._group} could not be removed: {text}")

    # -- offsets -----------------------------------------------------------------------------------

    async def _offsets(self, known: list[str]) -> int:
        inputs, skipped = names(self._options.input_topics), names(self._options.intermediate_topics)
        line = self._out.line
        if skipped:
            line("WARN: `--intermediate-topics` is deprecated and will be removed in a future release")
        if not inputs and not skipped:
            line("No input or intermediate topics specified. Skipping seek.")
            return 0
        if inputs:
            line(f"Reset-offsets for input topics {listed(inputs)}")
        if skipped:
            line(f"Seek-to-end for intermediate topics {listed(skipped)}")
        missing = 0
        for kind, wanted in (("input", inputs), ("intermediate", skipped)):
            absent = [topic for topic in wanted if topic not in known]
            if absent:
                missing = 1
                line(f"Following {kind} topics are not found, skipping them")
                for topic in absent:
                    line(f"Topic: {topic}")
        inputs = [topic for topic in inputs if topic in known]
        skipped = [topic for topic in skipped if topic in known]
        if not inputs and not skipped:
            return missing
        committed = await self._admin.committed_offsets(self._group)
        offsets: Offsets = {}
        if inputs:
            line(f"Following input topics offsets will be reset to (for consumer group {self._group})")
            offsets |= await self._wanted(await self._places(inputs), committed)
            for place, offset in sorted(offsets.items()):
                line(f"Topic: {place.topic} Partition: {place.partition} Offset: {offset}")
        if skipped:
            line(
                "Following intermediate topics offsets will be reset to end"
                f" (for consumer group {self._group})"
            )
            for topic in skipped:
                line(f"Topic: {topic}")
            offsets |= await log_offsets(self._admin, await self._places(skipped), OffsetSpec.LATEST)
        if not self._options.dry_run:
            await self._commit(offsets, committed)
        line("Done.")
        return missing

    async def _places(self, topics: list[str]) -> list[TopicPartition]:
        found = await self._admin.describe_topics(topics)
        return [TopicPartition(topic.name, each.index) for topic in found for each in topic.partitions]

    async def _wanted(self, places: list[TopicPartition], committed: Committed) -> Offsets:
        options, admin = self._options, self._admin
        if options.to_offset is not None:
            offset = whole_number(options.to_offset, "to-offset")
            return await self._within(dict.fromkeys(places, offset))
        if options.shift_by is not None:
            return await self._shifted(places, committed, whole_number(options.shift_by, "shift-by"))
        if options.to_datetime is not None:
            return await at_time(admin, places, parse_datetime(options.to_datetime), self._out, EMPTY)
        if options.by_duration is not None:
            moment = int(time.time() * 1000) - parse_duration(options.by_duration)
            return await at_time(admin, places, moment, self._out, EMPTY)
        if options.from_file is not None:
            plan = read_plan(options.from_file, self._group).get(self._group, {})
            inside = {place: offset for place, offset in plan.items() if place in places}
            return await self._within(inside)
        spec = OffsetSpec.LATEST if options.to_latest else OffsetSpec.EARLIEST
        return await log_offsets(admin, places, spec)

    async def _shifted(self, places: list[TopicPartition], committed: Committed, by: int) -> Offsets:
        """From the committed offset, or from the beginning where there is none."""
        starts = await log_offsets(self._admin, places, OffsetSpec.EARLIEST)
        from_ = {each: committed[each].offset if each in committed else starts[each] for each in places}
        return await self._within({each: offset + by for each, offset in from_.items()})

    async def _within(self, offsets: Offsets) -> Offsets:
        starts = await log_offsets(self._admin, offsets, OffsetSpec.EARLIEST)
        ends = await log_offsets(self._admin, offsets, OffsetSpec.LATEST)
        found: Offsets = {}
        for place, offset in offsets.items():
            found[place] = min(max(offset, starts[place]), ends[place])
            if found[place] != offset:
                side = "lower than earliest" if offset < starts[place] else "higher than latest"
                self._out.line(f"New offset ({offset}) is {side} offset. Value will be set to {found[place]}")
        return found

    async def _commit(self, offsets: Offsets, committed: Committed) -> None:
        is_ours = any(VERSION in each.metadata for each in committed.values())
        # The empty version is that of a state in which nothing has been committed.
        texts = dict.fromkeys(offsets, json.dumps({VERSION: ""})) if is_ours else {}
        for place, error in (await self._admin.alter_offsets(self._group, offsets, texts)).items():
            if error is not None:
                raise KafkaError(error.code, f"the offset of {place} cannot be committed: {error.message}")

    # -- internal topics ---------------------------------------------------------------------------

    async def _internal(self, known: list[str]) -> None:
        inferred = sorted(topic for topic in known if is_internal(topic, self._group))
        chosen = names(self._options.internal_topics)
        if chosen:
            if not set(chosen) <= set(inferred):
                raise ToolError(f"ERROR: {NOT_INTERNAL}" if self._options.as_kafka else NOT_INTERNAL)
            self._out.line(f"Deleting specified internal topics {listed(chosen)}")
        else:
            chosen = inferred
            self._out.line(f"Deleting inferred internal topics {listed(chosen)}")
        if chosen and not self._options.dry_run:
            await self._admin.delete_topics(chosen)
        self._out.line("Done.")
