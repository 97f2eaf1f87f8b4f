"""Reads as a member of a consumer group: librdkafka joins, rebalances and commits, and the tool prints.

In: Kafka's settings, and the topics to read. Out: records for formatters. Only offsets of printed records are
committed: the next member reads records that librdkafka had fetched but the tool had not printed.
"""

import argparse
import asyncio
import random
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

from barnabas.cli.frame import librdkafka
from barnabas.cli.frame.output import Output
from barnabas.cli.frame.parsing import ToolError
from barnabas.cli.frame.topic_filter import compile_include
from barnabas.cli.records.record_printer import Printer
from barnabas.cli.records.unreadable import SILENCE_S, skip, unreadable_batches
from barnabas.client.cluster import Cluster
from barnabas.client.core.errors import Unreachable
from barnabas.client.core.fetching import ConsumerRecord
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import ApiKey, KafkaError
from barnabas.records.batch import TimestampType

DEFAULT_GROUPS = 100_000
AT_ONCE_MAX = 500
DISCOVERY_S = 5.0  # how often the tool looks for new topics
CREATE_MS_MAX = 2_000
ROUND_S = 1.0
POLL_S = 0.1  # short, because a call into librdkafka cannot be cancelled
NEEDS_LIBRDKAFKA = (
    "--group {group}: joining a group needs the package confluent-kafka (pip install confluent-kafka). "
    "Without --group this tool reads all partitions on its own and commits nothing"
)
NO_COORDINATOR = "--group {group}: the broker does not offer consumer groups (FindCoordinator)"

UNKNOWN_SETTING = re.compile(r'No such configuration property: "([^"]+)"')


def default_group() -> str:
    """A generated group id like that of Kafka's tool; without commits, because it serves one run."""
    return f"console-consumer-{random.randrange(DEFAULT_GROUPS)}"


def group_of(option: str | None, properties: Mapping[str, str]) -> str | None:
    """The group id in --group and in the settings; raises if they differ."""
    named = [group for group in (option, properties.get("group.id")) if group is not None]
    if len(set(named)) > 1:
        listed = ", ".join(f"'{group}'" for group in named)
        raise ToolError(
            "The group ids provided in different places (directly using '--group', via "
            f"'--consumer-property', or via '--consumer.config') do not match. Detected group ids: {listed}"
        )
    return named[0] if named else None


@dataclass(frozen=True, slots=True)
class Membership:
    group: str
    commits: bool


async def choose_membership(cluster: Cluster, group: str | None, *, by_default: bool) -> Membership | None:
    """The group to join: the named one, else a generated one if that is wanted and possible, else None."""
    offered = ApiKey.FIND_COORDINATOR in (await cluster.any_connection()).versions
    if group is None:
        possible = by_default and offered and librdkafka.is_installed()
        return Membership(default_group(), commits=False) if possible else None
    if not librdkafka.is_installed():
        raise ToolError(NEEDS_LIBRDKAFKA.format(group=group))
    if not offered:
        raise ToolError(NO_COORDINATOR.format(group=group))
    return Membership(group, commits=True)


async def read_as_member(
    membership: Membership,
    options: argparse.Namespace,
    properties: Mapping[str, str],
    cluster: Cluster,
    printer: Printer,
    out: Output,
) -> None:
    """Print records until there are enough, or until none came for the given time."""
    bootstrap = ",".join(map(str, cluster.bootstrap))
    settings = settings_of(properties, bootstrap, membership)
    if options.topic is not None:
        await create_if_missing(options.topic, cluster)
    consumer = GroupConsumer(settings, out)
    loop = asyncio.get_running_loop()
    patience_s = inf if options.timeout_ms is None or options.timeout_ms < 0 else options.timeout_ms / 1000
    last_at, looked_at = loop.time(), -inf
    last_look = last_at  # when the tool last looked for unreadable batches
    try:
        while not printer.is_done and (left_s := last_at + patience_s - loop.time()) > 0:
            if loop.time() - looked_at > DISCOVERY_S:
                looked_at = loop.time()
                await consumer.subscribe(await topics_wanted(options, cluster, out, consumer))
            records = await consumer.poll(printer.at_most(AT_ONCE_MAX), min(left_s, ROUND_S))
            if records:
                printer.show(records)
                consumer.mark_printed(records)
                last_at = last_look = loop.time()
            elif loop.time() - last_look > SILENCE_S:
                for damaged in await unreadable_batches(consumer.member, cluster):
                    if not options.skip_message_on_error:
                        raise damaged
                    printer.note(f"skipped: {damaged.message}")
                    await skip(consumer.member, damaged)
                last_look = loop.time()
    finally:
        await consumer.close()


async def create_if_missing(topic: str, cluster: Cluster) -> None:
    """Request a topic once, as Kafka's consumer does, so that the broker may create it."""
    try:
        await cluster.partitions_of(topic, auto_create=True, patience=cluster.patience(CREATE_MS_MAX))
    except (KafkaError, Unreachable):
        return  # librdkafka keeps looking for the topic, and reports an error


async def topics_wanted(
    options: argparse.Namespace, cluster: Cluster, out: Output, consumer: "GroupConsumer"
) -> list[str]:
    if options.topic is not None:
        return [options.topic]
    pattern = compile_include(options.include)
    try:
        topics = (await cluster.refresh(None)).topics
    except Unreachable:
        return consumer.subscribed
    found = [name for name, topic in topics.items() if pattern.fullmatch(name) and not topic.internal]
    if not found:
        consumer.note_once(f"a topic that matches {options.include} does not exist yet: waiting for it")
    return found


def settings_of(properties: Mapping[str, str], bootstrap: str, membership: Membership) -> dict[str, Any]:
    """librdkafka's settings for a member."""
    reset = properties.get("auto.offset.reset", "latest")
    chosen = librdkafka.settings(properties) | {
        "bootstrap.servers": bootstrap,
        "group.id": membership.group,
        "auto.offset.reset": "error" if reset == "none" else reset,
        "enable.auto.offset.store": "false",
        "log_level": "0",
    }
    chosen.setdefault("client.id", "console-consumer")
    chosen.setdefault("topic.metadata.refresh.interval.ms", str(int(DISCOVERY_S * 1000)))
    if "fetch.max.wait.ms" in properties:
        chosen["fetch.wait.max.ms"] = properties["fetch.max.wait.ms"]
    if not membership.commits:
        chosen["enable.auto.commit"] = "false"
    return chosen


class GroupConsumer:
    """A member of the group: `poll`, print the records, `mark_printed`; `close` commits and leaves."""

    def __init__(self, settings: dict[str, Any], out: Output) -> None:
        self._out = out
        self._told: set[str] = set()
        self.subscribed: list[str] = []
        self._failure: str | None = None
        self.member = self._make(settings | {"error_cb": self._on_error})

    def _make(self, settings: dict[str, Any]) -> Any:
        """Create the consumer without the settings that librdkafka does not know."""
        while True:
            try:
                return librdkafka.make("Consumer", settings)
            except ToolError as error:
                unknown = UNKNOWN_SETTING.search(str(error))
                if unknown is None or unknown[1] not in settings:
                    raise
                self.note_once(f"the consumer setting {unknown[1]} has no effect in this tool")
                settings = {name: value for name, value in settings.items() if name != unknown[1]}

    def note_once(self, text: str) -> None:
        """Print a note, but each text only once."""
        if text not in self._told:
            self._told.add(text)
            self._out.note(text)

    async def subscribe(self, topics: Iterable[str]) -> None:
        wanted = sorted(set(topics))
        if wanted and wanted != self.subscribed:
            self.subscribed = wanted
            await asyncio.to_thread(self.member.subscribe, wanted)

    async def poll(self, count: int, timeout_s: float) -> list[ConsumerRecord]:
        """At most `count` records; none if the time is up."""
        at_once = max(1, min(count, AT_ONCE_MAX))
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        while True:
            left_s = deadline - loop.time()
            if not self.subscribed:
                await asyncio.sleep(max(0.0, min(POLL_S, left_s)))
                messages = []
            else:
                messages = await asyncio.to_thread(self._consume, at_once, max(0.0, min(POLL_S, left_s)))
            records = [record_of(message) for message in messages if self._is_record(message)]
            if self._failure is not None:
                raise ToolError(self._failure)
            if records or loop.time() >= deadline:
                return records

    def _consume(self, count: int, timeout_s: float) -> list[Any]:
        """Wait for one message, then add those that are available without waiting."""
        first = self.member.poll(timeout_s)
        if first is None:
            return []
        return [first, *(self.member.consume(count - 1, 0) if count > 1 else ())]

    def mark_printed(self, records: Iterable[ConsumerRecord]) -> None:
        """Let librdkafka commit the offsets of these records."""
        from confluent_kafka import KafkaException
        from confluent_kafka import TopicPartition as Place

        last = {TopicPartition(record.topic, record.partition): record for record in records}
        for topic_partition, record in last.items():
            place = Place(*topic_partition, record.offset + 1, leader_epoch=record.leader_epoch)
            try:
                self.member.store_offsets(offsets=[place])
            except KafkaException:
                continue  # another member has the partition now, and reads the records again

    async def close(self) -> None:
        """Commit the offsets of printed records and leave the group."""
        await asyncio.to_thread(self.member.close)

    def _is_record(self, message: Any) -> bool:
        if message.error() is None:
            return True
        self._on_error(message.error())
        return False

    def _on_error(self, error: Any) -> None:
        from confluent_kafka import KafkaError as Code

        if error.fatal() or error.code() in (
            Code.GROUP_AUTHORIZATION_FAILED,
            Code.TOPIC_AUTHORIZATION_FAILED,
            Code.INVALID_GROUP_ID,
            Code.INCONSISTENT_GROUP_PROTOCOL,
            Code._AUTO_OFFSET_RESET,
        ):
            self._failure = error.str()
            return
        text = error.str()
        if error.code() == Code.UNKNOWN_TOPIC_OR_PART:
            text = f"topic {', '.join(self.subscribed)} does not exist yet: waiting for it"
        self.note_once(text)


def record_of(message: Any) -> ConsumerRecord:
    kind, timestamp = message.timestamp()
    epoch = message.leader_epoch()
    return ConsumerRecord(
        message.topic(),
        message.partition(),
        message.offset(),
        -1 if epoch is None else epoch,
        timestamp,
        TimestampType.LOG_APPEND_TIME if kind == 2 else TimestampType.CREATE_TIME,
        message.key(),
        message.value(),
        tuple(message.headers() or ()),
    )
