"""Which broker coordinates a group or a transactional id: FindCoordinator asked for many, answers kept.

In: a Cluster, ids of one kind, and a question for one coordinator about those that it has. Out: an answer or
an error for each; coordinators that moved, load or cannot be reached are found and asked again.
Does not know: what is asked.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar

from barnabas.client.core.cluster import ClusterCore
from barnabas.client.core.errors import ClientError, Unreachable, error_of
from barnabas.client.core.topology import Node
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

T = TypeVar("T")

GROUP, TRANSACTION = 0, 1  # key types of FindCoordinator
BATCHED_SINCE = 4  # version of FindCoordinator
GROUPS_PER_REQUEST = 1_000

Answers = Mapping[str, T | KafkaError]
Question = Callable[[Node, list[str]], Awaitable[Answers[T]]]


class Coordinators:
    def __init__(self, cluster: ClusterCore, key_type: int = GROUP, timeout_ms: float | None = None) -> None:
        self._cluster = cluster
        self._timeout_ms = timeout_ms
        self._key_type = key_type
        self._known: dict[str, Node] = {}

    async def ask(self, groups: Iterable[str], question: Question[T]) -> dict[str, T | KafkaError]:
        """Ask each coordinator once about its groups, and again for what may be repeated."""
        found: dict[str, T | KafkaError] = {}
        left = list(dict.fromkeys(groups))
        order = list(left)
        patience = self._cluster.patience(self._timeout_ms)
        while left:
            problem: KafkaError | ClientError | None = None
            try:
                refused = await self._find(left)
            except Unreachable as error:
                if not self._cluster.may_retry:
                    raise
                refused, problem = {}, error
            for group, refusal in refused.items():
                if refusal.code.retriable:
                    problem = refusal
                else:
                    found[group] = refusal
            for node, chosen in self._by_node(left).items():
                try:
                    answers = await question(node, chosen)
                except Unreachable as lost:
                    problem = lost
                    self._forget(chosen)
                    continue
                for group, answer in answers.items():
                    if isinstance(answer, KafkaError) and answer.code.retriable:
                        problem = answer
                        self._forget([group])
                    else:
                        found[group] = answer
            left = [group for group in left if group not in found]
            if left:
                await patience.pause(problem or KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        return {group: found[group] for group in order}

    async def ask_one(self, group: str, question: Callable[[Node], Awaitable[T]]) -> T:
        """Ask the coordinator of one group; an error that is for good is raised."""

        async def about(node: Node, groups: list[str]) -> Answers[T]:
            try:
                return {group: await question(node)}
            except KafkaError as error:
                return {group: error}

        answer = (await self.ask([group], about))[group]
        if isinstance(answer, KafkaError):
            raise answer
        return answer

    def _by_node(self, groups: Iterable[str]) -> dict[Node, list[str]]:
        chosen: dict[Node, list[str]] = {}
        for group in groups:
            if group in self._known:
                chosen.setdefault(self._known[group], []).append(group)
        return chosen

    def _forget(self, groups: Iterable[str]) -> None:
        for group in groups:
            self._known.pop(group, None)

    async def _find(self, groups: Iterable[str]) -> dict[str, KafkaError]:
        """Learn the coordinators that are not known yet; what is returned could not be."""
        refused: dict[str, KafkaError] = {}
        unknown = [group for group in groups if group not in self._known]
        if not unknown:
            return refused
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
            answer = await self._cluster.ask(request, FindCoordinatorResponse)
            for group, node in self._read(answer, part):
                if isinstance(node, KafkaError):
                    refused[group] = node
                else:
                    self._known[group] = node
        return refused

    def _read(self, answer: FindCoordinatorResponse, asked: list[str]) -> list[tuple[str, Node | KafkaError]]:
        if not answer.coordinators:  # one of before they could be asked for together
            if answer.error_code:
                return [(asked[0], error_of(answer.error_code, answer.error_message))]
            return [(asked[0], Node(answer.node_id, answer.host, answer.port))]
        return [
            (each.key, error_of(each.error_code, each.error_message))
            if each.error_code
            else (each.key, Node(each.node_id, each.host, each.port))
            for each in answer.coordinators
        ]
