"""Coordinators of groups and of transactional ids: FindCoordinator asked for many, responses kept.

In: a Cluster, ids of one kind, and a question for one coordinator about those that it has. Out: a result or
an error for each; coordinators that moved, load or cannot be reached are found and asked again.
Does not know: what is asked.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar

from barnabas.client.core.asking import Found, ask_each
from barnabas.client.core.cluster import ClusterCore
from barnabas.client.core.errors import error_of
from barnabas.client.core.topology import Node
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

T = TypeVar("T")

GROUP, TRANSACTION = 0, 1  # key types of FindCoordinator
BATCHED_SINCE = 4  # version of FindCoordinator
GROUPS_PER_REQUEST = 1_000

Results = Mapping[str, T | KafkaError]
Question = Callable[[Node, list[str]], Awaitable[Results[T]]]


class Coordinators:
    def __init__(self, cluster: ClusterCore, key_type: int = GROUP, timeout_ms: float | None = None) -> None:
        self._cluster = cluster
        self._timeout_ms = timeout_ms
        self._key_type = key_type
        self._known: dict[str, Node] = {}

    async def ask(self, groups: Iterable[str], question: Question[T]) -> dict[str, T | KafkaError]:
        """Ask each coordinator once about its groups, and again for what may be repeated."""

        async def find(left: list[str], found: Found[str, T]) -> dict[Node, list[str]]:
            await self._find(left, found)
            chosen: dict[Node, list[str]] = {}
            for group in left:
                if group in self._known:
                    chosen.setdefault(self._known[group], []).append(group)
            return chosen

        return await ask_each(
            self._cluster,
            groups,
            find,
            question,
            self._forget,
            unknown=ErrorCode.COORDINATOR_NOT_AVAILABLE,
            timeout_ms=self._timeout_ms,
        )

    async def ask_one(self, group: str, question: Callable[[Node], Awaitable[T]]) -> T:
        """Ask the coordinator of one group; an error that is for good is raised."""

        async def about(node: Node, groups: list[str]) -> Results[T]:
            try:
                return {group: await question(node)}
            except KafkaError as error:
                return {group: error}

        result = (await self.ask([group], about))[group]
        if isinstance(result, KafkaError):
            raise result
        return result

    def _forget(self, groups: Iterable[str]) -> None:
        for group in groups:
            self._known.pop(group, None)

    async def _find(self, groups: Iterable[str], found: Found[str, T]) -> None:
        """Learn the coordinators that are not known yet; refusals that are for good are found."""
        unknown = [group for group in groups if group not in self._known]
        if not unknown:
            return
        connection = await self._cluster.any_connection()
        at_once = GROUPS_PER_REQUEST if connection.version_for(FindCoordinatorRequest) >= BATCHED_SINCE else 1
        if not self._cluster.topology.nodes:
            await self._cluster.refresh()
        for start in range(0, len(unknown), at_once):
            part = unknown[start : start + at_once]
            if at_once == 1:
                request = FindCoordinatorRequest(key=part[0], key_type=self._key_type)
            else:
                request = FindCoordinatorRequest(coordinator_keys=part, key_type=self._key_type)
            response = await self._cluster.ask(request, FindCoordinatorResponse)
            for group, node in self._read(response, part):
                if not isinstance(node, KafkaError):
                    self._known[group] = node
                elif not node.code.retriable:
                    found[group] = node

    def _read(
        self, response: FindCoordinatorResponse, asked: list[str]
    ) -> list[tuple[str, Node | KafkaError]]:
        if not response.coordinators:  # one of before they could be asked for together
            if response.error_code:
                return [(asked[0], error_of(response.error_code, response.error_message))]
            return [(asked[0], Node(response.node_id, response.host, response.port))]
        return [
            (each.key, error_of(each.error_code, each.error_message))
            if each.error_code
            else (each.key, Node(each.node_id, each.host, each.port))
            for each in response.coordinators
        ]
