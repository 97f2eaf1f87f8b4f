"""Offsets of partitions to reset groups to: the ends of logs, or the first record at a time.

In: partitions. Out: an offset for each; a partition that does not exist is an error with Kafka's message.
Does not know: groups.
"""

from collections.abc import Iterable

from barnabas.cli.frame.output import Output
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.offsets import NO_OFFSET, OffsetSpec
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import ErrorCode, KafkaError

Offsets = dict[TopicPartition, int]


async def log_offsets(admin: Admin, partitions: Iterable[TopicPartition], spec: int) -> Offsets:
    """Look up offsets with ListOffsets; -1 means that there is no such record."""
    found: Offsets = {}
    absent: list[TopicPartition] = []
    for where, result in (await admin.list_offsets(dict.fromkeys(partitions, spec))).items():
        if not isinstance(result, KafkaError):
            found[where] = result.offset
        elif result.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            absent.append(where)
        else:
            raise KafkaError(result.code, f"{where}: {result.message}")
    if absent:
        names = ",".join(map(str, sorted(absent)))
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f'The partitions "{names}" do not exist')
    return found


EMPTY = "\nWarn: Partition {0.partition} from topic {0.topic} is empty. Falling back to latest known offset."


async def at_time(
    admin: Admin,
    partitions: Iterable[TopicPartition],
    timestamp_ms: int,
    out: Output,
    warning: str = EMPTY,
) -> Offsets:
    """The first record at or after a time, else the end of the log with a warning."""
    found = await log_offsets(admin, partitions, max(timestamp_ms, 0))
    younger = [topic_partition for topic_partition, offset in found.items() if offset == NO_OFFSET]
    for topic_partition in sorted(younger):
        out.line(warning.format(topic_partition))
    return found | await log_offsets(admin, younger, OffsetSpec.LATEST)
