"""The dead letter queue of a sink: records that failed, as they were, with headers that say why.

In: raw records and errors. Out: records in the topic, durable after `flush`, which comes before offsets are
committed. No more than 1,000 wait in memory. Does not know: why records failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Event

import pyarrow as pa

from barnabas.client.admin.topics import NewTopic, TopicAdmin
from barnabas.client.blocking import run
from barnabas.client.core.errors import NoTopic
from barnabas.connect.plugins import ConnectError
from barnabas.connect.tasks.chain import HEADER_TYPE
from barnabas.connect.tasks.errors import RawRecord, Stage, context_headers
from barnabas.connect.tasks.producing import TaskProducer
from barnabas.connect.tasks.progress import Progress
from barnabas.connect.tasks.topic_creation import make_topic

NAME = "errors.deadletterqueue.topic.name"
REPLICATION = "errors.deadletterqueue.topic.replication.factor"
WAITING_MAX = 1000  # records
WAITING_BYTES_MAX = 4 * 1024 * 1024
CONTEXT = "errors.deadletterqueue.context.headers.enable"


Headers = tuple[tuple[str, bytes | None], ...]


def size_of(record: RawRecord, headers: Headers) -> int:
    return (
        len(record.key or b"")
        + len(record.value or b"")
        + sum(len(name) + len(value or b"") for name, value in headers)
    )


class DeadLetterQueue:
    def __init__(
        self, config: Mapping[str, str], properties: Mapping[str, str], progress: Progress, stopping: Event
    ) -> None:
        self.topic = config[NAME].strip()
        self._has_context = config.get(CONTEXT, "false").strip().lower() == "true"
        self._progress = progress
        replication = int(config.get(REPLICATION, "3"))

        def prepare(admin: TopicAdmin, topic: str) -> None:
            async def is_there() -> bool:
                try:
                    return bool(await admin.cluster.topics([topic]))
                except NoTopic:
                    return False

            if not run(admin.cluster.retrying(is_there)):
                make_topic(admin, NewTopic(topic, 1, replication))

        self._producer = TaskProducer(properties, stopping, prepare=prepare)
        self._waiting: list[tuple[RawRecord, Headers]] = []
        self._waiting_bytes = 0
        self._is_started = False

    def start(self) -> None:
        """Make the topic if it is missing, so that a queue that cannot work fails the task at its start."""
        self._begin()
        self._producer.ensure(self.topic)

    def _begin(self) -> None:
        if not self._is_started:
            self._producer.start()
            self._is_started = True

    def report(self, record: RawRecord, stage: Stage, where: str, error: BaseException) -> None:
        headers = record.headers
        if self._has_context:
            progress = self._progress
            headers += context_headers(record, stage, where, error, progress.connector, progress.task)
        self._waiting.append((record, headers))
        self._waiting_bytes += size_of(record, headers)
        self._progress.dead_letters += 1
        if len(self._waiting) >= WAITING_MAX or self._waiting_bytes >= WAITING_BYTES_MAX:
            self.flush()

    def flush(self) -> None:
        """Write what waits; errors end the task before the offsets of these records are committed."""
        if self._producer.has_failed:
            raise ConnectError(f"dead letters cannot be written to {self.topic}")
        if not self._waiting:
            return
        try:
            self._begin()
            self._producer.write([self._table()])
            self._producer.flush()
        except BaseException:
            self._progress.dead_letter_failures += len(self._waiting)
            raise
        self._waiting.clear()
        self._waiting_bytes = 0

    def _table(self) -> pa.Table:
        records = [record for record, _ in self._waiting]
        headers = [[{"key": name, "value": value} for name, value in each] for _, each in self._waiting]
        return pa.table(
            {
                "key": pa.array([each.key for each in records], pa.binary()),
                "value": pa.array([each.value for each in records], pa.binary()),
                "timestamp": pa.array([each.timestamp_ms for each in records], pa.timestamp("ms")),
                "headers": pa.array(headers, HEADER_TYPE),
                "topic": pa.array([self.topic] * len(records), pa.string()),
            }
        )

    def close(self) -> None:
        self._producer.close()
