"""The persister: keeps the state of share partitions at their share coordinators, wherever those are.

In: a request about one group and any number of its partitions. Out: one response with a result for each
partition; it never raises. Partitions are grouped by the broker that leads their part of
`__share_group_state`: the coordinator of this broker is called directly, others over the network. Errors that
pass (a coordinator that moves or loads, a lost connection) are retried for a time. While a share partition
waits for its retry, later requests for it wait too, so that an older state never replaces a newer one.
Does not know: what the state means, which requests are right.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from barnabas.broker.api.deferred import Deferred
from barnabas.broker.api.large_requests import resolved
from barnabas.broker.shares.coordinator_requests import CoordinatorRequests
from barnabas.metadata.partitions import NO_LEADER
from barnabas.protocol import ApiKey, ErrorCode, KafkaError, Message
from barnabas.shares.state.apis import Item, Result, items_of, refused, response_of

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.protocol.messages.delete_share_group_state import (
        DeleteShareGroupStateRequest,
        DeleteShareGroupStateResponse,
    )
    from barnabas.protocol.messages.initialize_share_group_state import (
        InitializeShareGroupStateRequest,
        InitializeShareGroupStateResponse,
    )
    from barnabas.protocol.messages.read_share_group_state import (
        ReadShareGroupStateRequest,
        ReadShareGroupStateResponse,
    )
    from barnabas.protocol.messages.read_share_group_state_summary import (
        ReadShareGroupStateSummaryRequest,
        ReadShareGroupStateSummaryResponse,
    )
    from barnabas.protocol.messages.write_share_group_state import (
        WriteShareGroupStateRequest,
        WriteShareGroupStateResponse,
    )
    from barnabas.shares.state.keys import ShareKey

PATIENCE_S = 30.0  # from the first attempt to the last; a coordinator moves within that time
BACK_OFF_S, BACK_OFF_S_MAX = 0.05, 1.0
CALLS_MAX = 10_000  # at a time; more are refused
RETRIABLE = frozenset(
    (
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
    )
)
NO_COORDINATOR = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "The share partition has no coordinator.")
TOO_MANY = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "Too many requests wait for share coordinators.")
FAILED = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)


class SharePersister:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._remote = CoordinatorRequests(broker)
        self._retrying: dict[ShareKey, asyncio.Future[None]] = {}
        self._calls = 0
        self._closed: asyncio.Future[None] = broker.loop.create_future()

    async def initialize(
        self, request: InitializeShareGroupStateRequest
    ) -> InitializeShareGroupStateResponse:
        response: InitializeShareGroupStateResponse = await self._call(request)
        return response

    async def read(self, request: ReadShareGroupStateRequest) -> ReadShareGroupStateResponse:
        response: ReadShareGroupStateResponse = await self._call(request)
        return response

    async def read_summary(
        self, request: ReadShareGroupStateSummaryRequest
    ) -> ReadShareGroupStateSummaryResponse:
        response: ReadShareGroupStateSummaryResponse = await self._call(request)
        return response

    async def write(self, request: WriteShareGroupStateRequest) -> WriteShareGroupStateResponse:
        response: WriteShareGroupStateResponse = await self._call(request)
        return response

    async def delete(self, request: DeleteShareGroupStateRequest) -> DeleteShareGroupStateResponse:
        response: DeleteShareGroupStateResponse = await self._call(request)
        return response

    async def close(self) -> None:
        """Stop retrying: calls under way return what they have."""
        if not self._closed.done():
            self._closed.set_result(None)
        await self._remote.close()

    # -- one call ----------------------------------------------------------------------------------

    async def _call(self, request: Message) -> Any:
        kind, items = type(request), items_of(request)
        if self._calls >= CALLS_MAX:
            return response_of(kind, [refused(kind, item, TOO_MANY) for item in items])
        self._calls += 1
        results: dict[ShareKey, Result] = {}
        try:
            if self._retrying:
                await self._wait_for_retries(items)
            if len(items) == 1 and (response := await self._ask_here(items[0], request)) is not None:
                return response
            await self._complete(kind, items, results)
        except Exception:
            self._broker.unexpected.note("keeping share state for", items[0].key if items else kind)
        finally:
            self._calls -= 1
        return response_of(kind, [results.get(item.key) or refused(kind, item, FAILED) for item in items])

    async def _ask_here(self, item: Item, request: Message) -> Any:
        """The response of this broker's own coordinator, if it is right for a request about one share
        partition; else None. Most writes of small clusters go this way."""
        coordinator = self._broker.share_coordinator
        if coordinator.host_for(item.key) is None:
            return None
        started = self._broker.loop.time()
        response: Any = coordinator.handle_one(item.key, request)
        if isinstance(response, Deferred):
            response = await resolved(response)
        if request.schema.key == ApiKey.WRITE_SHARE_GROUP_STATE:
            coordinator.note_write(started)
        is_final = response.results[0].partitions[0].error_code not in RETRIABLE
        return response if is_final else None

    async def _complete(
        self, kind: type[Message], items: list[Item], results: dict[ShareKey, Result]
    ) -> None:
        """Ask the coordinators, again where that helps, until each item has its result."""
        left = await self._attempt(kind, items, results)
        if not left or self._closed.done():
            return
        gate = self._broker.loop.create_future()
        for item in left:
            self._retrying.setdefault(item.key, gate)
        try:
            await self._retry(kind, left, results)
        finally:
            gate.set_result(None)
            for item in items:
                if self._retrying.get(item.key) is gate:
                    del self._retrying[item.key]

    async def _retry(self, kind: type[Message], left: list[Item], results: dict[ShareKey, Result]) -> None:
        loop = self._broker.loop
        until, back_off_s = loop.time() + PATIENCE_S, BACK_OFF_S
        while left and loop.time() < until:
            await asyncio.wait((self._closed,), timeout=back_off_s)
            if self._closed.done():
                return
            back_off_s = min(2 * back_off_s, BACK_OFF_S_MAX)
            left = await self._attempt(kind, left, results)

    async def _wait_for_retries(self, items: Iterable[Item]) -> None:
        gates = {gate for item in items if (gate := self._retrying.get(item.key)) is not None}
        if gates:
            await asyncio.wait(gates)

    async def _attempt(
        self, kind: type[Message], items: list[Item], results: dict[ShareKey, Result]
    ) -> list[Item]:
        """Ask each coordinator once. Out: items that should be tried again."""
        coordinator = self._broker.share_coordinator
        if not (coordinator.is_started and coordinator.topic.exists):
            await self._prepare()
        by_leader: dict[int, list[Item]] = {}
        for item in items:
            by_leader.setdefault(self._leader_of(item.key), []).append(item)
        if len(by_leader) == 1:
            [(leader, some)] = by_leader.items()
            found = await self._ask(leader, kind, some)
        else:
            responses = await asyncio.gather(
                *(self._ask(leader, kind, some) for leader, some in by_leader.items())
            )
            found = [result for response in responses for result in response]
        by_place = {(result.topic_id, result.data.partition): result for result in found}
        again = []
        for item in items:
            result = by_place.get((item.key.topic_id, item.key.partition))
            if result is None:
                result = refused(kind, item, FAILED)
            results[item.key] = result
            if result.data.error_code in RETRIABLE:
                again.append(item)
        return again

    async def _prepare(self) -> None:
        """Create the topic of the coordinators, if it does not exist."""
        coordinator = self._broker.share_coordinator
        await coordinator.started()
        if not coordinator.topic.exists:
            try:
                await coordinator.topic.create()
            except KafkaError:
                return  # `create` has logged it, and the items are tried again

    def _leader_of(self, key: ShareKey) -> int:
        coordinator = self._broker.share_coordinator
        if coordinator.host_for(key) is not None:
            return self._broker.node_id
        try:
            return coordinator.topic.leader_of(str(key))
        except KafkaError:
            return NO_LEADER

    async def _ask(self, leader: int, kind: type[Message], items: list[Item]) -> list[Result]:
        if leader == NO_LEADER:
            return [refused(kind, item, NO_COORDINATOR) for item in items]
        if leader == self._broker.node_id:
            return await self._broker.share_coordinator.ask(kind, items)
        return await self._remote.ask(leader, kind, items)
