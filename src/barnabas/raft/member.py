"""A member of the quorum: votes, stands for election, leads, follows. Decides everything, does no I/O.

In: requests and responses of other members, fetches, and the time (`on_timer`). Out: responses, and after
every input one `Ready` value with everything to do. For the roles and their transitions see `roles`.
Invariants: in an epoch a member votes once and knows one leader. Its responses depend only on state that
`Ready.save` made durable. A member that would not win does not raise the epoch (pre-vote, KIP-996).
Does not know: the log's content, connections, the controller.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from barnabas.protocol import NULL_UUID, ErrorCode
from barnabas.raft.election import Victory, elected
from barnabas.raft.election_state import NO_NODE, ElectionState
from barnabas.raft.leader_hint import LeaderHint
from barnabas.raft.log_ends import is_up_to_date
from barnabas.raft.messages import (
    BeginEpochReceived,
    EndEpochReceived,
    Outgoing,
    Ready,
    ReplicaKey,
    SendBeginEpoch,
    SendEndEpoch,
    SendVote,
    Verdict,
    VoteReceived,
)
from barnabas.raft.roles import (
    Campaign,
    Candidate,
    Elected,
    Follower,
    Prospective,
    Resigned,
    Role,
    Unattached,
)
from barnabas.raft.voters import Membership, Voter, VoterEndpoint

NEVER_MS = 2**62
BACKOFF_BASE_MS = 50
# after the connection to its leader broke, a follower stands for election within this time
SUSPICION_MS = 150


class LogView(Protocol):
    """The part of its log that a member reads."""

    @property
    def end_offset(self) -> int: ...
    @property
    def last_epoch(self) -> int: ...
    @property
    def membership(self) -> Membership: ...


class Rng(Protocol):
    def randrange(self, stop: int, /) -> int: ...


@dataclass(frozen=True, slots=True)
class Timing:
    election_timeout_ms: int = 1000
    election_backoff_max_ms: int = 1000
    fetch_timeout_ms: int = 2000

    @property
    def check_quorum_ms(self) -> int:
        return self.fetch_timeout_ms * 3 // 2


class Member:
    """`local` is this node as it is now: its directory and where it listens."""

    def __init__(
        self, local: Voter, log: LogView, state: ElectionState, timing: Timing, rng: Rng, now_ms: int
    ) -> None:
        self.local = local
        self.state = state
        self._log = log
        self._timing = timing
        self._rng = rng
        self._save = False
        self._lost = False
        self._victory: Victory | None = None
        self._outgoing: list[Outgoing] = []
        if log.last_epoch > state.epoch:
            self._set_state(ElectionState(log.last_epoch))
        self.role: Role = Unattached(now_ms + self._election_wait_ms())
        if self.state.leader_id == local.id:
            # It led this epoch before it stopped: it must not vote for another node in it.
            self.role = Resigned(now_ms + self._election_wait_ms(), ())

    # State

    @property
    def epoch(self) -> int:
        return self.state.epoch

    @property
    def key(self) -> ReplicaKey:
        return ReplicaKey(self.local.id, self.local.directory_id)

    @property
    def is_voter(self) -> bool:
        return self._log.membership.voters.is_voter(self.local.id, self.local.directory_id)

    @property
    def leader(self) -> LeaderHint:
        """The leader of the epoch and its address, as far as this member knows."""
        role, state = self.role, self.state
        if isinstance(role, Follower):
            return LeaderHint(role.leader_id, state.epoch, role.host, role.port)
        if isinstance(role, Elected):
            at = self.local.endpoints[0] if self.local.endpoints else VoterEndpoint("", "", 0)
            return LeaderHint(self.local.id, state.epoch, at.host, at.port)
        if isinstance(role, Resigned):
            return LeaderHint(NO_NODE, state.epoch)
        return LeaderHint(state.leader_id, state.epoch, *self._address_of(state.leader_id))

    @property
    def is_led(self) -> bool:
        """Whether this member leads, or follows a leader."""
        return isinstance(self.role, Follower | Elected)

    @property
    def deadline_ms(self) -> int:
        """When `on_timer` has something to do; never for an observer."""
        role = self.role
        if isinstance(role, Elected):
            return min(role.check_deadline_ms, role.begin_at_ms)
        if isinstance(role, Resigned):
            return role.deadline_ms
        return role.deadline_ms if self.is_voter else NEVER_MS

    def ready(self) -> Ready:
        found = Ready(
            has_lost=self._lost,
            save=self.state if self._save else None,
            victory=self._victory,
            outgoing=tuple(self._outgoing),
        )
        self._lost = self._save = False
        self._victory = None
        self._outgoing = []
        return found

    def is_pending(self, outgoing: Outgoing) -> bool:
        """Whether to send a request again that got no response."""
        role = self.role
        if outgoing.epoch != self.epoch:
            return False
        if isinstance(outgoing, SendVote):
            kind = Prospective if outgoing.is_pre_vote else Candidate
            return isinstance(role, kind) and role.awaits_response_of(outgoing.to.id)
        if isinstance(outgoing, SendBeginEpoch):
            return isinstance(role, Elected) and outgoing.to.id not in role.fetched
        return isinstance(role, Resigned) and outgoing.to.id not in role.informed

    # Requests of other members

    def on_vote(self, received: VoteReceived, now_ms: int) -> Verdict:
        last = received.last_epoch
        is_illegal = last > received.epoch if received.is_pre_vote else last >= received.epoch
        if received.end_offset < 0 or last < 0 or is_illegal or received.candidate.id < 0:
            return Verdict(ErrorCode.INVALID_REQUEST)
        if received.epoch < self.epoch:
            return Verdict(ErrorCode.FENCED_LEADER_EPOCH)
        if received.epoch > self.epoch:
            self._to_unattached(received.epoch, now_ms)
        if not self._is_addressed(received.voter):
            return Verdict(ErrorCode.INVALID_VOTER_KEY)
        is_granted = self._grants(received)
        if is_granted and not received.is_pre_vote and self.state.voted_id == NO_NODE:
            candidate = received.candidate
            self._set_state(
                replace(self.state, voted_id=candidate.id, voted_directory_id=candidate.directory_id)
            )
            self.role = Unattached(now_ms + self._election_wait_ms())
        return Verdict(is_granted=is_granted)

    def _grants(self, received: VoteReceived) -> bool:
        log, state, role = self._log, self.state, self.role
        if not is_up_to_date(received.last_epoch, received.end_offset, log.last_epoch, log.end_offset):
            return False
        if isinstance(role, Elected):
            return False
        if received.is_pre_vote:
            return not (isinstance(role, Follower) and role.has_fetched)
        if state.voted_id != NO_NODE:
            known = state.voted_directory_id
            same_directory = known in (NULL_UUID, received.candidate.directory_id)
            return state.voted_id == received.candidate.id and same_directory
        return state.leader_id == NO_NODE

    def on_begin_epoch(self, received: BeginEpochReceived, now_ms: int) -> Verdict:
        if received.epoch < self.epoch:
            return Verdict(ErrorCode.FENCED_LEADER_EPOCH)
        if received.leader_id < 0:
            return Verdict(ErrorCode.INVALID_REQUEST)
        self.on_leader_hint(
            self._hint(received.leader_id, received.epoch, received.endpoints), now_ms, from_leader=True
        )
        if not self._is_addressed(received.voter):
            return Verdict(ErrorCode.INVALID_VOTER_KEY)
        return Verdict()

    def on_end_epoch(self, received: EndEpochReceived, now_ms: int) -> Verdict:
        if received.epoch < self.epoch:
            return Verdict(ErrorCode.FENCED_LEADER_EPOCH)
        if received.leader_id < 0:
            return Verdict(ErrorCode.INVALID_REQUEST)
        self.on_leader_hint(self._hint(received.leader_id, received.epoch, received.endpoints), now_ms)
        role = self.role
        wait_ms = self._succession_ms(received.successors)
        if isinstance(role, Follower) and role.leader_id == received.leader_id:
            role.has_fetched = False
            role.deadline_ms = min(role.deadline_ms, now_ms + wait_ms)
        elif isinstance(role, Unattached) and self.state.voted_id == NO_NODE:
            role.deadline_ms = min(role.deadline_ms, now_ms + wait_ms)
        return Verdict()

    def _succession_ms(self, successors: Sequence[ReplicaKey]) -> int:
        """How long to wait before standing: the first successor not at all, each next one longer."""
        longest = self._timing.election_backoff_max_ms
        for position, successor in enumerate(successors):
            if successor.id == self.local.id and successor.directory_id in (
                NULL_UUID,
                self.local.directory_id,
            ):
                if position == 0:
                    return 0
                base = max(longest >> (len(successors) - 1), 1)
                return min(longest, base << (position - 1))
        return longest

    def _is_addressed(self, voter: ReplicaKey | None) -> bool:
        if voter is None or voter.id < 0:
            return True
        return voter.id == self.local.id and voter.directory_id in (NULL_UUID, self.local.directory_id)

    def _hint(self, leader_id: int, epoch: int, endpoints: Iterable[VoterEndpoint]) -> LeaderHint:
        name = self.local.endpoints[0].name if self.local.endpoints else ""
        for endpoint in endpoints:
            if not name or endpoint.name == name:
                return LeaderHint(leader_id, epoch, endpoint.host, endpoint.port)
        return LeaderHint(leader_id, epoch)

    # Responses of other members

    def on_vote_response(self, outgoing: SendVote, verdict: Verdict, hint: LeaderHint, now_ms: int) -> None:
        if (
            self.on_leader_hint(hint, now_ms)
            or not self.is_pending(outgoing)
            or verdict.error != ErrorCode.NONE
        ):
            return
        role = self.role
        assert isinstance(role, Campaign)
        (role.granted if verdict.is_granted else role.rejected)[outgoing.to.id] = None
        self._count(role, now_ms)

    def on_epoch_response(
        self, outgoing: SendBeginEpoch | SendEndEpoch, verdict: Verdict, hint: LeaderHint, now_ms: int
    ) -> None:
        """Record a response to BeginQuorumEpoch or EndQuorumEpoch: the receiver knows now."""
        if self.on_leader_hint(hint, now_ms) or verdict.error != ErrorCode.NONE:
            return
        role = self.role
        if isinstance(outgoing, SendEndEpoch) and isinstance(role, Resigned) and outgoing.epoch == self.epoch:
            role.informed[outgoing.to.id] = None

    def on_leader_hint(self, hint: LeaderHint, now_ms: int, *, from_leader: bool = False) -> bool:
        """Learn who leads; True when that is news. Ignored are hints of past epochs, and hints at the
        leader that a prospective candidate lost, unless they come from that leader itself."""
        if hint.epoch < self.epoch:
            return False
        if hint.leader_id < 0 or hint.leader_id == self.local.id:
            if hint.epoch > self.epoch:
                self._to_unattached(hint.epoch, now_ms)
                return True
            return False
        if hint.epoch == self.epoch:
            if isinstance(self.role, Elected | Resigned) and self.state.leader_id == self.local.id:
                return False
            if self.state.leader_id not in (NO_NODE, hint.leader_id):
                return False
            is_known = self.state.leader_id == hint.leader_id
            if isinstance(self.role, Prospective) and is_known and not from_leader:
                return False
        return self._to_follower(hint, now_ms)

    # Following

    def on_fetch_response(self, epoch: int, now_ms: int) -> None:
        """Record that the leader of this epoch responded to a fetch."""
        role = self.role
        if isinstance(role, Follower) and epoch == self.epoch:
            role.has_fetched = True
            role.deadline_ms = now_ms + self._timing.fetch_timeout_ms

    def on_leader_unreachable(self, epoch: int, now_ms: int) -> None:
        """Record that the connection to the leader was refused or broke, so it will hardly respond again.
        An election is safe at any time: standing soon shortens the gap, and the pre-vote protects a leader
        that is alive."""
        role = self.role
        if not isinstance(role, Follower) or epoch != self.epoch:
            return
        if not self.is_voter:
            self.role = Unattached(NEVER_MS)
            return
        role.has_fetched = False
        role.deadline_ms = min(role.deadline_ms, now_ms + 1 + self._rng.randrange(SUSPICION_MS))

    # Leading

    def on_fetch_request(self, replica: ReplicaKey, now_ms: int) -> None:
        """Record that a voter fetched from this leader."""
        role = self.role
        if not isinstance(role, Elected):
            return
        voters = self._log.membership.voters
        if voters.is_voter(replica.id, replica.directory_id):
            role.fetched[replica.id] = now_ms
        fetched_since = role.check_deadline_ms - self._timing.check_quorum_ms
        recent = [id for id in voters.ids if role.fetched.get(id, -1) > fetched_since or id == self.local.id]
        if len(recent) >= voters.majority:
            role.check_deadline_ms = now_ms + self._timing.check_quorum_ms

    def voters_changed(self, now_ms: int) -> None:
        """Give new voters time to find this leader."""
        role = self.role
        if isinstance(role, Elected):
            role.check_deadline_ms = now_ms + self._timing.check_quorum_ms
            role.begin_at_ms = now_ms

    def lead_alone(self, now_ms: int) -> Victory:
        """Lead at once, as the only voter."""
        self._to_candidate(now_ms)
        victory = self._victory
        assert victory is not None
        self.ready()
        return victory

    def resign(self, successors: Sequence[ReplicaKey], now_ms: int) -> None:
        """Stop leading, and name the preferred successors."""
        if isinstance(self.role, Elected):
            self._lost = True
            self.role = Resigned(now_ms + self._timing.election_timeout_ms, tuple(successors))
            for voter in self._others():
                self._outgoing.append(SendEndEpoch(voter, self.epoch, tuple(successors)))

    # Time

    def on_timer(self, now_ms: int) -> None:
        if now_ms < self.deadline_ms:
            return
        role = self.role
        if isinstance(role, Unattached):
            self._to_prospective(role.failures, now_ms)
        elif isinstance(role, Follower):
            self._to_prospective(0, now_ms)
        elif isinstance(role, Campaign):
            self._failed(role, now_ms)
        elif isinstance(role, Elected):
            self._on_leader_timer(role, now_ms)
        elif isinstance(role, Resigned):
            self._to_unattached(self.epoch + 1, now_ms)

    def _on_leader_timer(self, role: Elected, now_ms: int) -> None:
        if now_ms >= role.check_deadline_ms:
            voters = self._log.membership.voters
            if voters.majority > 1 or not self.is_voter:
                self.resign([ReplicaKey(voter.id, voter.directory_id) for voter in self._others()], now_ms)
                return
            role.check_deadline_ms = now_ms + self._timing.check_quorum_ms
        if now_ms >= role.begin_at_ms:
            period_ms = self._timing.fetch_timeout_ms // 2
            role.begin_at_ms = now_ms + period_ms
            for voter in self._others():
                if role.fetched.get(voter.id, -1) <= now_ms - period_ms:
                    role.fetched.pop(voter.id, None)
                    self._outgoing.append(SendBeginEpoch(voter, self.epoch))

    # Transitions

    def _to_unattached(
        self, epoch: int, now_ms: int, *, wait_ms: int | None = None, failures: int = 0
    ) -> None:
        self._note_lost_lead()
        if epoch > self.epoch:
            self._set_state(ElectionState(epoch))
        wait_ms = self._election_wait_ms() if wait_ms is None else wait_ms
        self.role = Unattached(now_ms + wait_ms, failures)

    def _to_prospective(self, failures: int, now_ms: int) -> None:
        role = self.role = Prospective(now_ms + self._election_wait_ms(), failures)
        role.granted[self.local.id] = None
        self._request_votes(is_pre_vote=True)
        self._count(role, now_ms)

    def _to_candidate(self, now_ms: int) -> None:
        failures = self.role.failures if isinstance(self.role, Campaign) else 0
        self._set_state(
            ElectionState(self.epoch + 1, voted_id=self.local.id, voted_directory_id=self.local.directory_id)
        )
        role = self.role = Candidate(now_ms + self._election_wait_ms(), failures)
        role.granted[self.local.id] = None
        self._request_votes(is_pre_vote=False)
        self._count(role, now_ms)

    def _request_votes(self, *, is_pre_vote: bool) -> None:
        log = self._log
        for voter in self._others():
            self._outgoing.append(SendVote(voter, self.epoch, is_pre_vote, log.last_epoch, log.end_offset))

    def _count(self, role: Campaign, now_ms: int) -> None:
        """Count the votes of the current voters: has it won, or can it no longer win?"""
        voters = self._log.membership.voters
        granted = [voter for voter in voters.ids if voter in role.granted]
        rejected = [voter for voter in voters.ids if voter in role.rejected]
        if len(granted) >= voters.majority:
            if isinstance(role, Prospective):
                self._to_candidate(now_ms)
            else:
                self._to_elected(granted, now_ms)
        elif len(voters.ids) - len(rejected) < voters.majority:
            self._failed(role, now_ms)

    def _failed(self, role: Campaign, now_ms: int) -> None:
        """Give up this election. The member looks for a leader, and stands again after a growing random
        time."""
        failures = role.failures + 1
        longest = min(BACKOFF_BASE_MS << min(failures, 10), self._timing.election_backoff_max_ms)
        wait_ms = BACKOFF_BASE_MS + self._rng.randrange(max(longest, 1))
        self.role = Unattached(now_ms + wait_ms, failures)

    def _to_elected(self, granted: Sequence[int], now_ms: int) -> None:
        victory = elected(self.epoch, self.local, self._log.membership, granted)
        self._victory = victory
        self._set_state(victory.state)
        self.role = Elected(
            now_ms + self._timing.check_quorum_ms, now_ms + self._timing.fetch_timeout_ms // 2
        )
        for voter in self._others():
            self._outgoing.append(SendBeginEpoch(voter, self.epoch))

    def _to_follower(self, hint: LeaderHint, now_ms: int) -> bool:
        host, port = (hint.host, hint.port) if hint.host else self._address_of(hint.leader_id)
        role = self.role
        if isinstance(role, Follower) and hint.epoch == self.epoch:
            is_news = (role.host, role.port) != (host, port) and bool(hint.host)
            if is_news:
                role.host, role.port = host, port
            return is_news
        before = self.state
        if hint.epoch > self.epoch:
            self._set_state(ElectionState(hint.epoch, hint.leader_id))
        elif before.leader_id == NO_NODE:
            self._set_state(replace(before, leader_id=hint.leader_id))
        self._note_lost_lead()
        if host:
            self.role = Follower(hint.leader_id, host, port, now_ms + self._timing.fetch_timeout_ms)
        elif not isinstance(role, Unattached) or self.state != before:
            self.role = Unattached(now_ms + self._election_wait_ms())
        else:
            return False
        return True

    def _note_lost_lead(self) -> None:
        if isinstance(self.role, Elected):
            self._lost = True

    def _set_state(self, state: ElectionState) -> None:
        self.state = state
        self._save = True

    # Details

    def _others(self) -> list[Voter]:
        return [voter for voter in self._log.membership.voters.voters.values() if voter.id != self.local.id]

    def _address_of(self, voter_id: int) -> tuple[str, int]:
        voter = self._log.membership.voters.voters.get(voter_id)
        if voter is None or not voter.endpoints:
            return "", 0
        return voter.endpoints[0].host, voter.endpoints[0].port

    def _election_wait_ms(self) -> int:
        timeout_ms = self._timing.election_timeout_ms
        return timeout_ms + self._rng.randrange(max(timeout_ms, 1))
