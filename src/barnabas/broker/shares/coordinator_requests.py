"""Requests to share coordinators on other brokers, combined while one is under way.

In: items about share partitions of one group, for one coordinator. Out: their results; NETWORK_EXCEPTION if
the coordinator cannot be reached. One request at a time is under way for each coordinator, kind and group;
those that come meanwhile leave together as the next one. A share partition is in a request once, so that its
writes keep their order.
Does not know: who coordinates what, when to try again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.quorum import lanes
from barnabas.shares.state.apis import Item, Result, refused, request_of, results_of

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.shares.state.keys import ShareKey

PARTITIONS_MAX = 1000  # of one request

Destination = tuple[int, type[Message], str]
"""Broker, kind of request, group."""


class Call(NamedTuple):
    items: list[Item]
    results: asyncio.Future[list[Result]]


class CoordinatorRequests:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._waiting: dict[Destination, deque[Call]] = {}  # while a request is under way
        self._tasks: set[asyncio.Task[None]] = set()

    async def ask(self, broker_id: int, kind: type[Message], items: list[Item]) -> list[Result]:
        call = Call(items, self._broker.loop.create_future())
        destination = broker_id, kind, items[0].key.group_id
        waiting = self._waiting.get(destination)
        if waiting is not None:
            waiting.append(call)
        else:
            self._waiting[destination] = deque((call,))
            task = self._broker.loop.create_task(self._send_all(destination))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await call.results

    async def close(self) -> None:
        """Cancel what is under way; its calls get an error."""
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks))

    async def _send_all(self, destination: Destination) -> None:
        waiting = self._waiting[destination]
        calls: list[Call] = []
        try:
            while waiting:
                calls = next_calls(waiting)
                await self._send(destination, calls)
        finally:
            del self._waiting[destination]
            for call in (*calls, *waiting):  # after a failure, or when the node stops
                set_results(call, destination[1], {}, ErrorCode.NETWORK_EXCEPTION)

    async def _send(self, destination: Destination, calls: list[Call]) -> None:
        broker_id, kind, _ = destination
        request = request_of(kind, [item for call in calls for item in call.items])
        found: dict[tuple[bytes, int], Result] = {}
        missing = ErrorCode.UNKNOWN_SERVER_ERROR
        try:
            response = await self._broker.others.send_request(broker_id, request, lanes.SHARE_STATE)
        except KafkaError as error:
            missing = error.code
        else:
            found = {(result.topic_id, result.data.partition): result for result in results_of(response)}
        for call in calls:
            set_results(call, kind, found, missing)


def next_calls(waiting: deque[Call]) -> list[Call]:
    """Pop the calls of the next request: as many as fit, none of which names a partition of another."""
    calls: list[Call] = []
    named: set[ShareKey] = set()
    while waiting:
        keys = {item.key for item in waiting[0].items}
        if calls and (len(named) + len(keys) > PARTITIONS_MAX or not named.isdisjoint(keys)):
            break
        calls.append(waiting.popleft())
        named |= keys
    return calls


def set_results(
    call: Call, kind: type[Message], found: dict[tuple[bytes, int], Result], missing: ErrorCode
) -> None:
    """Give a call its results, and `missing` for partitions without one."""
    if call.results.done():
        return
    call.results.set_result(
        [
            found.get((item.key.topic_id, item.key.partition)) or refused(kind, item, KafkaError(missing))
            for item in call.items
        ]
    )
