"""The audit topic: decisions as JSON records, for `barnabas.audit.topic`.

In: decisions that became lines of the log. Out: records, produced in the background as a client of the
brokers. The queue is bounded: decisions that find it full are dropped and counted, and no request waits.
Decisions about the audit topic itself are not recorded, since each record would cause the next one.
Does not know: which decisions are worth a line.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from typing import TYPE_CHECKING, Any

from barnabas.broker.access.own_client import own_client
from barnabas.broker.access.retried_task import RetriedTask
from barnabas.client.producer import Producer, ProducerSettings
from barnabas.security.acls.vocabulary import Operation, ResourceType, word

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

log = logging.getLogger("barnabas.audit")
QUEUE_MAX = 10_000
AT_ONCE = 500
LINGER_S = 0.2


class AuditTopic:
    def __init__(self, broker: Broker, topic: str) -> None:
        self._broker = broker
        self._topic = topic
        self._queue: deque[dict[str, Any]] = deque()
        self._wake = asyncio.Event()
        self._task = RetriedTask(self._attempt, self._warn)
        self._refused: Exception | None = None
        self.dropped = 0  # since the last warning

    def start(self) -> None:
        self._task.start()

    async def close(self) -> None:
        await self._task.close()

    def put(
        self,
        is_allowed: bool,
        principal: str,
        host: str,
        operation: Operation,
        resource: ResourceType,
        name: str,
        request: str,
        reason: str,
    ) -> None:
        """Queue a decision. Never waits."""
        if name == self._topic:
            return
        if len(self._queue) >= QUEUE_MAX:
            self.dropped += 1
            return
        self._queue.append(
            {
                "time_ms": self._broker.clock.now_ms(),
                "node": self._broker.node_id,
                "principal": principal,
                "host": host,
                "operation": operation.name,
                "resource_type": word(resource),
                "resource": name,
                "request": request,
                "decision": "allowed" if is_allowed else "denied",
                "rule": reason,
            }
        )
        self._wake.set()

    async def _attempt(self) -> None:
        await self._wake.wait()
        await self._write()

    def _warn(self, error: Exception, retry_s: float) -> None:
        log.warning(
            "decisions cannot be written to the topic %s: %s. The topic must exist, and this node's own "
            "principal needs Write and Describe on it. Trying again in %.0f s",
            self._topic,
            error,
            retry_s,
        )

    async def _write(self) -> None:
        """Write what is queued, and what comes, until an error."""
        settings = ProducerSettings(acks=-1, linger_ms=50)
        async with (
            own_client(self._broker, "audit") as cluster,
            Producer(cluster, settings, on_failure=self._failed) as producer,
        ):
            while True:
                await self._wake.wait()
                await asyncio.sleep(LINGER_S)  # so that records travel together
                for _ in range(min(AT_ONCE, len(self._queue))):
                    record = self._queue[0]
                    await producer.send(
                        self._topic, json.dumps(record).encode(), record["principal"].encode()
                    )
                    self._queue.popleft()
                await producer.flush()
                if self._refused is not None:
                    error, self._refused = self._refused, None
                    raise error
                if self.dropped:
                    log.warning("%d decisions were not written to %s: too many", self.dropped, self._topic)
                    self.dropped = 0
                if not self._queue:
                    self._wake.clear()

    def _failed(self, batch: object, error: Exception) -> None:
        self._refused = error
