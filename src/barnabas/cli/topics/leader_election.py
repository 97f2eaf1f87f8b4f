"""leader-election: elect the preferred leaders of partitions, or any leader for partitions without one."""

import argparse

from barnabas.cli.frame.connecting import add_bootstrap, add_command_config, cluster_from, load_properties
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError, ToolParser
from barnabas.cli.frame.partition_files import duplicates, entries, load, partition_of
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.elections import ElectionType
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import ErrorCode

EXAMPLES = (
    "--election-type preferred --all-topic-partitions",
    "--election-type unclean --topic orders --partition 0",
)
FORMAT = '{"partitions": [{"topic": "orders", "partition": 0}]}'
OLD_CONFIG = (
    "Option --admin.config has been deprecated and will be removed in a future version. "
    "Use --command-config instead."
)
TIMEOUTS_MS = {"default.api.timeout.ms": "30000", "request.timeout.ms": "15000"}


def add_arguments(parser: ToolParser) -> None:
    add_bootstrap(parser)
    add_command_config(parser)
    parser.add_argument("--admin.config", dest="admin_config", metavar="FILE", help=argparse.SUPPRESS)
    parser.add_argument(
        "--election-type",
        type=election_type,
        metavar="preferred|unclean",
        help="elect the preferred replica if another one leads, or any replica if none leads (required)",
    )
    which = parser.add_argument_group("which partitions (exactly one)")
    which.add_argument("--topic", help="a topic, with --partition")
    which.add_argument("--all-topic-partitions", action="store_true", help="all that need an election")
    which.add_argument("--path-to-json-file", metavar="FILE", help=f"as in {FORMAT}")
    parser.add_argument("--partition", type=int, metavar="N", help="a partition of --topic")


def election_type(text: str) -> ElectionType:
    try:
        return ElectionType[text.upper()]
    except KeyError:
        raise ValueError(text) from None


async def run(options: argparse.Namespace, out: Output) -> int:
    check_options(options)
    partitions = chosen(options)
    if options.admin_config:
        out.note(OLD_CONFIG)
    properties = TIMEOUTS_MS | load_properties(options.command_config or options.admin_config)
    kind = options.election_type
    async with cluster_from(options, properties) as cluster:
        results = await Admin(cluster).elect_leaders(kind, partitions)
    done = [topic_partition for topic_partition, error in results.items() if error is None]
    needless = [
        topic_partition
        for topic_partition, error in results.items()
        if error and error.code == ErrorCode.ELECTION_NOT_NEEDED
    ]
    if done:
        listed = ", ".join(map(str, done))
        out.line(f"Successfully completed leader election ({kind.name}) for partitions {listed}")
    if needless:
        out.line(f"Valid replica already elected for partitions {', '.join(map(str, needless))}")
    failed = {
        topic_partition: error
        for topic_partition, error in results.items()
        if error and topic_partition not in needless
    }
    for topic_partition, error in failed.items():
        out.line(
            f"Error completing leader election ({kind.name}) for partition: {topic_partition}:"
            f" {error.message}"
        )
    if failed:
        raise ToolError(f"{len(failed)} replica(s) could not be elected")
    return 0


def check_options(options: argparse.Namespace) -> None:
    missing = [
        name
        for name in ("bootstrap-server", "election-type")
        if getattr(options, name.replace("-", "_")) is None
    ]
    if missing:
        raise ToolError(f"Missing required option(s): {', '.join(missing)}")
    given = [options.topic is not None, options.all_topic_partitions, options.path_to_json_file is not None]
    if sum(given) != 1:
        raise ToolError(
            "One and only one of the following options is required: topic, all-topic-partitions, "
            "path-to-json-file"
        )
    if options.topic is not None and options.partition is None:
        raise ToolError("Missing required option(s): partition")
    if options.topic is None and options.partition is not None:
        raise ToolError("Option partition is only allowed if topic is used")


def chosen(options: argparse.Namespace) -> list[TopicPartition] | None:
    if options.all_topic_partitions:
        return None
    if options.topic is not None:
        return [TopicPartition(options.topic, options.partition)]
    content = load(options.path_to_json_file)
    if content is None:
        raise ToolError("Replica election data is empty")
    if "partitions" not in content:
        raise ToolError('Replica election data is missing "partitions" field')
    partitions = [partition_of(each) for each in entries(content["partitions"])]
    twice = duplicates(partitions)
    if twice:
        listed = ", ".join(map(str, twice))
        raise ToolError(f"Replica election data contains duplicate partitions: [{listed}]")
    return partitions
