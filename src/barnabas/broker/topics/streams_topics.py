"""Internal topics of Kafka Streams applications, which the broker creates when their group lacks them.

In: topics that a heartbeat found missing. Out: CreateTopics requests to the controller, in the background and
in the name of the member. A topic that could not be created is tried again after two heartbeat intervals;
until then members are told why.
Does not know: topologies, responses.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse

if TYPE_CHECKING:
    from barnabas.broker.api.context import RequestContext
    from barnabas.broker.broker import Broker
    from barnabas.groups.streams.configuring import InternalTopic

log = logging.getLogger("barnabas.broker")

CREATE_VERSION = 7  # of CreateTopics
NAMES_MAX = 10_000  # being created at a time; later heartbeats ask for the others
ERRORS_MAX = 1_000  # remembered; the oldest go first
DEFAULT_REPLICATION = -1


class StreamsTopics:
    __slots__ = ("_broker", "_errors", "_names", "_tasks")

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._names: set[str] = set()  # being created
        self._errors: dict[str, tuple[str, int]] = {}  # name -> why, and until when it counts
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, topics: Iterable[InternalTopic], context: RequestContext, retry_after_ms: int) -> None:
        """Start to create those topics that are not being created and did not fail a moment ago."""
        now_ms = self._broker.clock.steady_ms()
        wanted = [
            topic for topic in topics if topic.name not in self._names and not self._error(topic.name, now_ms)
        ][: NAMES_MAX - len(self._names)]
        if not wanted:
            return
        self._names.update(topic.name for topic in wanted)
        caller = context.for_request(CREATE_VERSION)
        task = self._broker.loop.create_task(self._create(wanted, caller, retry_after_ms))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def errors(self, names: Iterable[str]) -> dict[str, str]:
        """Why topics could not be created lately."""
        now_ms = self._broker.clock.steady_ms()
        return {name: error for name in names if (error := self._error(name, now_ms))}

    def _error(self, name: str, now_ms: int) -> str:
        text, until_ms = self._errors.get(name, ("", 0))
        return text if now_ms < until_ms else ""

    async def _create(
        self, topics: Sequence[InternalTopic], caller: RequestContext, retry_after_ms: int
    ) -> None:
        names = [topic.name for topic in topics]
        request = CreateTopicsRequest(
            topics=[creatable(topic) for topic in topics],
            timeout_ms=self._broker.settings["request.timeout.ms"],
        )
        refused: dict[str, str] = {}
        try:
            response = await self._broker.controller.handle(request, caller.version, context=caller)
            assert isinstance(response, CreateTopicsResponse)
            for each in response.topics:
                if each.error_code:
                    refused[each.name] = each.error_message or ErrorCode(each.error_code).message
        except Exception as error:
            refused = dict.fromkeys(names, str(error))
        finally:
            self._names.difference_update(names)
        until_ms = self._broker.clock.steady_ms() + retry_after_ms
        for name, text in refused.items():
            log.warning("could not create the internal topic %s: %s", name, text)
            self._errors.pop(name, None)
            self._errors[name] = text, until_ms
        while len(self._errors) > ERRORS_MAX:
            del self._errors[next(iter(self._errors))]

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()


def creatable(topic: InternalTopic) -> CreateTopicsRequest.CreatableTopic:
    config = CreateTopicsRequest.CreatableTopic.CreatableTopicConfig
    return CreateTopicsRequest.CreatableTopic(
        name=topic.name,
        num_partitions=topic.partition_count,
        replication_factor=topic.replication_factor or DEFAULT_REPLICATION,
        configs=[config(name=name, value=value) for name, value in topic.configs],
    )
