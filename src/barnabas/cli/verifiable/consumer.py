"""verifiable-consumer: consume a topic in a group and print events for system tests.

In: options of kafka-verifiable-consumer. Out: events for records, commits, assignments, the beginning
and the end. librdkafka (the package confluent-kafka) is the member of the group.
"""

import argparse
import asyncio
from typing import Any

from barnabas.cli.frame import librdkafka
from barnabas.cli.frame.connecting import add_bootstrap, load_properties
from barnabas.cli.frame.ending import end_by_signal
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError, ToolParser, UsageError
from barnabas.cli.verifiable.events import Events, text

EXAMPLES = (
    "--topic orders --group-id readers --max-messages 100",
    "--topic orders --group-id readers --group-protocol consumer --verbose",
)
RANGE = "org.apache.kafka.clients.consumer.RangeAssignor"
ASSIGNORS = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "CooperativeStickyAssignor": "cooperative-sticky",
}
POLL_S = 0.1
AT_ONCE_MAX = 500


def add_arguments(parser: ToolParser) -> None:
    add_bootstrap(parser)
    parser.add_argument("--topic", help="the topic to read (required)")
    parser.add_argument("--group-id", metavar="ID", help="the group to join (required)")
    parser.add_argument("--group-protocol", default="classic", metavar="P", help="classic or consumer")
    parser.add_argument("--group-remote-assignor", metavar="NAME", help="with --group-protocol consumer")
    parser.add_argument("--group-instance-id", metavar="ID", help="join as a static member")
    parser.add_argument(
        "--max-messages", type=int, default=-1, metavar="N", help="stop after so many (default: never)"
    )
    parser.add_argument("--session-timeout", type=int, metavar="MS", help="session.timeout.ms")
    parser.add_argument("--verbose", action="store_true", help="print each record")
    parser.add_argument("--enable-autocommit", action="store_true", help="commit now and then")
    parser.add_argument("--reset-policy", default="earliest", help="earliest, latest or none")
    parser.add_argument("--assignment-strategy", default=RANGE, metavar="CLASS", help=f"({RANGE})")
    parser.add_argument("--consumer.config", dest="consumer_config", metavar="FILE", help=argparse.SUPPRESS)
    parser.add_argument("--command-config", metavar="FILE", help="a file of consumer settings")


async def run(options: argparse.Namespace, out: Output) -> None:
    for name in ("bootstrap-server", "topic", "group-id"):
        if getattr(options, name.replace("-", "_")) is None:
            raise UsageError(f"argument --{name} is required")
    if options.consumer_config and options.command_config:
        raise UsageError("Options --consumer.config and --command-config are mutually exclusive.")
    if options.consumer_config:
        out.note(
            "Option --consumer.config has been deprecated and will be removed in a future version. "
            "Use --command-config instead."
        )
    if not librdkafka.is_installed():
        raise ToolError("this tool needs the package confluent-kafka: pip install confluent-kafka")
    settings = consumer_settings(options, load_properties(options.command_config or options.consumer_config))
    await VerifiableConsumer(options, out, librdkafka.make("Consumer", settings)).run()


def consumer_settings(options: argparse.Namespace, properties: dict[str, str]) -> dict[str, Any]:
    reset = options.reset_policy
    chosen = librdkafka.settings(properties) | {
        "bootstrap.servers": options.bootstrap_server,
        "group.id": options.group_id,
        "group.protocol": options.group_protocol.lower(),
        "enable.auto.commit": options.enable_autocommit,
        "auto.offset.reset": "error" if reset == "none" else reset,
        "log_level": "0",
    }
    if options.group_protocol.lower() == "consumer":
        if options.group_remote_assignor:
            chosen["group.remote.assignor"] = options.group_remote_assignor
    else:
        names = [name.strip().rpartition(".")[2] for name in options.assignment_strategy.split(",")]
        chosen["partition.assignment.strategy"] = ",".join(ASSIGNORS.get(name, name) for name in names)
    if options.session_timeout is not None:
        chosen["session.timeout.ms"] = options.session_timeout
    if options.group_instance_id is not None:
        chosen["group.instance.id"] = options.group_instance_id
    return chosen


class VerifiableConsumer:
    def __init__(self, options: argparse.Namespace, out: Output, consumer: Any) -> None:
        self._options = options
        self._events = Events(out)
        self._consumer = consumer
        self._consumed = 0

    async def run(self) -> None:
        self._events.tell("startup_complete")
        try:
            with end_by_signal():
                self._consumer.subscribe(
                    [self._options.topic], on_assign=self._assigned, on_revoke=self._revoked
                )
                await self._read()
        finally:
            await asyncio.to_thread(self._consumer.close)
            self._events.tell("shutdown_complete")

    async def _read(self) -> None:
        limit = self._options.max_messages
        while not 0 <= limit <= self._consumed:
            messages = await asyncio.to_thread(self._consumer.consume, AT_ONCE_MAX, POLL_S)
            found = [message for message in messages if message.error() is None]
            for message in messages:
                if message.error() is not None and message.error().fatal():
                    raise ToolError(message.error().str())
            if found:
                self._received(found if limit < 0 else found[: limit - self._consumed], len(found))

    def _received(self, messages: list[Any], count: int) -> None:
        by_partition: dict[tuple[str, int], list[Any]] = {}
        for message in messages:
            by_partition.setdefault((message.topic(), message.partition()), []).append(message)
            if self._options.verbose:
                self._events.tell(
                    "record_data",
                    key=text(message.key()),
                    value=text(message.value()),
                    topic=message.topic(),
                    partition=message.partition(),
                    offset=message.offset(),
                )
        partitions = [
            {
                "topic": topic,
                "partition": partition,
                "count": len(some),
                "minOffset": some[0].offset(),
                "maxOffset": some[-1].offset(),
            }
            for (topic, partition), some in by_partition.items()
        ]
        self._consumed += len(messages)
        self._events.tell("records_consumed", count=count, partitions=partitions)
        if not self._options.enable_autocommit:
            ends = {topic_partition: some[-1].offset() + 1 for topic_partition, some in by_partition.items()}
            self._commit(ends)

    def _commit(self, ends: dict[tuple[str, int], int]) -> None:
        from confluent_kafka import KafkaException, TopicPartition

        fields: dict[str, Any] = {
            "offsets": [
                {"topic": topic, "partition": partition, "offset": end}
                for (topic, partition), end in ends.items()
            ]
        }
        try:
            places = [TopicPartition(*topic_partition, end) for topic_partition, end in ends.items()]
            self._consumer.commit(offsets=places, asynchronous=False)
            is_committed = True
        except KafkaException as error:
            fields["error"] = error.args[0].str()
            is_committed = False
        self._events.tell("offsets_committed", **fields, success=is_committed)

    def _assigned(self, _: Any, partitions: list[Any]) -> None:
        self._events.tell("partitions_assigned", partitions=list(map(place, partitions)))

    def _revoked(self, _: Any, partitions: list[Any]) -> None:
        self._events.tell("partitions_revoked", partitions=list(map(place, partitions)))


def place(partition: Any) -> dict[str, Any]:
    return {"topic": partition.topic, "partition": partition.partition}
