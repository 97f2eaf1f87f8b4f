"""delete-records: delete the records of partitions before the offsets that a JSON file names."""

import argparse

from barnabas.cli.frame.connecting import add_bootstrap, add_command_config, cluster_from
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError, ToolParser, required
from barnabas.cli.frame.partition_files import duplicates, entries, field, load, partition_of
from barnabas.client.admin.admin import Admin
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import KafkaError

EXAMPLES = ("--offset-json-file offsets.json",)
FORMAT = '{"partitions": [{"topic": "orders", "partition": 0, "offset": 100}], "version": 1}'
VERSION = 1


def add_arguments(parser: ToolParser) -> None:
    add_bootstrap(parser)
    add_command_config(parser)
    parser.add_argument(
        "--offset-json-file",
        metavar="FILE",
        help=f"delete the records before the offset, for each partition (-1: all records): {FORMAT}",
    )


async def run(options: argparse.Namespace, out: Output) -> None:
    required(options, "bootstrap-server", "offset-json-file")
    before = parse_file(options.offset_json_file)
    async with cluster_from(options) as cluster:
        out.line("Executing records delete operation")
        out.flush()
        results = await Admin(cluster).delete_records(before)
    out.line("Records delete operation completed:")
    for topic_partition in before:
        result = results[topic_partition]
        shown = f"error: {result.message}" if isinstance(result, KafkaError) else f"low_watermark: {result}"
        out.line(f"partition: {topic_partition}\t{shown}")


def parse_file(path: str) -> dict[TopicPartition, int]:
    content = load(path)
    if content is None:
        raise ToolError("The input string is not a valid JSON")
    version = field({"version": VERSION, **content}, "version", int)
    if version != VERSION:
        raise ToolError(f"Not supported version field value {version}")
    if "partitions" not in content:
        raise ToolError("Missing partitions field")
    found = [
        (partition_of(each), field(each, "offset", int, "Long")) for each in entries(content["partitions"])
    ]
    twice = duplicates(topic_partition for topic_partition, _ in found)
    if twice:
        listed = ",".join(map(str, twice))
        raise ToolError(f"Offset json file contains duplicate topic partitions: {listed}")
    return dict(found)
