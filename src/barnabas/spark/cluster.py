"""A Kafka cluster as Spark's workers see it: who leads a partition, where its log starts and ends.

In: client settings, names of topics. Out: connections to leaders, topics with their partitions, offsets.
Requests that failed because leaders moved or brokers restarted are tried again with growing pauses, until the
time is over.
Does not know: records, Spark.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeVar

from barnabas.client.address import Address, parse_bootstrap
from barnabas.client.errors import BootstrapError, ConnectError, Unreachable
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.spark.connection import BlockingConnection
from barnabas.spark.settings import ClientSettings

R = TypeVar("R", bound=Message)
Result = TypeVar("Result")

PAUSE_MS_MIN = 50
PAUSE_MS_MAX = 2000
MIN_METADATA_VERSION_WITH_IDS = 10
RETRIABLE = frozenset(
    {
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.LISTENER_NOT_FOUND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


class Place(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class NoTopic(KafkaError):
    """A topic that was asked for does not exist, or not yet."""

    def __init__(self, name: str) -> None:
        super().__init__(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")
        self.name = name


class Topic(NamedTuple):
    id: bytes
    leaders: dict[int, int]  # broker ids by partition; -1 where there is none


class Retry:
    """How long to go on trying, and with which pauses."""

    def __init__(self, timeout_ms: int) -> None:
        self._until = time.monotonic() + timeout_ms / 1000
        self._pause_ms = PAUSE_MS_MIN

    def wait(self) -> bool:
        """Pause before the next attempt; False when there is no time for one."""
        left = self._until - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(left, self._pause_ms * random.uniform(0.8, 1.2) / 1000))
        self._pause_ms = min(self._pause_ms * 2, PAUSE_MS_MAX)
        return True


class BlockingCluster:
    """One for each process and set of client settings: connections outlive micro-batches."""

    def __init__(self, settings: ClientSettings) -> None:
        self.settings = settings
        self._bootstrap = parse_bootstrap(settings.bootstrap_servers)
        self._addresses: dict[int, Address] = {}
        self._connections: dict[Address, BlockingConnection] = {}
        self._control: BlockingConnection | None = None  # for questions, beside requests under way
        self._topics: dict[str, Topic] = {}

    # -- connections -----------------------------------------------------------------------------

    def to(self, address: Address) -> BlockingConnection:
        connection = self._connections.get(address)
        if connection is None:
            connection = self._connections[address] = self._connect(address)
        return connection

    def _connect(self, address: Address) -> BlockingConnection:
        return BlockingConnection(address, self.settings.client_id, self.settings.request_timeout_ms)

    def to_any(self) -> BlockingConnection:
        """A connection on which no answer is expected."""
        if self._control is not None:
            return self._control
        failures = []
        for address in [*self._addresses.values(), *self._bootstrap]:
            try:
                self._control = self._connect(address)
                return self._control
            except ConnectError as error:
                failures.append(error)
        raise BootstrapError([each for each in failures if each.address in self._bootstrap] or failures)

    def to_leader(self, place: Place) -> BlockingConnection:
        """LEADER_NOT_AVAILABLE when nobody leads the partition now."""
        topic = self._topics.get(place.topic) or self.topics([place.topic])[place.topic]
        leader = topic.leaders.get(place.partition)
        if leader is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {place}")
        address = self._addresses.get(leader)
        if leader < 0 or address is None:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{place} has no leader")
        return self.to(address)

    def topic_id(self, name: str) -> bytes:
        return self._topics[name].id

    def drop(self, connection: BlockingConnection) -> None:
        """It failed, or answers are on their way that nobody wants."""
        if connection is self._control:
            self._control = None
        elif self._connections.get(connection.address) is connection:
            del self._connections[connection.address]
        connection.close()

    def forget(self, topics: Iterable[str]) -> None:
        """Leaders may have moved: ask again when one is needed."""
        for topic in topics:
            self._topics.pop(topic, None)

    def close(self) -> None:
        for connection in [*self._connections.values(), self._control]:
            if connection is not None:
                connection.close()
        self._connections.clear()
        self._control = None

    def ask(self, connection: BlockingConnection, request: Message, response: type[R]) -> R:
        try:
            return connection.ask(request, response)
        except BaseException:
            self.drop(connection)
            raise

    def keep_trying(
        self,
        attempt: Callable[[], Result],
        topics: Iterable[str],
        timeout_ms: int,
        passing: frozenset[ErrorCode] = RETRIABLE,
    ) -> Result:
        """The result of an attempt that did not fail for a reason that passes."""
        names = list(topics)
        retry = Retry(timeout_ms)
        while True:
            try:
                return attempt()
            except Unreachable:
                if not retry.wait():
                    raise
            except KafkaError as error:
                if error.code not in passing or not retry.wait():
                    raise
            self.forget(names)

    # -- metadata --------------------------------------------------------------------------------

    def topics(self, names: Iterable[str] | None) -> dict[str, Topic]:
        """The topics of these names, or all; NoTopic for one that does not exist."""
        response = self._metadata(names)
        found = {}
        for topic in response.topics:
            if topic.error_code:
                code = ErrorCode(topic.error_code)
                if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    if names is None:
                        continue
                    raise NoTopic(topic.name or "")
                raise KafkaError(code, f"topic {topic.name}: {code.name}")
            leaders = {each.partition_index: each.leader_id for each in topic.partitions}
            found[topic.name or ""] = self._topics[topic.name or ""] = Topic(topic.topic_id, leaders)
        return found

    def _metadata(self, names: Iterable[str] | None) -> MetadataResponse:
        asked = None if names is None else [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
        request = MetadataRequest(topics=asked, allow_auto_topic_creation=False)
        response = self.ask(self.to_any(), request, MetadataResponse)
        self._addresses = {each.node_id: Address(each.host, each.port) for each in response.brokers}
        return response

    # -- offsets ---------------------------------------------------------------------------------

    def offsets(self, wanted: Mapping[Place, int]) -> dict[Place, int]:
        """Offsets by timestamp or by Kafka's special ones (-1 latest, -2 earliest); -1 where none is."""
        found: dict[Place, int] = {}
        by_leader: dict[Address, list[Place]] = {}
        for place in wanted:
            by_leader.setdefault(self.to_leader(place).address, []).append(place)
        for address, places in by_leader.items():
            topics: dict[str, ListOffsetsRequest.ListOffsetsTopic] = {}
            for place in places:
                topic = topics.setdefault(place.topic, ListOffsetsRequest.ListOffsetsTopic(name=place.topic))
                topic.partitions.append(
                    topic.ListOffsetsPartition(partition_index=place.partition, timestamp=wanted[place])
                )
            request = ListOffsetsRequest(
                replica_id=-1,
                isolation_level=int(self.settings.is_read_committed),
                topics=list(topics.values()),
            )
            response = self.ask(self.to(address), request, ListOffsetsResponse)
            for answer in response.topics:
                for each in answer.partitions:
                    place = Place(answer.name, each.partition_index)
                    if each.error_code:
                        code = ErrorCode(each.error_code)
                        raise KafkaError(code, f"offsets of {place}: {code.name}")
                    found[place] = each.offset
        return found


_clusters: dict[ClientSettings, BlockingCluster] = {}


def shared_cluster(settings: ClientSettings) -> BlockingCluster:
    """The cluster of this process for these settings. Not for several threads."""
    cluster = _clusters.get(settings)
    if cluster is None:
        cluster = _clusters[settings] = BlockingCluster(settings)
    return cluster


def close_shared() -> None:
    for cluster in _clusters.values():
        with contextlib.suppress(OSError):
            cluster.close()
    _clusters.clear()
