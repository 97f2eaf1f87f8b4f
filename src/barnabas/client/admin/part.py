"""Base of every part of Admin: the cluster, its coordinators, and a request that is tried again.

In: requests. Out: responses without an error at their top; errors that may pass are waited for.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from barnabas.client.core.cluster import ClusterCore
from barnabas.client.core.coordinators import TRANSACTION, Coordinators
from barnabas.client.core.errors import check
from barnabas.client.core.topology import Node
from barnabas.protocol import ErrorCode, KafkaError, Message

R = TypeVar("R", bound=Message)


class AdminPart:
    def __init__(self, cluster: ClusterCore) -> None:
        self.cluster = cluster
        self.coordinators = Coordinators(cluster)
        self.transaction_coordinators = Coordinators(cluster, TRANSACTION)

    @property
    def timeout_ms(self) -> int:
        return int(self.cluster.request_timeout_ms)

    async def ask(
        self,
        request: Message,
        response_type: type[R],
        *,
        node: Node | None = None,
        results: Callable[[R], Iterable[Any]] = lambda response: (),
        final: Iterable[ErrorCode] = (),
    ) -> R:
        """The response of a broker (None: of any); its errors and those of `results` are raised."""

        async def attempt() -> R:
            if node is None:
                response = await self.cluster.ask(request, response_type)
            else:
                response = await self.cluster.ask_node(node, request, response_type)
            for each in (response, *results(response)):
                check(getattr(each, "error_code", 0), getattr(each, "error_message", None))
            return response

        return await self.cluster.retrying(attempt, final=final)

    async def node(self, broker_id: int) -> Node:
        nodes = (await self.cluster.retrying(self.cluster.refresh)).nodes
        if broker_id not in nodes:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"broker {broker_id} is not there")
        return nodes[broker_id]
