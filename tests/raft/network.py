"""Members of a quorum in memory, with late, lost and repeated messages and restarts, and invariants."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from barnabas.raft.election_state import ElectionState
from barnabas.raft.leader import Leader
from barnabas.raft.leader_hint import LeaderHint
from barnabas.raft.log_ends import EpochEnd, compare
from barnabas.raft.member import Member, Timing
from barnabas.raft.messages import (
    BeginEpochReceived,
    EndEpochReceived,
    Outgoing,
    ReplicaKey,
    SendBeginEpoch,
    SendVote,
    Verdict,
    VoteReceived,
)
from barnabas.raft.roles import Elected, Follower
from barnabas.raft.voters import Membership, Voter, VoterEndpoint, VoterSet

TIMING = Timing()


class MemoryLog:
    """Entries are epochs; the first record of an epoch is its LeaderChange."""

    def __init__(self, membership: Membership) -> None:
        self.entries: list[int] = []
        self.membership = membership

    @property
    def end_offset(self) -> int:
        return len(self.entries)

    @property
    def last_epoch(self) -> int:
        return self.entries[-1] if self.entries else 0

    def end_of_epoch(self, epoch: int) -> EpochEnd:
        known = [at for at, found in enumerate(self.entries) if found <= epoch]
        return EpochEnd(self.entries[known[-1]], known[-1] + 1) if known else EpochEnd(0, 0)


@dataclass
class Peer:
    """One member with its log. A restart finds the state in `durable`."""

    voter: Voter
    log: MemoryLog
    durable: ElectionState = field(default_factory=ElectionState)
    progress: Leader | None = None
    high_watermark: int = 0
    is_up: bool = True

    def boot(self, chance: random.Random, now_ms: int) -> None:
        self.member = Member(self.voter, self.log, self.durable, TIMING, chance, now_ms)
        self.progress = None
        self.is_up = True


class Network:
    """`step` does one random thing: deliver or lose a message, advance time, restart a node."""

    def __init__(self, size: int, seed: int, restart_rate: float = 0.01) -> None:
        self.restart_rate = restart_rate
        self.chance = random.Random(seed)
        self.now_ms = 0
        voters = VoterSet.of(
            Voter(id, bytes([id]) * 16, (VoterEndpoint("CONTROLLER", f"host-{id}", 9093),))
            for id in range(1, size + 1)
        )
        membership = Membership(1, voters, 0)
        self.peers = {voter.id: Peer(voter, MemoryLog(membership)) for voter in voters.voters.values()}
        self.outgoing: list[tuple[int, Outgoing]] = []  # (sender id, message) in flight
        self.committed: list[int] = []  # the longest prefix that any leader has committed
        self.leaders: dict[int, int] = {}  # epoch -> leader id
        for peer in self.peers.values():
            peer.boot(self.chance, 0)
            self.carry_out(peer)

    # Events

    def run(self, steps: int, *, faults: bool = True) -> None:
        for _ in range(steps):
            self.step(faults)
            self.check()

    def step(self, faults: bool) -> None:
        dice = self.chance.random()
        if faults and dice < self.restart_rate:
            self.restart(self.chance.choice(list(self.peers.values())))
        elif dice < 0.3:
            self.pass_time(self.chance.randrange(1, 400 if faults else 60))
        elif dice < 0.65 and self.outgoing:
            sender, message = self.outgoing.pop(self.chance.randrange(len(self.outgoing)))
            if faults and self.chance.random() < 0.1:
                return
            if faults and self.chance.random() < 0.05:
                self.outgoing.append((sender, message))
            self.deliver(sender, message, loses_response=faults and self.chance.random() < 0.1)
        elif dice < 0.9:
            self.fetch(self.chance.choice(list(self.peers.values())), faults)
        else:
            self.append(self.chance.choice(list(self.peers.values())))

    def pass_time(self, duration_ms: int) -> None:
        self.now_ms += duration_ms
        for peer in self.peers.values():
            if peer.is_up:
                peer.member.on_timer(self.now_ms)
                self.carry_out(peer)

    def restart(self, peer: Peer) -> None:
        """Restart a node: it loses everything that is not durable. Logs are durable as far as they were
        reported."""
        peer.boot(self.chance, self.now_ms)
        self.carry_out(peer)

    def append(self, peer: Peer) -> None:
        if isinstance(peer.member.role, Elected):
            peer.log.entries.append(peer.member.epoch)
            self.synced(peer)

    def carry_out(self, peer: Peer) -> None:
        ready = peer.member.ready()
        if ready.has_lost:
            peer.progress = None
        if ready.save is not None:
            assert ready.save.epoch >= peer.durable.epoch
            if ready.save.epoch == peer.durable.epoch and peer.durable.leader_id != -1:
                assert ready.save.leader_id == peer.durable.leader_id
            peer.durable = ready.save
        if ready.victory is not None:
            epoch = ready.victory.state.epoch
            assert epoch not in self.leaders, f"epoch {epoch} has two leaders"
            self.leaders[epoch] = peer.voter.id
            peer.progress = Leader(peer.voter.id, epoch, peer.log.end_offset, ready.victory.membership.voters)
            peer.log.entries.append(epoch)
            self.synced(peer)
        self.outgoing += [(peer.voter.id, message) for message in ready.outgoing]
        del self.outgoing[:-200]

    def deliver(self, sender_id: int, message: Outgoing, *, loses_response: bool) -> None:
        sender, target = self.peers[sender_id], self.peers[message.to.id]
        receiver = ReplicaKey(message.to.id, message.to.directory_id)
        if isinstance(message, SendVote):
            received = VoteReceived(
                ReplicaKey(sender.voter.id, sender.voter.directory_id),
                message.epoch,
                message.is_pre_vote,
                message.last_epoch,
                message.end_offset,
                receiver,
            )
            verdict = target.member.on_vote(received, self.now_ms)
        elif isinstance(message, SendBeginEpoch):
            begin = BeginEpochReceived(sender.voter.id, message.epoch, sender.voter.endpoints, receiver)
            verdict = target.member.on_begin_epoch(begin, self.now_ms)
        else:
            end = EndEpochReceived(sender.voter.id, message.epoch, message.successors, sender.voter.endpoints)
            verdict = target.member.on_end_epoch(end, self.now_ms)
        hint = target.member.leader
        self.carry_out(target)
        if not loses_response:
            self.respond(sender, message, verdict, hint)

    def respond(self, sender: Peer, message: Outgoing, verdict: Verdict, hint: LeaderHint) -> None:
        if isinstance(message, SendVote):
            sender.member.on_vote_response(message, verdict, hint, self.now_ms)
        else:
            sender.member.on_epoch_response(message, verdict, hint, self.now_ms)
        self.carry_out(sender)

    def fetch(self, peer: Peer, faults: bool) -> None:
        role = peer.member.role
        if not isinstance(role, Follower):
            return
        leader = self.peers[role.leader_id]
        if faults and self.chance.random() < 0.1:
            peer.member.on_leader_unreachable(peer.member.epoch, self.now_ms)
            self.carry_out(peer)
            return
        epoch = peer.member.epoch
        if leader.member.epoch != epoch or leader.progress is None:
            peer.member.on_leader_hint(leader.member.leader, self.now_ms)
            self.carry_out(peer)
            return
        agreement = compare(peer.log.end_offset, peer.log.last_epoch, 0, [], leader.log.end_of_epoch)
        if agreement.diverging is not None:
            diverging = agreement.diverging
            own = peer.log.end_of_epoch(diverging.epoch)
            cut = (
                min(own.end_offset, diverging.end_offset) if own.epoch == diverging.epoch else own.end_offset
            )
            assert cut >= peer.high_watermark, "committed entries would be truncated"
            del peer.log.entries[cut:]
        else:
            before = leader.progress.high_watermark
            leader.progress.fetched(
                peer.voter.id,
                peer.voter.directory_id,
                peer.log.end_offset,
                self.now_ms,
                leader.log.end_offset,
            )
            leader.member.on_fetch_request(ReplicaKey(peer.voter.id, peer.voter.directory_id), self.now_ms)
            if leader.progress.high_watermark != before:
                self.commit(leader)
            start = peer.log.end_offset
            peer.log.entries += leader.log.entries[start : start + self.chance.randrange(1, 4)]
            peer.high_watermark = max(
                peer.high_watermark, min(leader.progress.high_watermark, peer.log.end_offset)
            )
        peer.member.on_fetch_response(epoch, self.now_ms)
        self.carry_out(peer)

    def synced(self, peer: Peer) -> None:
        if peer.progress is not None and peer.progress.synced(peer.log.end_offset, self.now_ms):
            self.commit(peer)

    def commit(self, leader: Peer) -> None:
        assert leader.progress is not None
        leader.high_watermark = max(leader.high_watermark, leader.progress.high_watermark)
        prefix = leader.log.entries[: leader.progress.high_watermark]
        shared = min(len(prefix), len(self.committed))
        assert prefix[:shared] == self.committed[:shared], "two different entries are committed at one offset"
        if len(prefix) > len(self.committed):
            self.committed = prefix

    # Invariants

    def check(self) -> None:
        for peer in self.peers.values():
            role = peer.member.role
            if isinstance(role, Elected):
                assert self.leaders[peer.member.epoch] == peer.voter.id
                newest = max(each.member.epoch for each in self.peers.values())
                if peer.member.epoch == newest and peer.progress is not None:
                    length = min(len(self.committed), peer.log.end_offset)
                    assert peer.log.entries[:length] == self.committed[:length]
                    assert peer.log.end_offset >= len(self.committed), "a leader lost committed entries"

    def has_leader(self) -> bool:
        """Whether there is one leader, all others follow it, and everything it wrote is committed."""
        elected = [peer for peer in self.peers.values() if isinstance(peer.member.role, Elected)]
        if len(elected) != 1:
            return False
        leader = elected[0]
        follow = all(
            isinstance(peer.member.role, Follower) and peer.member.role.leader_id == leader.voter.id
            for peer in self.peers.values()
            if peer is not leader
        )
        return follow and leader.high_watermark == leader.log.end_offset
