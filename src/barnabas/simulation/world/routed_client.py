"""A simulated client of a cluster that sends requests to leaders and coordinators. It finds them like other
clients: with Metadata and FindCoordinator requests to some broker, and from error responses.

In: the addresses of the brokers, a job. Out: like `SimulatedClient`; also None if no broker is known for a
request.
Does not know: what the requests mean beyond `routing`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from barnabas.client.core.address import Address
from barnabas.protocol import ErrorCode, Message
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.security.clients.client_security import PLAINTEXT, ClientSecurity
from barnabas.simulation.world.client import Job, R, SimulatedClient
from barnabas.simulation.world.routing import Role, Target, hint_in, needs_new_route, target_of
from barnabas.simulation.world.world import World

GROUP, TRANSACTION = 0, 1  # key types of FindCoordinator
LOOK_TIMEOUT_MS = 1_500


class Route(NamedTuple):
    address: Address
    leader_epoch: int = -1


class RoutedClient(SimulatedClient):
    def __init__(
        self,
        world: World,
        brokers: Mapping[int, Address],
        name: str,
        job: Job,
        security: ClientSecurity = PLAINTEXT,
    ) -> None:
        self._brokers = dict(brokers)
        self._routes: dict[Target, Route] = {}
        self._epochs: dict[
            Target, int
        ] = {}  # the newest leader epochs; a broker with older ones has stale metadata
        super().__init__(world, list(self._brokers.values()), name, job, security)

    def _start(self) -> None:
        self._routes.clear()  # a new process has no state
        self._epochs.clear()
        super()._start()

    async def ask(
        self,
        request: Message,
        response_type: type[R],
        *,
        purpose: str = "",
        timeout_ms: float | None = None,
        version_max: int | None = None,
    ) -> R | None:
        target = target_of(request)
        way = await self._route_to(target)
        if way is None:
            return None
        if isinstance(
            request, FetchRequest
        ):  # so that a broker that does not lead in this epoch refuses it (KIP-320)
            request.topics[0].partitions[0].current_leader_epoch = way.leader_epoch
        response = await self.ask_at(
            way.address,
            request,
            response_type,
            purpose=purpose,
            timeout_ms=timeout_ms,
            version_max=version_max,
        )
        if response is None:
            self._routes.pop(target, None)
        elif needs_new_route(response):
            self._routes.pop(target, None)
            hint = hint_in(response)
            if hint is not None and hint[0] in self._brokers and self._is_new(target, hint[1]):
                self._routes[target] = Route(self._brokers[hint[0]], hint[1])
        return response

    async def leader_of(self, topic: str, partition: int) -> Address | None:
        found = await self._route_to(Target(Role.LEADER, topic, partition))
        return None if found is None else found.address

    def forget_leader(self, topic: str, partition: int) -> None:
        self._routes.pop(Target(Role.LEADER, topic, partition), None)

    def any_broker(self) -> Address:
        return self.rng.choice(list(self._brokers.values()))

    async def _route_to(self, target: Target) -> Route | None:
        if target.role is Role.ANY:
            return Route(self.any_broker())
        known = self._routes.get(target)
        if known is not None:
            return known
        if target.role is Role.LEADER:
            found = await self._leader(target)
        else:
            found = await self._coordinator(target)
        if found is not None:
            self._routes[target] = found
        return found

    def _is_new(self, target: Target, leader_epoch: int) -> bool:
        """Whether no newer epoch is known: clients ignore older metadata (KIP-320)."""
        if leader_epoch < self._epochs.get(target, -1):
            return False
        self._epochs[target] = leader_epoch
        return True

    async def _leader(self, target: Target) -> Route | None:
        request = MetadataRequest(
            topics=[MetadataRequest.MetadataRequestTopic(name=target.name)], allow_auto_topic_creation=False
        )
        response = await self.ask_at(self.any_broker(), request, MetadataResponse, timeout_ms=LOOK_TIMEOUT_MS)
        if response is None or not response.topics:
            return None
        for each in response.topics[0].partitions:
            if each.partition_index == target.partition and each.error_code == ErrorCode.NONE:
                leader = self._brokers.get(each.leader_id)
                is_known = leader is not None and self._is_new(target, each.leader_epoch)
                return Route(leader, each.leader_epoch) if leader is not None and is_known else None
        return None

    async def _coordinator(self, target: Target) -> Route | None:
        kind = GROUP if target.role is Role.GROUP else TRANSACTION
        response = await self.ask_at(
            self.any_broker(),
            FindCoordinatorRequest(coordinator_keys=[target.name], key_type=kind),
            FindCoordinatorResponse,
            timeout_ms=LOOK_TIMEOUT_MS,
        )
        if response is None or not response.coordinators or response.coordinators[0].error_code:
            return None
        coordinator = self._brokers.get(response.coordinators[0].node_id)
        return None if coordinator is None else Route(coordinator)
