"""Reports of the HTTP sink: a record for each record that was sent or refused, in topics of their own.

In: records and responses. Out: reports that are durable after `flush`, which comes before offsets are
committed. Keys are `topic-partition-offset`; headers name the record. Does not know: requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from barnabas.client.admin.topics import NewTopic, TopicAdmin
from barnabas.client.cluster import Cluster
from barnabas.client.core.address import parse_bootstrap
from barnabas.client.core.errors import ClientError
from barnabas.client.producer import Producer, ProducerSettings
from barnabas.connect.connectors.stores.http_client import ERROR_BYTES_MAX, HttpResponse
from barnabas.connect.data import Record
from barnabas.connect.plugins import RetriableError, SinkContext
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.security.clients.client_security import client_security

WAITING_MAX = 10_000
WRITE_S_MAX = 60.0
Report = tuple[str, bytes, bytes, tuple[tuple[str, bytes], ...]]  # topic, key, value, headers


class Reports:
    """Without brokers nothing is kept."""

    def __init__(
        self,
        properties: dict[str, str],
        result: NewTopic,
        error: NewTopic,
        *,
        as_response: bool = False,
    ) -> None:
        self._properties = properties
        self._result, self._error = result.name, error.name
        self._topics = {each.name: each for each in (result, error)}
        self._as_response = as_response
        self._waiting: list[Report] = []
        self._made: set[str] = set()

    @staticmethod
    def of(context: SinkContext) -> Reports:
        settings = context.settings
        if "reporter.bootstrap.servers" not in settings:
            return Reports({}, NewTopic(""), NewTopic(""))
        given = {name: value for name, value in settings.prefixed("reporter.").items() if value is not None}
        servers = ",".join(settings.entries("reporter.bootstrap.servers"))
        result, error = (
            NewTopic(
                settings.text(f"reporter.{kind}.topic.name").replace("${connector}", context.connector),
                settings.integer(f"reporter.{kind}.topic.partitions"),
                settings.integer(f"reporter.{kind}.topic.replication.factor"),
            )
            for kind in ("result", "error")
        )
        return Reports(
            {**given, "bootstrap.servers": servers} if servers else {},
            result,
            error,
            as_response=settings.text("report.errors.as").lower() == "http_response",
        )

    def success(self, rows: Sequence[Record], indices: Sequence[int], response: HttpResponse) -> None:
        for index in indices:
            self._add(self._result, rows[index], *said(response))

    def failure(self, row: Record, error: Exception, response: HttpResponse | None) -> None:
        if self._as_response and response is not None:
            self._add(self._error, row, *said(response))
        else:
            self._add(self._error, row, str(error).encode())

    def _add(self, topic: str, row: Record, value: bytes, *more: tuple[str, bytes]) -> None:
        if not self._properties:
            return
        named = {
            "topic": row.topic,
            "partition": row.partition,
            "offset": row.offset,
            "timestamp": row.timestamp,
        }
        headers = tuple((f"input_record_{name}", str(each).encode()) for name, each in named.items())
        key = f"{row.topic}-{row.partition}-{row.offset}".encode()
        self._waiting.append((topic, key, value, (*headers, *more)))
        if len(self._waiting) >= WAITING_MAX:
            self.flush()

    def flush(self) -> None:
        """Write what waits. An error leaves it waiting, and the offsets of its records uncommitted."""
        if not self._waiting:
            return
        try:
            asyncio.run(asyncio.wait_for(self._write(), WRITE_S_MAX))
        except (KafkaError, ClientError, TimeoutError, OSError) as error:
            raise RetriableError(
                f"reports cannot be written: {error or type(error).__name__}; see reporter.bootstrap.servers"
            ) from error
        self._waiting.clear()

    async def _write(self) -> None:
        cluster = Cluster(
            parse_bootstrap(self._properties["bootstrap.servers"]),
            client_id="barnabas-http-reports",
            security=client_security(self._properties),
        )
        async with cluster, Producer(cluster, ProducerSettings(linger_ms=5)) as producer:
            for topic in {each[0] for each in self._waiting} - self._made:
                await self._make(cluster, topic)
            sent = [
                await producer.send(topic, value, key, headers=headers)
                for topic, key, value, headers in self._waiting
            ]
            await producer.flush()
            for each in sent:
                await each

    async def _make(self, cluster: Cluster, topic: str) -> None:
        try:
            await TopicAdmin(cluster).create_topic(self._topics[topic])
        except KafkaError as error:
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise
        self._made.add(topic)


def said(response: HttpResponse) -> tuple[bytes, tuple[str, bytes]]:
    """The value and the header of a report about a response."""
    return response.body[:ERROR_BYTES_MAX], ("response_code", str(response.status).encode())
