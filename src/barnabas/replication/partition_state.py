"""The state of one partition on a replica: leader epoch, in-sync replicas, followers' progress, high
watermark.

In: the leader's log end offset, followers' fetch offsets, the ISR that the controller committed. Out: the
high watermark (records below it are on every in-sync replica and may be read), and the ISR change to propose.
While a proposal is pending, the high watermark waits for the larger of both sets (KIP-497).
Does not know: logs, requests to the controller, the clock.
"""

from collections.abc import Callable, Mapping, Sequence

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.replication.follower_progress import NEVER, FollowerProgress

NO_EPOCH = -1
LAG_MS_MAX = 30_000

MayJoin = Callable[[int, int], bool]
"""Whether a broker with this broker epoch may join the ISR: it is registered, not fenced, not shutting
down."""


def any_replica(replica_id: int, broker_epoch: int) -> bool:
    return True


class PartitionState:
    """Invariant: the high watermark never falls, except by truncation, and never passes the log end."""

    __slots__ = (
        "_fetched_ms",
        "_may_join",
        "adding",
        "epoch_start_offset",
        "followers",
        "has_no_followers",
        "high_watermark",
        "isr",
        "lag_ms_max",
        "leader_epoch",
        "log_end_offset",
        "maximal_isr",
        "min_isr",
        "partition_epoch",
        "proposed_isr",
        "replica_id",
    )

    def __init__(
        self,
        replica_id: int,
        log_end_offset: int = 0,
        high_watermark: int = 0,
        *,
        may_join: MayJoin = any_replica,
        lag_ms_max: int = LAG_MS_MAX,
        fetched_ms: Mapping[int, int] | None = None,
    ) -> None:
        """`fetched_ms` has the time of each follower's last fetch of any partition: a caught-up follower does
        not name this partition again."""
        self.replica_id = replica_id  # this broker's
        self.adding: tuple[int, ...] = ()  # replicas that a reassignment adds
        self.leader_epoch = NO_EPOCH
        self.partition_epoch = NO_EPOCH
        self.epoch_start_offset = 0
        self.isr: tuple[int, ...] = ()  # committed; without the replicas whose removal is proposed
        self.maximal_isr: tuple[int, ...] = ()  # all replicas of the committed and the proposed ISR
        self.proposed_isr: tuple[int, ...] | None = None  # sent to the controller, no response yet
        self.min_isr = 1  # `min.insync.replicas`, limited to the number of replicas
        self.lag_ms_max = lag_ms_max
        self.log_end_offset = log_end_offset
        self.high_watermark = min(high_watermark, log_end_offset)
        self.has_no_followers = True  # the high watermark equals the log end offset
        self.followers: dict[int, FollowerProgress] = {}
        self._may_join = may_join
        self._fetched_ms: Mapping[int, int] = {} if fetched_ms is None else fetched_ms

    # -- leading

    def become_leader(
        self,
        leader_epoch: int,
        isr: Sequence[int],
        replicas: Sequence[int] = (),
        partition_epoch: int = NO_EPOCH,
        now_ms: int = 0,
        *,
        was_leading: bool = True,
    ) -> bool:
        """Become leader in an epoch, or adopt a change that the controller committed. True if the high
        watermark moved. In a new epoch the progress of followers is reset.
        """
        replicas = replicas or isr
        is_new_epoch = leader_epoch != self.leader_epoch
        known = self.followers
        self.followers = {
            replica: known.get(replica) or FollowerProgress()
            for replica in replicas
            if replica != self.replica_id
        }
        if is_new_epoch or not was_leading:
            self.epoch_start_offset = self.log_end_offset
            for replica, follower in self.followers.items():
                follower.begin_epoch(self.log_end_offset, now_ms, in_sync=replica in isr)
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch
        self.has_no_followers = not self.followers
        self._commit(tuple(isr))
        return self.advance(now_ms)

    def become_follower(self, leader_epoch: int, partition_epoch: int) -> None:
        """Become follower: from now on the leader's fetch responses set the high watermark."""
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch
        self.followers = {}
        self.has_no_followers = False
        self._commit(())

    def advance_log_end(self, log_end_offset: int, now_ms: int = 0) -> bool:
        """Record an append of the leader. True if the high watermark moved."""
        if self.has_no_followers:
            self.log_end_offset = log_end_offset
            if log_end_offset <= self.high_watermark:
                return False
            self.high_watermark = log_end_offset
            return True
        for replica, follower in self.followers.items():
            if follower.log_end_offset == self.log_end_offset:  # it was caught up until now
                follower.caught_up_ms = max(follower.caught_up_ms, self._fetched_ms.get(replica, NEVER))
        self.log_end_offset = log_end_offset
        return self.advance(now_ms)

    def advance_follower(
        self,
        replica_id: int,
        fetch_offset: int,
        now_ms: int = 0,
        log_start_offset: int = -1,
        broker_epoch: int = NO_EPOCH,
    ) -> bool:
        """Record a follower's fetch: its log ends at `fetch_offset`. True if the high watermark moved."""
        follower = self.followers.get(replica_id)
        if follower is None:
            return False
        if NO_EPOCH != broker_epoch < follower.broker_epoch:
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"broker {replica_id} fetches as of epoch {broker_epoch}, it has {follower.broker_epoch} now",
            )
        had = follower.log_end_offset
        follower.record_fetch(fetch_offset, self.log_end_offset, now_ms)
        follower.log_start_offset = log_start_offset
        follower.broker_epoch = broker_epoch
        return fetch_offset != had and self.advance(now_ms)

    def advance(self, now_ms: int) -> bool:
        """Advance the high watermark if possible; True if it moved. It also waits for followers that are
        caught up but not yet in the ISR, otherwise they could never join. With fewer than
        `min.insync.replicas` in sync it does not move (KIP-966).
        """
        if len(self.isr) < min(self.min_isr, len(self.followers) + 1):
            return False
        high_watermark = self.log_end_offset
        maximal = self.maximal_isr
        for replica, follower in self.followers.items():
            if follower.log_end_offset < high_watermark and (
                replica in maximal
                or (
                    follower.is_caught_up(self.log_end_offset, now_ms, self.lag_ms_max)
                    and self._may_join(replica, follower.broker_epoch)
                )
            ):
                high_watermark = follower.log_end_offset
        if high_watermark <= self.high_watermark:
            return False
        self.high_watermark = high_watermark
        return True

    @property
    def has_enough_in_sync(self) -> bool:
        """Whether `acks=all` can be satisfied by the committed or proposed ISR."""
        return len(self.maximal_isr) >= min(self.min_isr, len(self.followers) + 1)

    # -- the ISR

    @property
    def is_being_added(self) -> bool:
        """Whether a reassignment adds this broker's replica."""
        return self.replica_id in self.adding

    def isr_with(self, replica_id: int) -> tuple[int, ...] | None:
        """The ISR to propose with this follower added; None if it may not join now."""
        follower = self.followers.get(replica_id)
        if (
            follower is None
            or self.proposed_isr is not None
            or replica_id in self.isr
            or follower.log_end_offset < max(self.high_watermark, self.epoch_start_offset)
            or not self._may_join(replica_id, follower.broker_epoch)
        ):
            return None
        return (*self.isr, replica_id)

    def lagging_followers(self, now_ms: int) -> tuple[int, ...]:
        """In-sync followers that were not caught up for `replica.lag.time.max.ms`."""
        if self.proposed_isr is not None or len(self.isr) < 2:
            return ()
        followers, end = self.followers, self.log_end_offset
        return tuple(
            replica
            for replica in self.isr
            if replica != self.replica_id
            and not (replica in followers and followers[replica].is_caught_up(end, now_ms, self.lag_ms_max))
        )

    def propose_isr(self, isr: Sequence[int]) -> None:
        """Record that this ISR was sent to the controller. Until its response, rely on neither ISR alone."""
        wanted = tuple(isr)
        self.proposed_isr = wanted
        self.maximal_isr = (*self.isr, *(replica for replica in wanted if replica not in self.isr))
        self.isr = tuple(replica for replica in self.isr if replica in wanted)

    def commit_isr(self, isr: Sequence[int], leader_epoch: int, partition_epoch: int, now_ms: int) -> bool:
        """Adopt an ISR that the controller has committed. True if the high watermark moved."""
        if leader_epoch != self.leader_epoch or partition_epoch < self.partition_epoch:
            return False  # a newer record of the metadata log was applied already
        self.partition_epoch = partition_epoch
        self._commit(tuple(isr))
        return self.advance(now_ms)

    def withdraw_proposal(self, isr: Sequence[int]) -> None:
        """Return to the committed ISR, because the controller has refused the proposal."""
        self._commit(tuple(isr))

    def _commit(self, isr: tuple[int, ...]) -> None:
        self.isr = self.maximal_isr = isr
        self.proposed_isr = None

    # -- following

    def learn_high_watermark(self, high_watermark: int) -> bool:
        """Adopt the leader's high watermark. True if this one moved."""
        high_watermark = min(high_watermark, self.log_end_offset)
        if high_watermark <= self.high_watermark:
            return False
        self.high_watermark = high_watermark
        return True

    def truncate(self, log_end_offset: int) -> None:
        """Record a truncation: the high watermark is at most the new log end offset."""
        self.log_end_offset = log_end_offset
        self.high_watermark = min(self.high_watermark, log_end_offset)

    def last_stable_offset(self, first_unstable_offset: int | None) -> int:
        """The offset up to which a `read_committed` consumer may read."""
        if first_unstable_offset is None:
            return self.high_watermark
        return min(first_unstable_offset, self.high_watermark)
