"""get-offsets: print the first or last offset of each partition, or the one at a time."""

import argparse
import re
from collections.abc import Callable

from barnabas.cli.frame.connecting import add_bootstrap, add_command_config, cluster_from
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError, ToolParser, check_bootstrap, required
from barnabas.cli.frame.topic_filter import TopicFilter
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.offsets import NO_OFFSET, OffsetSpec
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import KafkaError

PREFIX = "Error occurred: "
EXAMPLES = (
    "--topic orders",
    "--topic-partitions 'orders:0-3,payments' --time earliest",
    "--topic orders --time 1700000000000",
)
SPECS = {spec.name.lower().replace("_", "-"): spec for spec in OffsetSpec}
RULE = re.compile(r"([^:,]*)(?::(?:([0-9]*)|(?:([0-9]*)-([0-9]*))))?")
PARTITION_MAX = 2**31 - 1

Selected = Callable[[str, int], bool]


def add_arguments(parser: ToolParser) -> None:
    add_bootstrap(parser)
    add_command_config(parser)
    parser.add_argument("--topic", help="a name or a regular expression (default: all topics)")
    parser.add_argument("--partitions", metavar="0,1,2", help="partitions to show (default: all)")
    parser.add_argument(
        "--topic-partitions",
        metavar="topic1:1,topic2:0-3,topic3,topic4:5-,topic5:-3",
        help="topics by regular expression, each with a partition or a range that excludes its upper end",
    )
    parser.add_argument(
        "--time",
        default="latest",
        metavar="-1|-2|-3|-4|-5|-6|MS",
        help="latest (-1), earliest (-2), max-timestamp (-3), earliest-local (-4), latest-tiered (-5), "
        "earliest-pending-upload (-6), or the first offset at or after a time in ms (default: latest)",
    )
    parser.add_argument("--exclude-internal-topics", action="store_true", help="leave internal topics out")


async def run(options: argparse.Namespace, out: Output) -> None:
    required(options, "bootstrap-server")
    check_bootstrap(options.bootstrap_server)
    if options.topic_partitions and (options.topic or options.partitions):
        raise ToolError("--topic-partitions cannot be used with --topic or --partitions")
    spec = offset_spec(options.time)
    selected = selection(options)
    async with cluster_from(options, client_id="GetOffsetShell") as cluster:
        admin = Admin(cluster)
        topics = await admin.list_topics(internal=not options.exclude_internal_topics)
        wanted = [
            TopicPartition(topic.name, index)
            for topic in topics
            for index in cluster.topology.topics[topic.name].partitions
            if selected(topic.name, index)
        ]
        if not wanted:
            raise ToolError("Could not match any topic-partitions with the specified filters")
        found = await admin.list_offsets(dict.fromkeys(wanted, spec))
    for topic_partition in sorted(found, key=str):
        result = found[topic_partition]
        if isinstance(result, KafkaError):
            out.note(
                f"Skip getting offsets for topic-partition {topic_partition} due to error: {result.message}"
            )
        elif result.offset != NO_OFFSET:
            out.line(f"{topic_partition.topic}:{topic_partition.partition}:{result.offset}")


def offset_spec(text: str) -> int:
    if text in SPECS:
        return SPECS[text]
    try:
        return int(text)
    except ValueError:
        names = " / ".join(f"{int(spec)} or {name}" for name, spec in SPECS.items())
        raise ToolError(
            f"Malformed time argument {text}. Please use {names}, or a specified long format timestamp"
        ) from None


def selection(options: argparse.Namespace) -> Selected:
    """A function that says whether the options select a partition of a topic."""
    if options.topic_partitions:
        rules = [parse_rule(text) for text in options.topic_partitions.split(",")]
        return lambda topic, partition: any(rule(topic, partition) for rule in rules)
    topics = TopicFilter(options.topic or ".*")
    chosen = parse_partitions(options.partitions)
    return lambda topic, partition: topics.matches(topic) and (not chosen or partition in chosen)


def parse_partitions(text: str | None) -> set[int]:
    if not text:
        return set()
    try:
        return {int(part) for part in text.split(",")}
    except ValueError:
        raise ToolError(
            f"--partitions expects a comma separated list of numeric partition ids, but received: {text}"
        ) from None


def parse_rule(text: str) -> Selected:
    """Parse `topic`, `topic:3`, `topic:0-3`, `topic:5-`, `topic:-3` or `:0`."""
    match = RULE.fullmatch(text)
    if match is None:
        raise ToolError(f"Invalid rule specification: {text}")
    name, single, lower, upper = match.groups()
    topics = TopicFilter(name or ".*")
    if single:
        return lambda topic, partition: topics.matches(topic) and partition == int(single)
    first, end = int(lower or 0), int(upper or PARTITION_MAX)
    return lambda topic, partition: topics.matches(topic) and first <= partition < end
