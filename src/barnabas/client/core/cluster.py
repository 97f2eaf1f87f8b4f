"""A cluster seen from outside: bootstrap servers, brokers, leaders, and a connection to each that is needed.

In: a bootstrap list, a Network. Out: responses from any broker, a named one, or the leader of a partition.
Connections are made by need, kept, and made again when they break. `retrying` repeats what may be repeated.
Does not know: what the requests mean, Metadata and DescribeCluster apart.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypedDict, TypeVar

from barnabas.client.core.address import Address
from barnabas.client.core.connection import ConnectionCore
from barnabas.client.core.errors import (
    AuthenticationError,
    BootstrapError,
    ConnectError,
    NoTopic,
    Unreachable,
    check,
    error_of,
)
from barnabas.client.core.network import (
    CONNECT_TIMEOUT_MS,
    REQUEST_TIMEOUT_MS,
    ConnectionSettings,
    Network,
)
from barnabas.client.core.patience import API_TIMEOUT_MS, Patience
from barnabas.client.core.topology import Node, Topic, TopicPartition, Topology, from_metadata
from barnabas.client.core.traffic import Traffic
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.security.clients.client_security import PLAINTEXT, ClientSecurity

R = TypeVar("R", bound=Message)
T = TypeVar("T")

MISSING_TOPIC = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
CONTROLLERS = 2  # as a kind of endpoints
CONTROLLERS_SINCE = 1  # the first version of DescribeCluster that knows them


class ClusterOptions(TypedDict, total=False):
    client_id: str
    connect_timeout_ms: float
    request_timeout_ms: float
    api_timeout_ms: float  # of an operation with all its attempts
    security: ClientSecurity  # TLS and SASL of every connection
    is_quorum: bool  # the addresses are those of controllers, which know no topics
    waits_for_bootstrap: bool  # keep trying also before any broker was ever reached


class ClusterCore:
    def __init__(
        self,
        bootstrap: Sequence[Address],
        network: Network,
        *,
        client_id: str = "barnabas",
        connect_timeout_ms: float = CONNECT_TIMEOUT_MS,
        request_timeout_ms: float = REQUEST_TIMEOUT_MS,
        api_timeout_ms: float = API_TIMEOUT_MS,
        security: ClientSecurity = PLAINTEXT,
        is_quorum: bool = False,
        waits_for_bootstrap: bool = False,
    ) -> None:
        self.bootstrap = list(bootstrap)
        self.network = network
        self.settings = ConnectionSettings(client_id, connect_timeout_ms, request_timeout_ms, security)
        self.api_timeout_ms = api_timeout_ms
        self.is_quorum = is_quorum
        self.topology = Topology()
        self._waits_for_bootstrap = waits_for_bootstrap
        self._connections: dict[tuple[Address, str], ConnectionCore] = {}
        self._former = Traffic()  # of connections that are not kept any more

    @property
    def request_timeout_ms(self) -> float:
        return self.settings.request_timeout_ms

    @property
    def may_retry(self) -> bool:
        """Whether a broker that cannot be reached is worth another attempt: else the address is wrong."""
        return self._waits_for_bootstrap or bool(self.topology.nodes)

    @property
    def traffic(self) -> Traffic:
        return self._former.plus(list(self._connections.values()))

    async def close(self) -> None:
        connections, self._connections = self._connections, {}
        for connection in connections.values():
            await connection.close()
            self._former.add(connection)

    def patience(self, timeout_ms: float | None = None) -> Patience:
        return Patience(self.network, self.api_timeout_ms if timeout_ms is None else timeout_ms)

    async def connection_to(self, address: Address, purpose: str = "") -> ConnectionCore:
        """The connection to an address, made when it is first needed.

        Brokers respond in order: requests that wait long (fetches) go by a connection of their own purpose.
        """
        connection = self._connections.get((address, purpose))
        if connection is None or not connection.is_open:
            connection = await self._connect(address)
            former = self._connections.get((address, purpose))
            if former is not None and not former.is_open:
                self._former.add(former)
            self._connections[address, purpose] = connection
        return connection

    async def _connect(self, address: Address) -> ConnectionCore:
        try:
            return await self.network.connect(address, self.settings)
        except AuthenticationError:
            self._former.logins_failed += 1
            raise

    async def disconnect(self, purpose: str) -> None:
        """Close the connections of a purpose that is over."""
        for key in [each for each in self._connections if each[1] == purpose]:
            former = self._connections.pop(key)
            await former.close()
            self._former.add(former)

    async def any_connection(self) -> ConnectionCore:
        """An open connection if there is one, else to a known broker, else to a bootstrap server."""
        for (_, purpose), connection in self._connections.items():
            if connection.is_open and not purpose:
                return connection
        failures: list[ConnectError] = []
        addresses = [node.address for node in self.topology.nodes.values()] + self.bootstrap
        for address in dict.fromkeys(addresses):
            try:
                return await self.connection_to(address)
            except ConnectError as error:
                failures.append(error)
        raise BootstrapError(failures)

    async def ask(self, request: Message, response: type[R], *, timeout_ms: float | None = None) -> R:
        """A response from any broker; of a quorum from its active controller, which alone decides."""
        connection = await (self.active_controller() if self.is_quorum else self.any_connection())
        return await connection.send(request, response, timeout_ms=timeout_ms)

    async def active_controller(self) -> ConnectionCore:
        """The controller that the others name as the active one; any of them while they name none."""
        connection = await self.any_connection()
        request = DescribeClusterRequest(endpoint_type=CONTROLLERS)
        if DescribeClusterRequest.schema.key not in connection.versions:
            return connection
        if connection.versions[DescribeClusterRequest.schema.key][1] < CONTROLLERS_SINCE:
            return connection
        response = await connection.send(request, DescribeClusterResponse)
        for node in response.brokers:
            address = Address(node.host, node.port)
            if node.broker_id == response.controller_id and address != connection.address:
                return await self.connection_to(address)
        return connection

    async def ask_node(self, node: Node, request: Message, response: type[R]) -> R:
        return await (await self.connection_to(node.address)).send(request, response)

    async def refresh(self, topics: Iterable[str] | None = (), *, auto_create: bool = False) -> Topology:
        """Learn the brokers and the given topics (None: all topics) anew."""
        names = None if topics is None else list(dict.fromkeys(topics))
        wanted = (
            None if names is None else [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
        )
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=auto_create)
        response = await self.ask(request, MetadataResponse)
        check(response.error_code, "Metadata was refused")
        newer = from_metadata(response)
        self.topology = newer if names is None else self.topology.merged(newer)
        return self.topology

    async def topics(self, names: Iterable[str] | None, *, auto_create: bool = False) -> dict[str, Topic]:
        """The topics of these names as they are now, or all; NoTopic for one that does not exist.

        `auto_create`: brokers may create them (`auto.create.topics.enable`), which takes a moment."""
        wanted = None if names is None else list(names)
        known = (await self.refresh(wanted, auto_create=auto_create)).topics
        found = {}
        for name in known if wanted is None else wanted:
            topic = known.get(name)
            code = topic.error_code if topic else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and wanted is None:
                continue
            if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise NoTopic(name)
            check(code, f"topic {name} cannot be used")
            if topic is not None:
                found[name] = topic
        return found

    async def partitions_of(
        self, topic: str, *, auto_create: bool = False, patience: Patience | None = None
    ) -> int:
        """How many partitions a topic has; waits while it is being created."""

        async def attempt() -> int:
            found = self.topology.topics.get(topic)
            if found is None or found.error_code or not found.partitions:
                found = (await self.refresh([topic], auto_create=auto_create)).topics.get(topic)
            if found is None:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {topic} does not exist")
            if found.error_code:
                self.topology = self.topology.without([topic])
                raise error_of(found.error_code, f"topic {topic}: {ErrorCode(found.error_code).name}")
            return found.partition_count

        return await self.retrying(attempt, patience=patience, final=() if auto_create else MISSING_TOPIC)

    async def leader_of(self, topic_partition: TopicPartition, patience: Patience | None = None) -> Node:
        """The broker that leads a partition; waits while an election is under way."""

        async def attempt() -> Node:
            leader = self.topology.leader(topic_partition)
            if leader is None:
                leader = (await self.refresh([topic_partition.topic])).leader(topic_partition)
            if leader is not None:
                return leader
            topic = self.topology.topics.get(topic_partition.topic)
            if (
                topic is None
                or topic.error_code in MISSING_TOPIC
                or topic_partition.partition not in topic.partitions
            ):
                raise KafkaError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"partition {topic_partition} does not exist"
                )
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"partition {topic_partition} has no leader")

        return await self.retrying(attempt, patience=patience, final=MISSING_TOPIC)

    async def leader_connection(self, partition: TopicPartition, purpose: str) -> ConnectionCore:
        """A connection to the broker that leads a partition now; an error when nobody does."""
        leader = self.topology.leader(partition) or await self.leader_of(partition, self.patience(0))
        return await self.connection_to(leader.address, purpose)

    def forget_leaders(self, topics: Iterable[str]) -> None:
        """A response says that what we know of these topics is old."""
        self.topology = self.topology.without(topics)

    async def retrying(
        self,
        attempt: Callable[[], Awaitable[T]],
        *,
        patience: Patience | None = None,
        final: Iterable[ErrorCode] = (),
    ) -> T:
        """Run `attempt` until it succeeds, fails for good, or the time is up.

        Codes in `final` are not repeated although Kafka calls them retriable.
        """
        patience = patience or self.patience()
        final_codes = set(final)
        while True:
            try:
                return await attempt()
            except KafkaError as error:
                if error.code in final_codes or not error.code.retriable:
                    raise
                await patience.pause(error)
            except Unreachable as error:
                if not self.may_retry:
                    raise
                await patience.pause(error)
