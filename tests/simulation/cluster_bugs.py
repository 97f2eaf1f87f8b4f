"""Bugs of clusters to plant, one at a time: each breaks one promise, and the simulation must notice.

As in `bugs`: where a bug is planted is as close as can be to the place where a person would have made it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from barnabas.broker.broker import Broker
from barnabas.broker.coordinators.host import CoordinatorHost
from barnabas.broker.fetch import follower_fetch, partition_data
from barnabas.broker.partitions.partition import Partition
from barnabas.broker.replicas.leader_fetcher import LeaderFetcher
from barnabas.broker.wire.channel import Channel
from barnabas.broker.wire.login import LoginChannel
from barnabas.controller import alter_partition, partition_change
from barnabas.metadata.partitions import PartitionRegistration
from barnabas.quorum.metadata_replica import MetadataReplica
from barnabas.quorum.quorum_voters import LocalVoterReporter, VoterChanges
from barnabas.raft import election_state
from barnabas.raft.election_state import ElectionState
from barnabas.raft.leader import Leader
from barnabas.raft.member import Member
from barnabas.raft.messages import Verdict
from barnabas.replication.partition_state import PartitionState
from barnabas.security.sasl import scram
from barnabas.simulation.histories.cluster import ClusterHistory
from barnabas.simulation.histories.cluster_clients import (
    ClusterGroupsHistory,
    ClusterSharesHistory,
    ClusterTransactionsHistory,
)
from barnabas.simulation.histories.cluster_logins import ClusterLoginsHistory
from barnabas.simulation.histories.cluster_stage import KILLED, ONE_LOST, SYNCED, ClusterPromise
from barnabas.simulation.histories.records import Known
from barnabas.simulation.world.cluster import Shape
from barnabas.simulation.world.faults import Fault, Kind, Plan
from barnabas.simulation.world.history import Make
from barnabas.storage.logs.log import Log
from barnabas.storage.logs.syncing import SyncWork
from barnabas.storage.logs.truncation import Truncation

from .bugs import Plant

APART = Shape((1,), (2, 3, 4))
DYNAMIC = Shape((1, 2, 3), (1, 2, 3), is_dynamic=True)
CONTROLLERS_APART = Shape((1, 2, 3), (4, 5, 6))
TOGETHER = Shape((1, 2, 3), (1, 2, 3))
# Places of nodes in a shape, as the numbers of faults count them.
CONTROLLER, BROKERS, ALL = 0, (1, 2, 3), (0, 1, 2)


@dataclass(frozen=True, slots=True)
class ClusterBug:
    """A bug, and histories that are made to find it: a shape, a promise, and faults that provoke it."""

    name: str
    plant: Plant
    make: Make
    first: int = 0  # a seed to begin with: one that finds it is not far
    is_long: bool = False  # it takes too long for `make test`


CLUSTER_BUGS: list[ClusterBug] = []
Provoke = Callable[[Random], Plan]


def bug(
    provoke: Provoke,
    shape: Shape = APART,
    promise: ClusterPromise = KILLED,
    history: type[
        ClusterHistory | ClusterGroupsHistory | ClusterTransactionsHistory | ClusterSharesHistory
    ] = ClusterHistory,
    producers: int = 5,
    *,
    changes_voters: bool = False,
    first: int = 0,
    is_long: bool = False,
) -> Callable[[Plant], Plant]:
    def make(seed: int) -> Any:
        made = history(seed)
        made.shape, made.cluster_promise, made.faults = shape, promise, provoke(Random(seed))
        made.changes_voters = changes_voters
        if isinstance(made, ClusterHistory):
            made.known = [Known() for _ in range(3)]  # so that every broker leads
            made.producers, made.readers, made.administrators, made.pause_s = producers, 1, 1, 0.03
        return made

    def register(plant: Plant) -> Plant:
        CLUSTER_BUGS.append(ClusterBug(plant.__name__.replace("_", " "), plant, make, first, is_long))
        return plant

    return register


# -- what provokes them ------------------------------------------------------------------------------


def one_after_another(
    kind: Kind, duration_s: float, places: tuple[int, ...] = BROKERS, calm_s: float = 1.0
) -> Provoke:
    """With a while between them, in which all may come back in sync."""

    def provoke(rng: Random) -> Plan:
        count = len(places) if places == ALL else len(BROKERS) + 1
        first = rng.uniform(0.5, 1.0)
        times = [first + turn * (duration_s + calm_s) for turn in range(int(7.0 / (duration_s + calm_s)))]
        return [Fault(round(at, 3), kind, duration_s, rng.choice(places) + 4 * count) for at in times]

    return provoke


def all_at_once(kind: Kind, duration_s: float, places: tuple[int, ...] = ALL) -> Provoke:
    def provoke(rng: Random) -> Plan:
        times = [round(at + rng.uniform(0.0, 0.7), 3) for at in (1.5, 4.0, 6.3)]
        return [Fault(at, kind, duration_s, place + 12 * len(places)) for at in times for place in places]

    return provoke


def away_from_the_controller(kind: Kind, duration_s: float) -> Provoke:
    """The link between the controller, which is the first of four nodes, and one of the brokers."""

    def provoke(rng: Random) -> Plan:
        return [
            Fault(round(at + rng.uniform(0.0, 0.3), 3), kind, duration_s, 4 * rng.randrange(3))
            for at in (0.8, 4.2)
        ]

    return provoke


def the_last_one_goes(rng: Random) -> Plan:
    """Two brokers of three go, then the third, and the first two are back before it."""
    first, second, last = rng.sample(BROKERS, 3)
    return [
        Fault(0.8, Kind.KILL, 4.2, first + 16),
        Fault(1.0, Kind.KILL, 4.2, second + 16),
        Fault(4.6, Kind.KILL, 2.5, last + 16),
    ]


def killed_after_a_vote(rng: Random) -> Plan:
    """The leader of the quorum is cut off; of the others one dies when it has voted, one when it has won;
    then the first is back, and meets the one who voted. Numbers choose a node and an operation of its disk.
    """
    faults = []
    for at in (1.0, 4.5):
        leader, voter, winner = rng.sample(range(3), 3)
        faults += [
            Fault(at, Kind.ISOLATE, 2.0, leader + 6),
            Fault(at, Kind.KILL_AT_OPERATION, 0.1, voter + 6),
            Fault(at, Kind.KILL_AT_OPERATION, 2.8, winner + 12),
        ]
    return faults


def one_loses_its_disk(rng: Random) -> Plan:
    return [Fault(round(rng.uniform(1.0, 3.0), 3), Kind.WIPE, 1.0, rng.randrange(3) + 6)]


# -- partitions --------------------------------------------------------------------------------------


@bug(one_after_another(Kind.ISOLATE, 2.6))
def acknowledge_before_the_isr_has_it(patch: pytest.MonkeyPatch) -> None:
    """What the leader has is taken to be committed."""

    def advance(state: PartitionState, now_ms: int) -> bool:
        if state.log_end_offset <= state.high_watermark:
            return False
        state.high_watermark = state.log_end_offset
        return True

    patch.setattr(PartitionState, "advance", advance)


@bug(one_after_another(Kind.ISOLATE, 5.5))
def skip_the_truncation(patch: pytest.MonkeyPatch) -> None:
    """A leader does not tell a follower that they have parted."""
    patch.setattr(follower_fetch, "divergence", lambda *_: None)
    patch.setattr(partition_data, "divergence", lambda *_: None)


@bug(one_after_another(Kind.ISOLATE, 5.5), is_long=True)
def fetch_into_a_log_that_is_being_cut(patch: pytest.MonkeyPatch) -> None:
    """A partition goes on being fetched while a thread is at its files."""

    def cut(fetcher: LeaderFetcher, key: Any, each: Any, truncation: Truncation | None) -> None:
        each.is_delayed = each.is_in_repair = False
        fetcher._fetch(key)
        if truncation is not None:  # other work is before it
            asyncio.get_running_loop().call_later(0.1, fetcher._broker.truncations.start, truncation)

    patch.setattr(LeaderFetcher, "_cut", cut)
    patch.setattr(LeaderFetcher, "_is_outdated", lambda *_: False)
    patch.setattr(Log, "refuse_while_truncating", lambda _: None)


@bug(one_after_another(Kind.ISOLATE, 2.6))
def cut_a_log_when_it_has_grown_again(patch: pytest.MonkeyPatch) -> None:
    """Where to cut is decided now, and the log is cut a little later, whatever was fetched since and whoever
    leads by then."""
    truncate = Partition.truncate

    def decide(partition: Partition, offset: int) -> Truncation | None:
        def cut() -> None:
            begun = truncate(partition, offset)
            if begun is not None:
                begun.finish()

        asyncio.get_running_loop().call_later(0.3, cut)
        return None

    patch.setattr(Partition, "truncate", decide)


@bug(away_from_the_controller(Kind.CUT_NODES, 3.2))
def count_a_fenced_replica(patch: pytest.MonkeyPatch) -> None:
    """Followers of brokers that are gone, or in a former life, may be in sync."""
    patch.setattr(Broker, "may_join", lambda *_: True)
    patch.setattr(alter_partition, "is_eligible", lambda *_: True)


@bug(the_last_one_goes)
def elect_whoever_is_there(patch: pytest.MonkeyPatch) -> None:
    elect = partition_change._elect

    def elect_any(partition: Any, replicas: Any, isr: Any, elr: Any, rules: Any, election: Any) -> Any:
        leader, unclean = elect(partition, replicas, isr, elr, rules, election)
        if leader < 0:
            alive = [each for each in replicas if rules.may_lead(each)]
            leader = alive[0] if alive else leader
        return leader, unclean

    patch.setattr(partition_change, "_elect", elect_any)


@bug(one_after_another(Kind.STOP, 1.0))
def elect_without_a_new_epoch(patch: pytest.MonkeyPatch) -> None:
    """Who leads changes, and the number by which old leaders are told from new ones does not."""
    merge = PartitionRegistration.merge

    def keep(partition: PartitionRegistration, change: Any) -> PartitionRegistration:
        return merge(partition, change)._replace(leader_epoch=partition.leader_epoch)

    patch.setattr(PartitionRegistration, "merge", keep)


@bug(one_after_another(Kind.STOP, 1.0))
def forget_the_high_watermark_of_the_last_leader(patch: pytest.MonkeyPatch) -> None:
    """A new leader begins at nothing committed and counts anew."""
    lead = PartitionState.become_leader

    def begin(state: PartitionState, leader_epoch: int, *rest: Any, **options: Any) -> bool:
        if leader_epoch != state.leader_epoch:
            state.high_watermark = 0
        return lead(state, leader_epoch, *rest, **options)

    patch.setattr(PartitionState, "become_leader", begin)


@bug(one_after_another(Kind.KILL, 2.5), first=1, is_long=True)
def forget_the_producers_of_the_last_leader(patch: pytest.MonkeyPatch) -> None:
    """A follower copies batches and not what they say of their producers."""

    def stage(partition: Partition, batch: memoryview, header: Any, now_ms: int) -> None:
        partition.log.stage(batch, header, now_ms)
        if not partition.is_dirty:
            partition.is_dirty = True
            partition._tick.staged(partition)

    patch.setattr(Partition, "_stage_followed", stage)


@bug(all_at_once(Kind.POWER, 0.4, BROKERS), promise=SYNCED)
def answer_followers_before_the_sync(patch: pytest.MonkeyPatch) -> None:
    """Logs that must be synced are not."""
    patch.setattr(SyncWork, "_sync_segment", lambda *_: None)


# -- the quorum --------------------------------------------------------------------------------------


@bug(one_after_another(Kind.ISOLATE, 1.3, ALL), TOGETHER, first=1)
def commit_metadata_alone(patch: pytest.MonkeyPatch) -> None:
    """The active controller does not wait for the other voters."""

    def advance(leader: Leader) -> bool:
        committed = leader._progress[leader.node_id].end_offset
        if committed <= leader.high_watermark:
            return False
        leader.high_watermark = committed
        return True

    patch.setattr(Leader, "_advance", advance)


@bug(one_after_another(Kind.ISOLATE, 1.25, ALL, 0.1), TOGETHER, first=1)
def accept_an_old_epoch(patch: pytest.MonkeyPatch) -> None:
    """Whoever says to lead is followed, though there was an election since."""
    on_begin_epoch = Member.on_begin_epoch

    def believe(member: Member, received: Any, now_ms: int) -> Verdict:
        if received.epoch < member.epoch:
            member.state = ElectionState(received.epoch)
        return on_begin_epoch(member, received, now_ms)

    patch.setattr(Member, "on_begin_epoch", believe)


@bug(killed_after_a_vote, CONTROLLERS_APART, producers=1, first=8)
def lose_the_vote_on_restart(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MetadataReplica, "_load_election_state", lambda _: ElectionState())


@bug(all_at_once(Kind.POWER, 0.2), TOGETHER, SYNCED)
def forget_to_sync_the_quorum_state(patch: pytest.MonkeyPatch) -> None:
    def save(replica: MetadataReplica, state: Any) -> None:
        membership = replica.membership
        text = election_state.encode(state, membership.kraft_version, membership.voters.ids)
        replica._disk.create(replica._state_path, text.encode(), sync=False)
        replica.election_state = state

    patch.setattr(MetadataReplica, "save_election_state", save)


@bug(all_at_once(Kind.POWER, 0.2), TOGETHER, SYNCED)
def forget_to_sync_the_metadata(patch: pytest.MonkeyPatch) -> None:
    async def sync(replica: MetadataReplica) -> None:
        return None

    patch.setattr(MetadataReplica, "sync", sync)


@bug(one_loses_its_disk, DYNAMIC, ONE_LOST, is_long=True)
def let_a_lost_disk_keep_its_vote(patch: pytest.MonkeyPatch) -> None:
    """A controller whose disk is new does not ask to take the place of the old one."""
    patch.setattr(LocalVoterReporter, "_next", lambda _: None)


@bug(lambda _: [], DYNAMIC, changes_voters=True, first=1, is_long=True)
def lead_on_without_a_vote(patch: pytest.MonkeyPatch) -> None:
    """A leader that was taken out of the voters does not go when that is committed."""
    patch.setattr(VoterChanges, "_removed", lambda _, committing: None)


# -- coordinators ------------------------------------------------------------------------------------


@bug(one_after_another(Kind.KILL, 2.5), history=ClusterGroupsHistory)
def begin_without_what_the_last_coordinator_knew(patch: pytest.MonkeyPatch) -> None:
    def start(host: CoordinatorHost[Any]) -> None:
        host.partition.before_write = host.journal.flush
        host.partition.on_lost = host.reload_after
        host.partition.wait(host._on_high_watermark)
        host._activate()

    patch.setattr(CoordinatorHost, "start", start)


# -- logins ------------------------------------------------------------------------------------------


@bug(lambda _: [], history=ClusterLoginsHistory)
def take_any_proof_for_the_right_one(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(scram.hmac, "compare_digest", lambda one, other: True)


@bug(lambda _: [], history=ClusterLoginsHistory)
def serve_those_who_do_not_log_in(patch: pytest.MonkeyPatch) -> None:
    guarded = LoginChannel._request

    def request(channel: LoginChannel, frame: memoryview) -> None:
        is_of_a_login = int.from_bytes(frame[:2], "big") in (17, 18, 36)
        (guarded if is_of_a_login else Channel._request)(channel, frame)

    patch.setattr(LoginChannel, "_request", request)
