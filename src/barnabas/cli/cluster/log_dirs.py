"""log-dirs: print the partitions in each log dir of each broker, with their sizes, as JSON."""

import argparse
from typing import Any

from barnabas.cli.frame.connecting import add_bootstrap, add_command_config, cluster_from
from barnabas.cli.frame.message_json import compact
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError, ToolParser, required
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.cluster import LogDir
from barnabas.protocol import ErrorCode

EXAMPLES = ("--describe", "--describe --topic-list orders,payments --broker-list 1,2")
ERROR_CLASSES = {ErrorCode.KAFKA_STORAGE_ERROR: "KafkaStorageException"}


def add_arguments(parser: ToolParser) -> None:
    parser.old_spellings.pop("--broker-list")  # in this tool --broker-list is a list of broker ids
    add_bootstrap(parser)
    add_command_config(parser)
    parser.add_argument("--describe", action="store_const", const=True, help="show the log dirs (required)")
    parser.add_argument("--topic-list", default="", metavar="T1,T2", help="topics to show (default: all)")
    parser.add_argument("--broker-list", default="", metavar="0,1,2", help="brokers to ask (default: all)")


async def run(options: argparse.Namespace, out: Output) -> None:
    required(options, "bootstrap-server", "describe")
    topics = {name for name in options.topic_list.split(",") if name}
    wanted = broker_ids(options.broker_list)
    async with cluster_from(options, client_id="log-dirs-tool") as cluster:
        admin = Admin(cluster)
        nodes = {node.id: node for node in (await admin.describe_cluster()).nodes}
        unknown = [each for each in wanted if each not in nodes]
        if unknown:
            raise ToolError(
                f"ERROR: The given brokers do not exist from --broker-list: {listed(unknown)}. "
                f"Current existent brokers: {listed(nodes)}"
            )
        out.line("Querying brokers for log directories information")
        out.flush()
        chosen = wanted or list(nodes)
        described = await admin.describe_log_dirs([nodes[each] for each in chosen])
    out.line(f"Received log directory information from brokers {listed(chosen)}")
    brokers = [
        {"broker": broker, "logDirs": [directory_json(each, topics) for each in dirs]}
        for broker, dirs in described.items()
    ]
    out.line(compact({"brokers": brokers, "version": 1}))


def broker_ids(text: str) -> list[int]:
    try:
        return list(dict.fromkeys(int(each) for each in text.split(",") if each))
    except ValueError:
        wrong = next(each for each in text.split(",") if not each.lstrip("+-").isdigit())
        raise ToolError(f'For input string: "{wrong}" (--broker-list takes ids of brokers)') from None


def listed(ids: Any) -> str:
    return ",".join(map(str, ids))


def directory_json(directory: LogDir, topics: set[str]) -> dict[str, Any]:
    error = None
    if directory.error_code:
        code = ErrorCode(directory.error_code)
        error = f"org.apache.kafka.common.errors.{ERROR_CLASSES.get(code, code.name)}"
    return {
        "partitions": [
            {
                "partition": str(partition),
                "size": replica.size_bytes,
                "offsetLag": replica.offset_lag,
                "isFuture": replica.is_future,
            }
            for partition, replica in directory.replicas.items()
            if not topics or partition.topic in topics
        ],
        "error": error,
        "logDir": directory.path,
    }
