"""A consumer of topics as a member of a share group (KIP-932): members share partitions, record by record.

In: a cluster, a group id, topics. Out: records that this member has acquired for a while, when they are asked
for. It accepts, releases, rejects or renews them. Unless acknowledgements are explicit, a poll accepts the
records of the poll before. Calls of one consumer come one after another. Does not know: deserializers.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from barnabas.client.consumers.share_deliveries import Deliveries, Delivery
from barnabas.client.consumers.share_leader import Failure, ShareLeader
from barnabas.client.consumers.share_member import ShareMember, new_member_id
from barnabas.client.core.acknowledgements import AckBatch, AcknowledgeType
from barnabas.client.core.cluster import ClusterCore
from barnabas.client.core.errors import ClientError, Unreachable, error_of
from barnabas.client.core.share_fetching import SharePartitionData, ShareRecord, read_acquired
from barnabas.client.core.share_session import SESSION_ERRORS, AcquireMode, Place, ShareLimits, ShareSession
from barnabas.client.core.topology import Node, TopicPartition
from barnabas.protocol import ErrorCode, KafkaError

log = logging.getLogger("barnabas.consumers")

RETRY_S = 0.1
CLOSE_TIMEOUT_S = 5.0
MOVED = (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INCONSISTENT_TOPIC_ID)
_numbers = itertools.count(1)

Fetched = list[tuple[Place, SharePartitionData]]
OnAcknowledged = Callable[[TopicPartition, Sequence[AckBatch], Failure | None], None]


@dataclass(frozen=True, slots=True)
class ShareConsumerSettings:
    """Kafka's share consumer settings of the same meaning."""

    group_id: str
    explicit: bool = False  # share.acknowledgement.mode
    limits: ShareLimits = field(default_factory=ShareLimits)
    rack_id: str | None = None
    member_id: str | None = None  # a random one


class ShareConsumer:
    """`subscribe`, then `poll` again and again; `close` at the end.

    `on_acknowledged` is called with batches that a broker has responded to, or that failed.
    """

    def __init__(
        self,
        cluster: ClusterCore,
        settings: ShareConsumerSettings,
        on_acknowledged: OnAcknowledged | None = None,
    ) -> None:
        self.cluster = cluster
        self.settings = settings
        self.member_id = settings.member_id or new_member_id(cluster.network)
        self.topics: frozenset[str] = frozenset()
        self._on_acknowledged = on_acknowledged
        self._purpose = f"share fetch {next(_numbers)}"  # a fetch that waits stops what comes behind it
        self._member: ShareMember | None = None
        self._names: dict[bytes, str] = {}  # of topics that were assigned
        self._leaders: dict[int, ShareLeader] = {}
        self._fetches: dict[int, asyncio.Task[Fetched]] = {}
        self._acknowledging: set[asyncio.Task[object]] = set()
        self._held: deque[Delivery] = deque()  # fetched, and not returned by a poll yet
        self._deliveries = Deliveries()
        self._not_before: dict[Place, float] = {}
        self._changed = asyncio.Event()
        self._next_leader = 0  # whose turn it is, with a record limit

    # -- topics ------------------------------------------------------------------------------------

    async def subscribe(self, topics: Iterable[str]) -> None:
        """Read these topics, instead of those before."""
        self.topics = frozenset(topics)
        if self._member is not None:
            self._member.subscribe(self.topics)

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that the group lets this member read."""
        places = self._member.assignment if self._member is not None else ()
        return frozenset(
            TopicPartition(self._names[topic_id], index)
            for topic_id, index in places
            if topic_id in self._names
        )

    @property
    def lock_timeout_ms(self) -> int:
        """How long acquired records belong to this member, as a broker told it; 0 before the first fetch."""
        return max((leader.lock_timeout_ms for leader in self._leaders.values()), default=0)

    # -- records -----------------------------------------------------------------------------------

    async def poll(self, timeout_ms: float) -> list[ShareRecord]:
        """Records of one partition, acquired by this member; none when the time is up.

        KafkaError when the group or a topic refuses the member. With explicit acknowledgements, ValueError if
        records of the poll before are not acknowledged.
        """
        if self.settings.explicit and self._deliveries.has_open:
            raise ValueError("All records must be acknowledged in explicit acknowledgement mode.")
        self._hand_over()
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout_ms / 1000
        while True:
            self._changed.clear()
            self._take_part()
            records = self._pop_records()
            left_s = until - loop.time()
            if records or left_s <= 0:
                self._send_what_is_pending()
                return records
            await self._start_fetches(left_s)
            await self._wait(left_s)
            self._harvest()

    def _take_part(self) -> None:
        if self._member is None and self.topics:
            self._member = ShareMember(
                self.cluster,
                self.settings.group_id,
                self.member_id,
                self._changed.set,
                self.settings.rack_id,
            )
            self._member.start(self.topics)
        if self._member is not None and self._member.failure is not None:
            raise self._member.failure

    def _pop_records(self) -> list[ShareRecord]:
        while self._held:
            delivery = self._held.popleft()
            if delivery.acquired.damage is not None:
                log.warning("rejecting records: %s", delivery.acquired.damage)
            self._deliveries.add(delivery)
            if delivery.acquired.records:
                return delivery.acquired.records
            self._hand_over()  # only gaps
        return []

    async def _wait(self, left_s: float) -> None:
        """Wait until a fetch is complete, the assignment changed, or it is time to look again."""
        is_waiting_for_leaders = bool(self._not_before) or not self._fetches
        pause_s = min(left_s, RETRY_S) if is_waiting_for_leaders else left_s
        changed = asyncio.ensure_future(self._changed.wait())
        try:
            await asyncio.wait(
                (*self._fetches.values(), changed), timeout=pause_s, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            changed.cancel()

    # -- fetches -----------------------------------------------------------------------------------

    async def _start_fetches(self, left_s: float) -> None:
        """Ask each leader that owes no response for the partitions that it leads."""
        by_node = await self._wanted()
        limits = self.settings.limits
        wait_ms = max(1, min(limits.wait_ms_max, int(left_s * 1000)))
        request = ShareLimits(
            wait_ms, limits.bytes_min, limits.bytes_max, limits.records_max, limits.acquire_mode
        )
        nodes = list(by_node)
        if limits.acquire_mode is AcquireMode.RECORD_LIMIT and nodes:
            nodes = [] if self._fetches else [nodes[self._next_leader % len(nodes)]]
            self._next_leader += 1
        for node in nodes:
            if node.id not in self._fetches:
                fetch = self._leader(node).fetch(by_node[node], request)
                self._fetches[node.id] = asyncio.create_task(fetch)
        self._send_what_is_pending()

    async def _wanted(self) -> dict[Node, dict[Place, TopicPartition]]:
        """The assigned partitions by their leaders, but for those that wait for a while."""
        now = asyncio.get_running_loop().time()
        self._not_before = {place: at for place, at in self._not_before.items() if at > now}
        assignment = self._member.assignment if self._member is not None else frozenset()
        free = [place for place in sorted(assignment) if place not in self._not_before]
        if any(self._leader_of(place) is None for place in free):
            try:
                await self.cluster.refresh(self.topics)
            except Unreachable as error:
                if not self.cluster.may_retry:
                    raise
                log.warning("share group %s: %s", self.settings.group_id, error)
            self._names |= self.cluster.topology.topic_names()
        found: dict[Node, dict[Place, TopicPartition]] = {}
        for place in free:
            leader = self._leader_of(place)
            if leader is None:
                self._postpone([place])
            else:
                topic_partition = TopicPartition(self._names[place[0]], place[1])
                found.setdefault(leader, {})[place] = topic_partition
        return found

    def _leader_of(self, place: Place) -> Node | None:
        name = self._names.get(place[0])
        if name is None:
            return None
        topic = self.cluster.topology.topics.get(name)
        if topic is None or topic.topic_id != place[0]:
            return None
        return self.cluster.topology.leader(TopicPartition(name, place[1]))

    def _leader(self, node: Node) -> ShareLeader:
        found = self._leaders.get(node.id)
        if found is None:
            session = ShareSession(self.settings.group_id, self.member_id)
            found = ShareLeader(self.cluster, node, session, self._purpose, self._report)
            self._leaders[node.id] = found
        found.node = node
        return found

    def _harvest(self) -> None:
        """Hold what complete fetches brought."""
        for node_id, task in list(self._fetches.items()):
            if not task.done():
                continue
            del self._fetches[node_id]
            leader = self._leaders[node_id]
            try:
                found = task.result()
            except (KafkaError, ClientError) as error:
                self._handle_failure(leader, error)
                continue
            for place, data in found:
                if data.error_code:
                    self._handle_error(place, error_of(data.error_code, data.error_message))
                if data.acquired_records:
                    topic_partition = TopicPartition(self._names.get(place[0], ""), place[1])
                    self._held.append(Delivery(leader, place, read_acquired(topic_partition, data)))

    def _handle_failure(self, leader: ShareLeader, error: KafkaError | ClientError) -> None:
        places = [place for place in self._assigned() if self._leader_of(place) == leader.node]
        if isinstance(error, KafkaError) and error.code in SESSION_ERRORS:
            log.info("share session with node %d begins anew: %s", leader.node.id, error)
        elif isinstance(error, Unreachable) or (isinstance(error, KafkaError) and error.code.retriable):
            self._postpone(places)
            self.cluster.forget_leaders({self._names[topic_id] for topic_id, _ in places})
        else:
            raise error

    def _handle_error(self, place: Place, error: KafkaError) -> None:
        if not error.code.retriable and error.code not in MOVED:
            raise KafkaError(error.code, f"{self._names.get(place[0], '')}-{place[1]}: {error.message}")
        self._postpone([place])
        if place[0] in self._names:
            self.cluster.forget_leaders([self._names[place[0]]])

    def _assigned(self) -> frozenset[Place]:
        return self._member.assignment if self._member is not None else frozenset()

    def _postpone(self, places: Iterable[Place]) -> None:
        not_before = asyncio.get_running_loop().time() + RETRY_S
        self._not_before.update(dict.fromkeys(places, not_before))

    # -- acknowledgements --------------------------------------------------------------------------

    def acknowledge(self, record: ShareRecord, kind: AcknowledgeType = AcknowledgeType.ACCEPT) -> None:
        """Say what becomes of a record; sent with the next poll or commit. A renewed record stays with this
        member, to be acknowledged again later."""
        if not self.settings.explicit:
            raise ValueError("Implicit acknowledgement of delivery is being used.")
        self._deliveries.acknowledge(TopicPartition(record.topic, record.partition), record.offset, kind)

    async def commit(self) -> dict[TopicPartition, Failure | None]:
        """Send acknowledgements now, and wait: what became of them, by partition."""
        self._hand_over()
        results: dict[TopicPartition, Failure | None] = {}
        leaders = [leader for leader in self._leaders.values() if leader.pending]
        for part in await asyncio.gather(*(leader.acknowledge() for leader in leaders)):
            for (topic_id, index), failure in part.items():
                results[TopicPartition(self._names.get(topic_id, ""), index)] = failure
        return results

    def _hand_over(self) -> None:
        """Give the acknowledgements of delivered records to the leaders that they came from."""
        accepts_all = not self.settings.explicit
        for delivery, batches in self._deliveries.pop_acknowledgements(accepts_all=accepts_all):
            delivery.leader.add(delivery.place, batches)

    def _send_what_is_pending(self) -> None:
        """Send acknowledgements for which no fetch is due."""
        for node_id, leader in self._leaders.items():
            if leader.pending and node_id not in self._fetches:
                task: asyncio.Task[object] = asyncio.create_task(leader.acknowledge())
                self._acknowledging.add(task)
                task.add_done_callback(self._acknowledging.discard)

    def _report(self, place: Place, batches: list[AckBatch], failure: Failure | None) -> None:
        topic_partition = TopicPartition(self._names.get(place[0], ""), place[1])
        if failure is not None:
            log.info("acknowledgements of %s failed: %s", topic_partition, failure)
        if self._on_acknowledged is not None:
            self._on_acknowledged(topic_partition, batches, failure)

    # -- the end -----------------------------------------------------------------------------------

    async def close(self) -> None:
        """Send explicit acknowledgements, end the share sessions and leave the group: brokers release all
        records that were not acknowledged."""
        if self.settings.explicit:
            self._hand_over()
        for task in self._fetches.values():
            task.cancel()
        await asyncio.gather(*self._fetches.values(), *self._acknowledging, return_exceptions=True)
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await asyncio.gather(*(each.acknowledge(closes=True) for each in self._leaders.values()))
        except TimeoutError:
            log.warning("share group %s: not all brokers were told of the end", self.settings.group_id)
        self._leaders.clear()
        if self._member is not None:
            await self._member.stop()
            self._member = None
        await self.cluster.disconnect(self._purpose)
