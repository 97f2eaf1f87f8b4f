"""Topics that clients create by asking for their metadata (`auto.create.topics.enable`).

In: names that nobody has. Out: CreateTopics requests to the controller, beside the requests that asked: as in
Apache Kafka the client is told UNKNOWN_TOPIC_OR_PARTITION and finds the topic a moment later. A name is asked
for once at a time, however many clients want it.
Does not know: responses, quotas.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

log = logging.getLogger("barnabas.broker")

ALREADY_THERE = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
NAMES_MAX = 10_000  # being created at a time; clients ask again for others
LOGGED_MAX = 10  # refused names of one request that the log shows


class AutoCreation:
    __slots__ = ("_broker", "_names", "_tasks")

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._names: set[str] = set()  # being created
        self._tasks: set[asyncio.Task[None]] = set()

    def missing(self, names: Sequence[str]) -> list[str]:
        """Those that nobody has asked the controller for yet, as many as may be asked for at a time."""
        free = NAMES_MAX - len(self._names)
        return [name for name in dict.fromkeys(names) if name not in self._names][: max(free, 0)]

    def begin(self, names: Sequence[str]) -> None:
        """Ask the controller for these topics, with the broker's defaults."""
        self._names.update(names)
        task = self._broker.loop.create_task(self._create(names))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _create(self, names: Sequence[str]) -> None:
        topic = CreateTopicsRequest.CreatableTopic
        request = CreateTopicsRequest(
            topics=[topic(name=name, num_partitions=-1, replication_factor=-1) for name in names],
            timeout_ms=self._broker.settings["request.timeout.ms"],
        )
        try:
            response = await self._broker.controller.handle(request)
        except Exception as error:
            log.warning("topics that clients asked for were not created: %s", error)
        else:
            assert isinstance(response, CreateTopicsResponse)
            refused = [each for each in response.topics if each.error_code not in ALREADY_THERE]
            for each in refused[:LOGGED_MAX]:
                code = ErrorCode(each.error_code).name
                log.warning("topic %s was not created: %s %s", each.name, code, each.error_message)
        finally:
            self._names.difference_update(names)

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
