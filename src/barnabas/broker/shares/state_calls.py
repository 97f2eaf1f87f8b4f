"""Requests of one shard of groups to share coordinators, some at a time.

In: calls of outcomes whose records are committed. Out: responses, for the shard that made the call. The shard
bounds how many calls there are; a closed host drops them.
Does not know: what the requests are for.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from barnabas.groups.basics.outcome import StateCall
from barnabas.protocol import Message
from barnabas.protocol.messages.initialize_share_group_state import InitializeShareGroupStateRequest

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

AT_ONCE_MAX = 32  # calls of one shard that are under way; the others wait

Respond = Callable[[int, Message], None]
"""Takes the number of a call and its response."""


class ShareStateCalls:
    __slots__ = ("_broker", "_ready", "_respond", "_tasks")

    def __init__(self, broker: Broker, respond: Respond) -> None:
        self._broker = broker
        self._respond = respond
        self._ready: deque[StateCall] = deque()
        self._tasks: set[asyncio.Task[None]] = set()

    def send(self, calls: Sequence[StateCall]) -> None:
        self._ready.extend(calls)
        self._send()

    def close(self) -> None:
        """Drop all calls, also those that are under way."""
        self._ready.clear()
        tasks, self._tasks = self._tasks, set()
        for task in tasks:
            task.cancel()

    def _send(self) -> None:
        while self._ready and len(self._tasks) < AT_ONCE_MAX:
            task = self._broker.loop.create_task(self._call(self._ready.popleft()))
            self._tasks.add(task)
            task.add_done_callback(self._done)

    async def _call(self, call: StateCall) -> None:
        persister, request = self._broker.share_persister, call.request
        response: Message
        try:
            if isinstance(request, InitializeShareGroupStateRequest):
                response = await persister.initialize(request)
            else:
                response = await persister.delete(request)
            self._respond(call.number, response)
        except Exception:
            self._broker.unexpected.note("asking share coordinators about", request.group_id)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._send()
