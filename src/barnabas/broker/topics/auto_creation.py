"""Topics that clients create by requesting their metadata (`auto.create.topics.enable`).

In: names of missing topics. Out: CreateTopics requests to the controller, in the background: as in Apache
Kafka the client's response says UNKNOWN_TOPIC_OR_PARTITION, and it finds the topic a moment later. Several
clients that want the same topic cause one request.
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
    from barnabas.broker.api.context import RequestContext
    from barnabas.broker.broker import Broker

log = logging.getLogger("barnabas.broker")

CREATE_VERSION = 7  # of CreateTopics
ALREADY_THERE = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
NAMES_MAX = 10_000  # being created at a time; clients retry the others
LOGGED_MAX = 10  # refused names of one request that get a log line


class AutoCreation:
    __slots__ = ("_broker", "_names", "_tasks")

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._names: set[str] = set()  # being created
        self._tasks: set[asyncio.Task[None]] = set()

    def missing(self, names: Sequence[str]) -> list[str]:
        """The valid names that are not being created yet, each once, up to the limit."""
        from barnabas.controller.topic_names import reason_invalid  # rarely needed

        free = NAMES_MAX - len(self._names)
        found: dict[str, None] = {}
        for name in names[:NAMES_MAX]:
            if len(found) >= free:
                break
            if name not in self._names and reason_invalid(name) is None:
                found[name] = None
        return list(found)

    def begin(self, names: Sequence[str], context: RequestContext) -> None:
        """Start to create these topics with the broker's defaults, in the name of the caller."""
        self._names.update(names)
        task = self._broker.loop.create_task(self._create(names, context.for_request(CREATE_VERSION)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _create(self, names: Sequence[str], caller: RequestContext) -> None:
        topic = CreateTopicsRequest.CreatableTopic
        request = CreateTopicsRequest(
            topics=[topic(name=name, num_partitions=-1, replication_factor=-1) for name in names],
            timeout_ms=self._broker.settings["request.timeout.ms"],
        )
        try:
            response = await self._broker.controller.handle(request, caller.version, context=caller)
        except Exception as error:
            log.warning("could not create topics that clients requested: %s", error)
        else:
            assert isinstance(response, CreateTopicsResponse)
            refused = [each for each in response.topics if each.error_code not in ALREADY_THERE]
            for each in refused[:LOGGED_MAX]:
                code = ErrorCode(each.error_code).name
                log.warning("could not create the topic %s: %s %s", each.name, code, each.error_message)
        finally:
            self._names.difference_update(names)

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
