"""verifiable-share-consumer: read a topic in a share group and print events for system tests.

In: options. Out: an event for records that were received and for offsets that were acknowledged, and for the
beginning and the end. Without --acknowledgement-mode each poll acknowledges the records of the poll before.
"""

import argparse
import asyncio
from collections.abc import Sequence
from typing import Any

from barnabas.cli.frame.client_settings import share_limits
from barnabas.cli.frame.connecting import add_bootstrap, add_command_config, cluster_from, load_properties
from barnabas.cli.frame.ending import end_by_signal
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolParser, UsageError
from barnabas.cli.verifiable.events import Events, text
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.configs import ConfigResource, ResourceType
from barnabas.client.cluster import Cluster
from barnabas.client.consumers.share_consumer import ShareConsumer, ShareConsumerSettings
from barnabas.client.consumers.share_leader import Failure
from barnabas.client.core.acknowledgements import AckBatch
from barnabas.client.core.share_fetching import ShareRecord
from barnabas.client.core.topology import TopicPartition

EXAMPLES = (
    "--topic orders --group-id workers --max-messages 100",
    "--topic orders --group-id workers --acknowledgement-mode sync --offset-reset-strategy earliest",
)
MODES = ("auto", "async", "sync")
POLL_MS = 5_000


def add_arguments(parser: ToolParser) -> None:
    add_bootstrap(parser)
    add_command_config(parser)
    parser.add_argument("--topic", help="the topic to read (required)")
    parser.add_argument("--group-id", metavar="ID", help="the share group to join (required)")
    parser.add_argument(
        "--max-messages", type=int, default=-1, metavar="N", help="stop after so many (default: never)"
    )
    parser.add_argument("--verbose", action="store_true", help="print each record")
    parser.add_argument("--acknowledgement-mode", default="auto", metavar="MODE", help="auto, sync or async")
    parser.add_argument(
        "--offset-reset-strategy",
        default="",
        metavar="STRATEGY",
        help="set share.auto.offset.reset of the group first: earliest or latest",
    )


async def run(options: argparse.Namespace, out: Output) -> None:
    for name in ("bootstrap-server", "topic", "group-id"):
        if getattr(options, name.replace("-", "_")) is None:
            raise UsageError(f"argument --{name} is required")
    if options.acknowledgement_mode.lower() not in MODES:
        given = options.acknowledgement_mode
        raise UsageError(f"--acknowledgement-mode {given}: give one of {', '.join(MODES)}")
    properties = load_properties(options.command_config)
    settings = ShareConsumerSettings(options.group_id, limits=share_limits(properties))
    async with cluster_from(options, properties, client_id="verifiable-share-consumer") as cluster:
        await Verifiable(options, out, cluster, settings).run()


class Verifiable:
    def __init__(
        self, options: argparse.Namespace, out: Output, cluster: Cluster, settings: ShareConsumerSettings
    ) -> None:
        self._options = options
        self._events = Events(out)
        self._cluster = cluster
        self._consumer = ShareConsumer(cluster, settings, self._on_acknowledged)
        self._acknowledged = 0

    async def run(self) -> None:
        self._events.tell("startup_complete")
        try:
            with end_by_signal():
                await self._set_strategy()
                await self._consumer.subscribe([self._options.topic])
                await self._read()
        finally:
            await self._consumer.close()
            self._events.tell("shutdown_complete")

    async def _set_strategy(self) -> None:
        strategy = self._options.offset_reset_strategy.lower()
        if strategy:
            group = ConfigResource(ResourceType.GROUP, self._options.group_id)
            await Admin(self._cluster).alter_configs(group, {"share.auto.offset.reset": strategy})
            self._events.tell("offset_reset_strategy_set", offsetResetStrategy=strategy)

    async def _read(self) -> None:
        mode = self._options.acknowledgement_mode.lower()
        pending: set[asyncio.Task[Any]] = set()
        while not 0 <= self._options.max_messages <= self._acknowledged:
            records = await self._consumer.poll(POLL_MS)
            if not records:
                continue
            self._received(records)
            if mode == "sync":
                await self._consumer.commit()
            elif mode == "async":
                task = asyncio.create_task(self._consumer.commit())
                pending.add(task)
                task.add_done_callback(pending.discard)

    def _received(self, records: list[ShareRecord]) -> None:
        by_partition: dict[TopicPartition, list[ShareRecord]] = {}
        for record in records:
            by_partition.setdefault(TopicPartition(record.topic, record.partition), []).append(record)
        if self._options.verbose:
            for record in records:
                self._events.tell(
                    "record_data",
                    key=text(record.key),
                    value=text(record.value),
                    topic=record.topic,
                    partition=record.partition,
                    offset=record.offset,
                )
        partitions = [
            summary(topic_partition, sorted(record.offset for record in some))
            for topic_partition, some in by_partition.items()
        ]
        self._events.tell("records_consumed", count=len(records), partitions=partitions)

    def _on_acknowledged(
        self, topic_partition: TopicPartition, batches: Sequence[AckBatch], failure: Failure | None
    ) -> None:
        offsets = [offset for batch in batches for offset, kind in batch.typed() if kind]
        fields: dict[str, Any] = {"count": len(offsets), "partitions": [summary(topic_partition, offsets)]}
        if failure is not None:
            fields["error"] = str(failure)
        else:
            self._acknowledged += len(offsets)
        self._events.tell("offsets_acknowledged", **fields, success=failure is None)


def summary(topic_partition: TopicPartition, offsets: list[int]) -> dict[str, Any]:
    return {
        "topic": topic_partition.topic,
        "partition": topic_partition.partition,
        "count": len(offsets),
        "offsets": offsets,
    }
