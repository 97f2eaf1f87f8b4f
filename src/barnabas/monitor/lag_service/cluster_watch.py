"""One cluster under watch: what is read of it, how often, and where it ends up.

In: `WatchSettings`. Out: a `ClusterLag` that stays up to date, whether it is ready, and what fails. Commits
come from `__consumer_offsets` where it can be read, else from requests for committed offsets; share groups
keep their offsets elsewhere and are always asked for. Does not know: HTTP.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.groups import GroupListing
from barnabas.client.cluster import Cluster
from barnabas.client.core.address import Address
from barnabas.client.core.errors import NoTopic
from barnabas.client.core.topology import TopicPartition, Topology
from barnabas.metadata.steps import Steps
from barnabas.monitor.lag.cluster_lag import Broker, ClusterLag, GroupInfo, LagRules
from barnabas.monitor.lag.commit_records import CommitRecords
from barnabas.monitor.lag.groups import GroupPartition
from barnabas.monitor.lag.topics import UNKNOWN, Placement
from barnabas.monitor.lag_metrics.kminion import Extras
from barnabas.monitor.lag_service.cluster_details import ClusterDetails
from barnabas.monitor.lag_service.group_reader import SHARE, GroupReader, is_consuming
from barnabas.monitor.lag_service.offsets_topic import TOPIC, OffsetsTopic
from barnabas.monitor.lag_service.protocol_reader import ProtocolReader, read_ends, read_starts
from barnabas.monitor.lag_service.record_times import LOOKUPS_MAX, RecordTimes
from barnabas.monitor.lag_service.repeating import Jobs
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.runtime.pieces import Pieces
from barnabas.security.clients.client_security import PLAINTEXT, ClientSecurity

log = logging.getLogger("barnabas.lag")

CHANGED_GROUPS_S = 1.0
CHANGED_GROUPS_MAX = 500  # described at once; the others wait for the next turn
SOURCE_RETRY_S = 60.0
NEW_TOPIC_RETRY_S = 5.0
PLACES_A_STEP = 200
ENDS, COMMITS, GROUPS = "ends", "commits", "groups"  # jobs
AUTO, FROM_TOPIC, FROM_PROTOCOL = "auto", "topic", "protocol"
REFUSED = (
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)


@dataclass(frozen=True, slots=True)
class WatchSettings:
    name: str
    bootstrap: tuple[Address, ...]
    security: ClientSecurity = PLAINTEXT
    client_id: str = "barnabas-lag"
    rules: LagRules = field(default_factory=LagRules)
    source: str = AUTO
    from_latest: bool = False
    offsets_topic: str = TOPIC
    topic_refresh_s: float = 60.0
    offset_refresh_s: float = 5.0
    start_refresh_s: float = 60.0
    groups_refresh_s: float = 60.0
    commits_poll_s: float = 5.0
    details_refresh_s: float = 300.0
    history_interval_s: float = 30.0
    lookups_max: int = LOOKUPS_MAX


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class ClusterWatch:
    def __init__(self, settings: WatchSettings, pieces: Pieces) -> None:
        self.settings = settings
        self.lag = ClusterLag(settings.name, settings.rules)
        self.client = Cluster(
            settings.bootstrap,
            client_id=settings.client_id,
            security=settings.security,
            waits_for_bootstrap=True,
        )
        self.jobs = Jobs(settings.name, log)
        self.records = CommitRecords(self.lag)
        self.details = ClusterDetails(Admin(self.client), self.lag)
        self.source = ""  # of commits: `topic` or `protocol`, once it is known
        self.poll_ms = 0.0  # how long the last reading of ends took
        self._pieces = pieces
        self._admin = Admin(self.client)
        self._groups = GroupReader(self._admin)
        self._times = RecordTimes(self.client, settings.lookups_max)
        self._reader = ProtocolReader(self._admin, self.lag, self._times)
        self._follower: OffsetsTopic | None = None
        self._listings: dict[str, GroupListing] = {}
        self._topics_known = asyncio.Event()
        self._has_ends = self._has_commits = self._has_groups = False
        self._follow_after_s = 0.0  # when the topic is tried again

    def why_not_ready(self) -> str | None:
        """A sentence while lag of this cluster cannot be told, or was read too long ago."""
        settings, name, stale = self.settings, self.lag.name, self.jobs.why_stale
        if not self._has_ends:
            return f"cluster {name}: {self.jobs.problems.get('ends', 'its topics are not read yet')}"
        follower = self._follower
        if not (self._has_commits or (follower is not None and follower.is_caught_up)):
            return f"cluster {name}: its commits are not read yet"
        if not self._has_groups:
            return f"cluster {name}: its groups are not described yet"
        for what, job, interval_s in (
            ("ends of partitions", ENDS, settings.offset_refresh_s),
            ("commits", COMMITS, settings.commits_poll_s),
            ("groups", GROUPS, settings.groups_refresh_s),
        ):
            reason = stale(job, interval_s)
            if reason is not None:
                return f"cluster {name}: {what}: {reason}"
        return None

    def extras(self) -> Extras:
        """The part of kminion's metrics beside lag."""
        return Extras(
            is_up=not self.jobs.problems,
            records_read=self.records.records_read,
            version=self.details.version,
            broker_bytes=self.details.broker_bytes,
            topic_bytes=self.details.topic_bytes,
        )

    def start(self) -> None:
        settings, start = self.settings, self.jobs.start
        start("topics", self._read_topics, settings.topic_refresh_s)
        start(ENDS, self._read_ends, settings.offset_refresh_s)
        start("starts", self._read_starts, settings.start_refresh_s, at_once=False)
        start(GROUPS, self._read_groups, settings.groups_refresh_s)
        start("changed groups", self._read_changed_groups, CHANGED_GROUPS_S, at_once=False)
        start(COMMITS, self._read_commits, settings.commits_poll_s)
        start("offsets of share groups", self._read_share_groups, settings.commits_poll_s)
        start("timestamps", self._read_times, settings.offset_refresh_s)
        start("history", self._sample, settings.history_interval_s, at_once=False)
        start("details", self._read_details, settings.details_refresh_s)

    async def stop(self) -> None:
        await self.jobs.stop()
        await self.client.close()

    @property
    def _may_follow(self) -> bool:
        return self.settings.source != FROM_PROTOCOL and time.monotonic() >= self._follow_after_s

    # Topics

    async def _read_topics(self) -> None:
        self._apply_topology(await self.client.retrying(lambda: self.client.refresh(None)))
        if self._topics_known.is_set():
            await self.jobs.run("settings of new topics", self.details.read_new_settings)
        self._topics_known.set()

    def _apply_topology(self, topology: Topology) -> None:
        lag = self.lag
        lag.brokers = tuple(
            Broker(node.id, node.host, node.port, node.rack) for _, node in sorted(topology.nodes.items())
        )
        lag.cluster_id, lag.controller_id = topology.cluster_id or "", topology.controller_id
        lag.set_topics(
            {
                topic.name: (
                    [
                        Placement(each.leader, each.replicas, each.isr)
                        for _, each in sorted(topic.partitions.items())
                    ],
                    topic.internal,
                )
                for topic in topology.topics.values()
                if not topic.error_code
            }
        )

    def _partitions(self) -> list[TopicPartition]:
        return [
            TopicPartition(topic.name, index)
            for topic in self.lag.topics.values()
            if topic.is_known
            for index in range(len(topic.partitions))
        ]

    async def _read_ends(self) -> None:
        began = time.perf_counter()
        if any(not topic.is_known for topic in self.lag.topics.values()) or not self.lag.topics:
            await self._read_topics()
        await read_ends(self._admin, self.lag, self._partitions(), now_ms())
        self.poll_ms = (time.perf_counter() - began) * 1000
        self._has_ends = True
        await read_starts(self._admin, self.lag, [at for at in self._partitions() if self._is_new(at)])

    def _is_new(self, at: TopicPartition) -> bool:
        offsets = self.lag.topics[at.topic].partitions[at.partition]
        return offsets.start == UNKNOWN and offsets.end != UNKNOWN

    async def _read_starts(self) -> None:
        await read_starts(self._admin, self.lag, self._partitions())

    async def _read_details(self) -> None:
        await self._topics_known.wait()
        await self.details.read()

    # Groups

    async def _read_groups(self) -> None:
        self._listings = await self._groups.listings()
        watched = [each for each in self._listings.values() if self._is_watched(each)]
        await self._describe(watched)
        if self.source == FROM_PROTOCOL:
            self.lag.retain_groups(each.group_id for each in watched)
        else:  # commits of a group that was just made may come before the list that names it
            recent = [
                group.group_id
                for group in self.lag.groups.values()
                if group.last_commit_ms > now_ms() - 2 * self.settings.groups_refresh_s * 1000
            ]
            self.lag.retain_groups([*(each.group_id for each in watched), *recent])
        self.lag.expire(now_ms())
        self._has_groups = True

    def _is_watched(self, listing: GroupListing) -> bool:
        return is_consuming(listing) and self.lag.admits(listing.group_id)

    async def _describe(self, groups: list[GroupListing]) -> None:
        for name, info in (await self._groups.describe(groups)).items():
            if isinstance(info, GroupInfo):
                self.lag.describe(info)
            elif info.code == ErrorCode.GROUP_ID_NOT_FOUND:
                self._listings.pop(name, None)
                known = self.lag.groups.get(name)
                if known is not None:  # its offsets may live on: tombstones remove them one by one
                    known.members, known.state = (), "Dead"

    async def _read_changed_groups(self) -> None:
        if self._follower is None or not self._follower.is_caught_up:
            return
        changed = self._follower.groups_changed
        chosen = [changed.pop() for _ in range(min(len(changed), CHANGED_GROUPS_MAX))]
        if any(each not in self._listings for each in chosen):
            self._listings = await self._groups.listings()
        listings = [self._listings[each] for each in chosen if each in self._listings]
        await self._describe([each for each in listings if self._is_watched(each)])

    # Commits

    async def _read_commits(self) -> None:
        """Follow the topic for as long as it can be read; else ask the coordinators once."""
        if not self._has_ends:  # commits before the first ends would have no lag
            await self.jobs.run(ENDS, self._read_ends)
        if self._may_follow:
            try:
                await self._follow()
            except (NoTopic, KafkaError) as error:
                if self.settings.source == FROM_TOPIC or is_temporary(error):
                    raise
                # A new cluster makes the topic for its first group; rights change rarely.
                pause_s = NEW_TOPIC_RETRY_S if isinstance(error, NoTopic) else SOURCE_RETRY_S
                self._follow_after_s = time.monotonic() + pause_s
                self._switch_to(FROM_PROTOCOL, str(error))
        await self._poll_commits()

    async def _follow(self) -> None:
        settings = self.settings
        # Its long fetches go by connections of their own, so requests of other jobs do not wait behind them.
        self._follower = OffsetsTopic(
            self.client,
            self.records,
            self._pieces,
            now_ms,
            from_latest=settings.from_latest,
            topic=settings.offsets_topic,
            on_poll=lambda: self.jobs.note_success(COMMITS),
        )
        self._switch_to(FROM_TOPIC, "")
        try:
            await self._follower.follow()
        finally:
            self._follower = None

    def _switch_to(self, source: str, reason: str) -> None:
        if self.source == source:
            return
        if self.source:  # commits of both sources are in different orders
            for group in self.lag.groups.values():
                for _, _, place in group.partitions():
                    del place.window[:]
                    place.commit_count = 0
        if reason:
            log.info(
                "%s: commits are read by requests, because %s cannot be read: %s",
                self.lag.name,
                self.settings.offsets_topic,
                reason,
            )
        self.source = source

    async def _poll_commits(self) -> None:
        self._switch_to(FROM_PROTOCOL, "")
        listings = (await self._groups.listings()).values()
        others = [each for each in listings if each.type != SHARE and self._is_watched(each)]
        await self._reader.read_commits(others, now_ms())
        self._has_commits = True

    async def _read_share_groups(self) -> None:
        shares = [each for each in self._listings.values() if each.type == SHARE and self._is_watched(each)]
        if shares:
            await self._reader.read_commits(shares, now_ms())

    # Time

    async def _read_times(self) -> None:
        await self._times.read(await self._pieces.run(self._places_behind()))

    def _places_behind(self) -> Steps[list[tuple[TopicPartition, GroupPartition]]]:
        found: list[tuple[TopicPartition, GroupPartition]] = []
        done = 0
        for group in list(self.lag.groups.values()):
            for topic, places in list(group.topics.items()):
                for index, place in places.items():
                    if place.lacks_time:
                        found.append((TopicPartition(topic, index), place))
                if (done := done + len(places)) >= PLACES_A_STEP:
                    done = 0
                    yield
        return found

    async def _sample(self) -> None:
        await self._pieces.run(self.lag.sample(now_ms()))


def is_temporary(error: Exception) -> bool:
    """Whether the topic may be readable in a moment, so that its commits are worth waiting for."""
    return isinstance(error, KafkaError) and error.code not in REFUSED


def extras_of(watches: Mapping[str, ClusterWatch]) -> dict[str, Extras]:
    return {name: watch.extras() for name, watch in watches.items()}
