"""A node's part in the quorum: gives `raft.member` its input (time, messages) and carries out its output.

In: the metadata log, the addresses of voters or bootstrap servers, requests of other nodes. Out: a metadata
log that follows the leader's, or leads; who leads; calls of `on_lead` and `on_lose`. Election state is
durable before a response leaves, fetched batches before the next fetch.
Does not know: what the records mean, connections (`peers`), the controller's decisions.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from barnabas.protocol.messages.end_quorum_epoch import EndQuorumEpochRequest
from barnabas.protocol.messages.vote import VoteRequest
from barnabas.quorum import lanes, quorum_messages
from barnabas.quorum.metadata_log import MetadataLog
from barnabas.quorum.peers import Peers, PeerUnreachable
from barnabas.quorum.quorum_serving import Serving
from barnabas.raft.election import Victory
from barnabas.raft.leader_hint import LeaderHint
from barnabas.raft.member import Member, Rng, Timing
from barnabas.raft.messages import Outgoing, Ready, ReplicaKey, SendEndEpoch, SendVote, Verdict
from barnabas.raft.roles import Candidate, Elected, Follower, Prospective, Role
from barnabas.runtime.clock import Clock
from barnabas.runtime.shortage import RETRY_S, Shortage, is_shortage
from barnabas.settings.broker import BrokerSettings
from barnabas.settings.quorum import Address

if TYPE_CHECKING:
    from barnabas.quorum.quorum_fetching import Fetching
    from barnabas.quorum.quorum_voters import VoterChanges

DISCOVERY_TIMEOUT_MS = 300
RETRY_MS_MAX = 1000  # between attempts to reach a voter
NOT_LEADING = KafkaError(ErrorCode.NOT_CONTROLLER, "another controller is the active one now")

logger = logging.getLogger(__name__)


class Quorum:
    def __init__(
        self,
        settings: BrokerSettings,
        cluster_id: str,
        log: MetadataLog,
        peers: Peers,
        clock: Clock,
        rng: Rng,
    ) -> None:
        self.wall_ms = clock.now_ms  # the wall clock, which the leader's progress records use
        self._settings = settings
        self.cluster_id = cluster_id
        self.log = log
        self.peers = peers
        self._fetching: Fetching | None = None
        self._voter_changes: VoterChanges | None = None
        self._retry_ms: int = settings["controller.quorum.retry.backoff.ms"]
        self.request_ms: int = settings["controller.quorum.request.timeout.ms"]
        election_ms = settings["controller.quorum.election.timeout.ms"]
        self._fetch_timeout_ms: int = settings["controller.quorum.fetch.timeout.ms"]
        timing = Timing(
            election_ms, settings["controller.quorum.election.backoff.max.ms"], self._fetch_timeout_ms
        )
        self.member = Member(log.local, log, log.election_state, timing, rng, self.now_ms())
        self._unsaved: Ready | None = None  # output of the member that a shortage kept from being saved
        self._voter_report: asyncio.Task[None] | None = None
        self.serving = Serving(log, cluster_id, lambda: self.member.leader, self._fetched_by)
        self.on_lead: Callable[[], None] = lambda: None
        self.on_lose: Callable[[KafkaError], None] = lambda error: None
        self._following: asyncio.Task[None] | None = None
        self._requests: dict[tuple[int, type[Outgoing]], asyncio.Task[None]] = {}  # one of a kind per voter
        self._timer: asyncio.TimerHandle | None = None
        self._role_changed = asyncio.Event()  # set when the role has changed
        self._caught_up = asyncio.Event()
        self._is_stopped = False
        # a leader that did not respond: hints at it are not believed for a while
        self._suspect = LeaderHint(epoch=-1)
        self._suspect_until_ms = 0
        self._last_role: Role = self.member.role
        self._last_leader = self.member.leader
        self._role_end: asyncio.Future[None] | None = None  # done when the role has changed
        self.on_leader_change: list[Callable[[LeaderHint], None]] = []

    # A node that is its own quorum never needs these: importing them late keeps start-up short.

    @property
    def voter_changes(self) -> VoterChanges:
        if self._voter_changes is None:
            from barnabas.quorum.quorum_voters import VoterChanges

            self._voter_changes = VoterChanges(self)
        return self._voter_changes

    @property
    def fetching(self) -> Fetching:
        if self._fetching is None:
            from barnabas.quorum.quorum_fetching import Fetching

            self._fetching = Fetching(
                self.log, self.cluster_id, self.peers, self._settings, self._await_in_role, self._heard
            )
        return self._fetching

    def now_ms(self) -> int:
        """Monotonic time, which nobody can set."""
        return int(asyncio.get_running_loop().time() * 1000)

    @property
    def is_alone(self) -> bool:
        """Whether this node is the only voter."""
        local = self.log.local
        is_sole = self.log.membership.voters.is_sole(local.id, local.directory_id)
        return self._settings.is_controller and is_sole

    @property
    def kraft_version(self) -> int:
        return self.log.membership.kraft_version

    @property
    def leader_hint(self) -> LeaderHint:
        return self.member.leader

    # Start and stop

    def start(self) -> None:
        """Lead at once if this node is the only voter. Otherwise look for a leader and take part in
        elections."""
        if self.is_alone:
            self._lead(self.member.lead_alone(self.now_ms()))
        loop = asyncio.get_running_loop()
        self._following = loop.create_task(self._follow())
        self._following.add_done_callback(self._follow_ended)
        settings = self._settings
        if settings.is_controller and not settings.is_sole_voter:
            period_ms: int = settings["controller.quorum.fetch.timeout.ms"]
            from barnabas.quorum.quorum_voters import LocalVoterReporter

            own = LocalVoterReporter(self, settings["controller.quorum.auto.join.enable"], period_ms)
            self._voter_report = loop.create_task(own.run())
        self._process_output()

    async def caught_up(self) -> None:
        """Wait until this node's metadata is as new as the leader's was after this node started."""
        if self.log.leader is None or not self.is_alone:
            await self._caught_up.wait()

    async def stop(self) -> None:
        """Stop. A leader tells the other voters first, so that they need not wait for a timeout."""
        member = self.member
        if isinstance(member.role, Elected) and not self.is_alone:
            member.resign(self._successors(), self.now_ms())
            self._process_output()
            ends = [task for (_, kind), task in self._requests.items() if kind is SendEndEpoch]
            if ends:
                await asyncio.wait(ends, timeout=self.request_ms / 2000)
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
        own = (self._following, self._voter_report)
        tasks = [*self._requests.values(), *(task for task in own if task is not None)]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _successors(self) -> list[ReplicaKey]:
        """The other voters, the ones with the longest logs first."""
        leader = self.log.leader
        if leader is None:
            return []
        progress = leader.voter_progress()
        voters = [voter for voter in leader.voters.voters.values() if voter.id != self.log.local.id]
        voters.sort(key=lambda voter: -progress[voter.id].end_offset)
        return [ReplicaKey(voter.id, voter.directory_id) for voter in voters]

    # Voters

    def voters_changed(self) -> None:
        """Apply a change of voters that this leader has appended: it is in force at once."""
        self.member.voters_changed(self.now_ms())
        self.member.on_timer(self.now_ms())
        self._process_output()

    def resign_if_removed(self) -> None:
        """Resign once it is committed that this leader is no voter any more. Until then it leads."""
        if isinstance(self.member.role, Elected) and not self.member.is_voter:
            self.member.resign(self._successors(), self.now_ms())
            self._process_output()

    # Requests of other nodes

    def vote(self, request: VoteRequest, version: int) -> Message:
        refusal = quorum_messages.reason_to_refuse(request, self.cluster_id)
        if refusal != ErrorCode.NONE:
            return quorum_messages.refusal_of(request, refusal)
        received = quorum_messages.read_vote(request, version)
        verdict = self.member.on_vote(received, self.now_ms())
        logger.info(
            "node %d asks for %s in epoch %d: %s",
            received.candidate.id,
            "a pre-vote" if received.is_pre_vote else "a vote",
            received.epoch,
            "granted" if verdict.is_granted else "not granted",
        )
        return self._respond(request, version, verdict)

    def begin_epoch(self, request: BeginQuorumEpochRequest, version: int) -> Message:
        refusal = quorum_messages.reason_to_refuse(request, self.cluster_id)
        if refusal != ErrorCode.NONE:
            return quorum_messages.refusal_of(request, refusal)
        received = quorum_messages.read_begin_epoch(request, version)
        verdict = self.member.on_begin_epoch(received, self.now_ms())
        return self._respond(request, version, verdict)

    def end_epoch(self, request: EndQuorumEpochRequest, version: int) -> Message:
        refusal = quorum_messages.reason_to_refuse(request, self.cluster_id)
        if refusal != ErrorCode.NONE:
            return quorum_messages.refusal_of(request, refusal)
        verdict = self.member.on_end_epoch(quorum_messages.read_end_epoch(request, version), self.now_ms())
        return self._respond(request, version, verdict)

    def _respond(self, request: Message, version: int, verdict: Verdict) -> Message:
        try:
            self._process_output()  # makes durable what the response depends on
        except KafkaError as error:  # it is not durable, and this node stops
            return quorum_messages.refusal_of(request, error.code)
        return quorum_messages.response_to(request, version, verdict, self.member.leader)

    def _fetched_by(self, replica: ReplicaKey) -> None:
        self.member.on_fetch_request(replica, self.now_ms())

    # Output of the member

    def _process_output(self) -> None:
        """Carry out what the member wants after an input."""
        if self._unsaved is not None:
            self._carry_out(self._unsaved)
        self._carry_out(self.member.ready())
        self._schedule()
        self._role_changed.set()
        self._notice_change()

    def _carry_out(self, ready: Ready) -> None:
        """Save what must be durable, then send requests. After a shortage the same output is retried
        first."""
        if ready.has_lost and ready is not self._unsaved:
            self._stop_leading()
        try:
            if ready.victory is not None:
                self._lead(ready.victory)
            elif ready.save is not None:
                self.log.save_election_state(ready.save)
        except OSError as error:
            reason = f"could not save the quorum's state: {error}"
            if is_shortage(error):
                if self._unsaved is None:
                    logger.warning("%s; retrying", reason)
                    asyncio.get_running_loop().call_later(RETRY_S, self._retry_unsaved)
                self._unsaved = ready
                raise Shortage(reason) from error
            failure = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, reason)
            self.log.fail(failure)
            raise failure from error
        self._unsaved = None
        for outgoing in ready.outgoing:
            self._begin_request(outgoing)

    def _retry_unsaved(self) -> None:
        if self._unsaved is None or self._is_stopped or self.log.error is not None:
            return
        try:
            self._process_output()
        except KafkaError:
            asyncio.get_running_loop().call_later(RETRY_S, self._retry_unsaved)

    def _notice_change(self) -> None:
        self.log.stats.noticed(self.member)
        if self._last_role is not self.member.role:
            self._last_role = self.member.role
            if self._role_end is not None and not self._role_end.done():
                self._role_end.set_result(None)
        leader = self.member.leader
        if leader != self._last_leader:
            self._last_leader = leader
            calls = self.on_leader_change
            self.log.unexpected.call_all(calls, "notifying listeners of the quorum's leader", leader, leader)

    async def _await_in_role(self, asking: Awaitable[Any]) -> Any:
        """Return the response. Raises PeerUnreachable if this node's role changes first: another node is to
        outgoing then."""
        task = asyncio.ensure_future(asking)
        role_end = self._role_end = asyncio.get_running_loop().create_future()
        try:
            await asyncio.wait([task, role_end], return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            raise PeerUnreachable("the role of this node has changed meanwhile")
        finally:
            task.cancel()
            role_end.cancel()

    def _lead(self, victory: Victory) -> None:
        self.log.lead(victory)
        logger.info("this node leads the quorum in epoch %d", victory.state.epoch)
        self.on_lead()

    def _stop_leading(self) -> None:
        logger.info("this node no longer leads the quorum")
        self.log.renounce(NOT_LEADING)
        self.on_lose(NOT_LEADING)

    def _schedule(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._is_stopped or (self.is_alone and isinstance(self.member.role, Elected)):
            return
        wait_ms = min(self.member.deadline_ms - self.now_ms(), 60_000)
        self._timer = asyncio.get_running_loop().call_later(max(wait_ms, 0) / 1000, self._on_timer)

    def _on_timer(self) -> None:
        if self.log.error is None:
            try:
                self.member.on_timer(self.now_ms())
                if not self._is_stopped:
                    self._process_output()
            except KafkaError:
                pass  # its state could not be saved: this node stops
            except Exception as error:
                # Without its timer it would neither vote nor lead, yet look alive. So it stops.
                logger.exception("this node can no longer take part in the quorum")
                reason = f"the quorum's timer failed: {error}"
                self.log.fail(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, reason))

    def _begin_request(self, outgoing: Outgoing) -> None:
        slot = outgoing.to.id, type(outgoing)
        under_way = self._requests.get(slot)
        if under_way is not None:
            under_way.cancel()
        task = self._requests[slot] = asyncio.get_running_loop().create_task(self._send(outgoing))
        task.add_done_callback(lambda done: self._request_done(slot, done))

    def _request_done(self, slot: tuple[int, type[Outgoing]], done: asyncio.Task[None]) -> None:
        if self._requests.get(slot) is done:
            del self._requests[slot]
        if not done.cancelled() and (error := done.exception()) is not None:
            logger.error("request to voter %d failed: %s", slot[0], error)

    async def _send(self, outgoing: Outgoing) -> None:
        request = quorum_messages.request_for(outgoing, self.log.local, self.cluster_id)
        wait_ms = self._retry_ms
        while outgoing.to.endpoints and self.member.is_pending(outgoing):
            at = outgoing.to.endpoints[0]
            try:
                response = await self.peers.send_request(
                    Address(at.host, at.port), request, self.request_ms, lanes.VOTES
                )
            except PeerUnreachable:
                await asyncio.sleep(wait_ms / 1000)
                wait_ms = min(wait_ms * 2 + 1, RETRY_MS_MAX)
                continue
            verdict, hint = quorum_messages.read_response(response)
            if isinstance(outgoing, SendVote):
                self.member.on_vote_response(outgoing, verdict, hint, self.now_ms())
            else:
                self.member.on_epoch_response(outgoing, verdict, hint, self.now_ms())
            self._process_output()
            return

    # Following

    def _servers(self) -> list[Address]:
        """The addresses of all nodes that may know the leader, except this one."""
        local = self.log.local
        own = {(each.host, each.port) for each in local.endpoints}
        found: dict[Address, None] = {}
        for voter in self.log.membership.voters.voters.values():
            if voter.id != local.id and voter.endpoints:
                found[Address(voter.endpoints[0].host, voter.endpoints[0].port)] = None
        for address in (*self._settings.bootstrap_servers, *(each.address for each in self._settings.voters)):
            if (address.host, address.port) not in own:
                found[address] = None
        return list(found)

    async def _follow(self) -> None:
        """Fetch while another node leads; look for a leader while none is known."""
        attempts = 0
        while self.log.error is None:
            role = self.member.role
            self._role_changed.clear()
            try:
                if isinstance(role, Follower):
                    await self._fetch(role)
                elif isinstance(role, Elected | Prospective | Candidate):
                    if isinstance(role, Elected) and self.log.high_watermark >= 0:
                        self._caught_up.set()
                        await self._role_changed.wait()
                    elif isinstance(role, Elected):
                        await self.log.wait_for_change(self.request_ms)
                    else:
                        await self._role_changed.wait()
                else:
                    await self._look_for_leader(attempts)
                    attempts += 1
                    continue
                attempts = 0
            except Exception as error:
                if not isinstance(error, KafkaError) and not is_shortage(error):
                    raise
                logger.error("could not replicate the metadata log: %s", error)
                await asyncio.sleep(self._retry_ms / 1000)

    def _follow_ended(self, done: asyncio.Task[None]) -> None:
        if not done.cancelled() and (error := done.exception()) is not None:
            logger.error("this node can no longer follow the quorum", exc_info=error)
            reason = f"following the quorum failed: {error}"
            self.log.fail(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, reason))

    async def _fetch(self, role: Follower) -> None:
        member, epoch = self.member, self.member.epoch
        address = Address(role.host, role.port)

        def is_current() -> bool:
            return member.role is role and member.epoch == epoch

        # An observer looks elsewhere sooner than voters start an election. That disturbs no election.
        timeout_ms = self.request_ms if member.is_voter else self.request_ms // 2
        try:
            fetched = await self.fetching.fetch(address, epoch, is_current, timeout_ms)
        except PeerUnreachable as error:
            self._suspect = LeaderHint(role.leader_id, epoch)
            self._suspect_until_ms = self.now_ms() + self._fetch_timeout_ms
            if is_current():
                logger.debug("the leader %d at %s does not respond: %s", role.leader_id, address, error)
                member.on_leader_unreachable(epoch, self.now_ms())
                self._process_output()
            await asyncio.sleep(self._retry_ms / 1000)
            return
        if not is_current():
            return
        now_ms = self.now_ms()
        if fetched.error == ErrorCode.NONE:
            member.on_fetch_response(epoch, now_ms)
            if 0 <= fetched.high_watermark <= self.log.end_offset:
                self._caught_up.set()
            self._schedule()
            return
        if not member.on_leader_hint(fetched.hint, now_ms):
            member.on_leader_unreachable(epoch, now_ms)
            await asyncio.sleep(self._retry_ms / 1000)
        self._process_output()

    def _heard(self, epoch: int) -> None:
        self.member.on_fetch_response(epoch, self.now_ms())

    async def _look_for_leader(self, attempts: int) -> None:
        servers = self._servers()
        if not servers:
            await self._role_changed.wait()
            return
        address = servers[attempts % len(servers)]
        rounds = attempts // len(servers)
        try:
            # Some servers may hang: each gets a short timeout at first, and a longer one in every round.
            timeout_ms = min(DISCOVERY_TIMEOUT_MS << min(rounds, 10), self.request_ms)
            fetched = await self.fetching.discover(address, self.member.epoch, timeout_ms)
        except PeerUnreachable as error:
            logger.debug("%s does not name a leader: %s", address, error)
        else:
            hint = fetched.hint
            if self._believes(hint, address) and self.member.on_leader_hint(hint, self.now_ms()):
                self._process_output()
                return
        is_round_over = (attempts + 1) % len(servers) == 0
        longer_ms = min(self._retry_ms * 5 << min(rounds, 6), RETRY_MS_MAX)
        await self._pause(longer_ms if is_round_over else self._retry_ms)

    def _believes(self, hint: LeaderHint, source: Address) -> bool:
        """Whether to believe a hint. A leader that did not respond is believed for a while only if it names
        itself."""
        if (hint.leader_id, hint.epoch) != (self._suspect.leader_id, self._suspect.epoch):
            return True
        is_itself = (hint.host, hint.port) == (source.host, source.port)
        return is_itself or self.now_ms() >= self._suspect_until_ms

    async def _pause(self, wait_ms: int) -> None:
        """Sleep this long, or until the role changes."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_ms / 1000):
                await self._role_changed.wait()
