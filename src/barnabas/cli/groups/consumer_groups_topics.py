"""Parses the partitions in `--topic orders --topic payments:0,2`.

In: the values of --topic. Out: partitions, and the topics that do not exist. A malformed value raises with
Kafka's message.
"""

from collections.abc import Iterable

from barnabas.cli.frame.parsing import UsageError
from barnabas.client.admin.admin import Admin
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import KafkaError


async def partitions_named(
    arguments: Iterable[str], admin: Admin
) -> tuple[list[TopicPartition], list[tuple[str, KafkaError]]]:
    found: list[TopicPartition] = []
    missing: list[tuple[str, KafkaError]] = []
    for argument in arguments:
        if ":" in argument:
            found += parse_partitions(argument)
            continue
        try:
            [topic] = await admin.describe_topics([argument])
        except KafkaError as error:
            missing.append((argument, KafkaError(error.code)))
        else:
            found += [TopicPartition(topic.name, each.index) for each in topic.partitions]
    return list(dict.fromkeys(found)), missing


def parse_partitions(argument: str) -> list[TopicPartition]:
    """Parse `orders:0,2`."""
    parts = argument.split(":")
    if len(parts) != 2 or not parts[1]:
        raise UsageError(f"Invalid topic arg '{argument}', expected topic name and partitions")
    partitions = []
    for part in parts[1].split(","):
        try:
            partitions.append(TopicPartition(parts[0], int(part)))
        except ValueError:
            raise UsageError(f"Invalid partition '{part}' specified in topic arg '{argument}''") from None
    return partitions
