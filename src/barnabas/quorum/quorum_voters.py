"""Changes of the voters at run time: the leader adds, removes and updates them; a controller may ask to be
one.

In: AddRaftVoter, RemoveRaftVoter, UpdateRaftVoter. Out: VotersRecords in the log, and responses when these
are committed. A voter reports a new address to the leader. A controller that is no voter adds itself if
`controller.quorum.auto.join.enable` is set (KIP-1186).
Does not know: elections, the conditions of a change (`raft.voter_changes`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from barnabas.metadata.versions import KRAFT_VERSION
from barnabas.protocol import NULL_UUID, ErrorCode, KafkaError
from barnabas.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.kraft_version_record import KRaftVersionRecord
from barnabas.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from barnabas.protocol.messages.update_features import UpdateFeaturesRequest
from barnabas.protocol.messages.update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse
from barnabas.quorum import lanes
from barnabas.quorum.peers import PeerUnreachable
from barnabas.raft import voter_changes
from barnabas.raft.leader import Leader
from barnabas.raft.leader_hint import LeaderHint
from barnabas.raft.messages import ReplicaKey
from barnabas.raft.roles import Follower
from barnabas.raft.voters import KRAFT_VERSION_MAX, Voter, VoterEndpoint, VoterSet
from barnabas.settings.quorum import Address

if TYPE_CHECKING:
    from barnabas.quorum.quorum import Quorum

POLL_MS = 20
SOFTWARE = "barnabas", "0.1.0"

logger = logging.getLogger(__name__)


class VoterChanges:
    def __init__(self, quorum: Quorum) -> None:
        self._quorum = quorum
        self._log = quorum.log
        self._is_busy = False
        self._reported: dict[int, Voter] = {}  # by static voters, for the upgrade to kraft.version 1

    async def add(self, request: AddRaftVoterRequest) -> AddRaftVoterResponse:
        endpoints = tuple(VoterEndpoint(each.name, each.host, each.port) for each in request.listeners)
        voter = Voter(request.voter_id, request.voter_directory_id, endpoints)

        async def change(leader: Leader) -> int:
            if voter.id < 0 or voter.directory_id == NULL_UUID:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Add voter request didn't include a valid voter")
            at = self._endpoint(voter, "Add voter request")
            voter_changes.check_ready(leader, self._log.membership, "adding")
            voter_changes.with_added(self._log.membership.voters, voter)
            versions = await self._kraft_versions(voter, at)
            await self._wait_until_caught_up(leader, ReplicaKey(voter.id, voter.directory_id))
            ready = Voter(voter.id, voter.directory_id, voter.endpoints, versions)
            return self._write(voter_changes.with_added(self._log.membership.voters, ready))

        error = await self._change(request.cluster_id, change, wait=request.ack_when_committed)
        return AddRaftVoterResponse(
            error_code=error.code if error else ErrorCode.NONE, error_message=error.message if error else None
        )

    async def remove(self, request: RemoveRaftVoterRequest) -> RemoveRaftVoterResponse:
        key = ReplicaKey(request.voter_id, request.voter_directory_id)

        async def change(leader: Leader) -> int:
            if key.id < 0 or key.directory_id == NULL_UUID:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST, "Remove voter request didn't include a valid voter"
                )
            voter_changes.check_ready(leader, self._log.membership, "removing")
            return self._write(voter_changes.without(self._log.membership.voters, key))

        error = await self._change(request.cluster_id, change)
        return RemoveRaftVoterResponse(
            error_code=error.code if error else ErrorCode.NONE, error_message=error.message if error else None
        )

    async def update(self, request: UpdateRaftVoterRequest) -> UpdateRaftVoterResponse:
        endpoints = tuple(VoterEndpoint(each.name, each.host, each.port) for each in request.listeners)
        feature = request.kraft_version_feature
        versions = feature.min_supported_version, feature.max_supported_version
        voter = Voter(request.voter_id, request.voter_directory_id, endpoints, versions)

        async def change(leader: Leader) -> int:
            if request.current_leader_epoch != leader.epoch:
                is_old = request.current_leader_epoch < leader.epoch
                raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH if is_old else ErrorCode.UNKNOWN_LEADER_EPOCH)
            if voter.id < 0 or voter.directory_id == NULL_UUID or not 0 <= versions[0] <= versions[1]:
                raise KafkaError(ErrorCode.INVALID_REQUEST)
            self._endpoint(voter, "Update voter request")
            if self._log.membership.kraft_version < 1:
                if voter.id not in self._log.membership.voters.voters:
                    raise KafkaError(ErrorCode.VOTER_NOT_FOUND)
                self._reported[voter.id] = voter
                return 0  # nothing to wait for
            voter_changes.check_ready(leader, self._log.membership, "updating")
            return self._write(voter_changes.with_updated(self._log.membership.voters, voter))

        error = await self._change(request.cluster_id, change)
        leading = self._quorum.leader_hint
        current = UpdateRaftVoterResponse.CurrentLeader(
            leader_id=leading.leader_id, leader_epoch=leading.epoch, host=leading.host, port=leading.port
        )
        return UpdateRaftVoterResponse(
            error_code=error.code if error else ErrorCode.NONE, current_leader=current
        )

    async def upgrade_kraft_version(self, request: UpdateFeaturesRequest) -> None:
        """Upgrade `kraft.version`, which the quorum keeps itself, before the controller decides the other
        features."""
        wanted = [each for each in request.feature_updates if each.feature == KRAFT_VERSION]
        if request.validate_only or not wanted or self._quorum.kraft_version != 0:
            return
        if wanted[0].max_version_level != KRAFT_VERSION_MAX:
            return

        async def change(leader: Leader) -> int:
            voters = voter_changes.dynamic(self._log.membership.voters, self._log.local, self._reported)
            records = [KRaftVersionRecord(version=0, kraft_version=KRAFT_VERSION_MAX), voters.to_record()]
            end_offset = self._log.append_controls(records)
            logger.info("upgraded kraft.version to %d", KRAFT_VERSION_MAX)
            self._quorum.voters_changed()
            return end_offset

        error = await self._change(None, change)
        if error is not None:
            raise error

    async def _change(
        self, cluster_id: str | None, change: Callable[[Leader], Awaitable[int]], *, wait: bool = True
    ) -> KafkaError | None:
        """Make one change and wait until it is committed. Returns the error if it cannot be made."""
        log = self._log
        try:
            if cluster_id is not None and cluster_id != self._quorum.cluster_id:
                raise KafkaError(
                    ErrorCode.INCONSISTENT_CLUSTER_ID,
                    f'The given id "{cluster_id}" doesn\'t match the cluster id "{self._quorum.cluster_id}"',
                )
            if log.leader is None:
                raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            if self._is_busy:
                raise KafkaError(
                    ErrorCode.REQUEST_TIMED_OUT,
                    "Request timed out waiting for leader to handle previous voter change request",
                )
            self._is_busy = True
            try:
                end_offset = await change(log.leader)
                committing = log.committed(end_offset)
                if wait and committing is not None:
                    await committing
            finally:
                self._is_busy = False
        except KafkaError as error:
            return error
        return None

    def _write(self, voters: VoterSet) -> int:
        end_offset = self._log.append_controls([voters.to_record()])
        logger.info("the voters of the quorum are now %s", ", ".join(map(str, voters.ids)))
        self._quorum.voters_changed()
        if voters.is_voter(self._log.local.id, self._log.local.directory_id):
            return end_offset
        committing = self._log.committed(end_offset)  # even if no request waits for it any more
        if committing is None:
            self._quorum.resign_if_removed()
        else:
            committing.add_done_callback(self._removed)
        return end_offset

    def _removed(self, committing: asyncio.Future[None]) -> None:
        if not committing.cancelled() and committing.exception() is None:
            self._quorum.resign_if_removed()

    def _endpoint(self, voter: Voter, what: str) -> VoterEndpoint:
        """The voter's address on this leader's listener."""
        own = self._log.local.endpoints[0].name
        for endpoint in voter.endpoints:
            if endpoint.name == own:
                return endpoint
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"{what} didn't include the endpoint for the default listener {own}"
        )

    async def _kraft_versions(self, voter: Voter, at: VoterEndpoint) -> tuple[int, int]:
        """Outgoing the new voter which kraft.version it supports."""
        name, version = SOFTWARE
        request = ApiVersionsRequest(client_software_name=name, client_software_version=version)
        timeout_ms = self._quorum.request_ms
        try:
            response: ApiVersionsResponse = await self._quorum.peers.send_request(
                Address(at.host, at.port), request, timeout_ms, lanes.VOTERS
            )
        except PeerUnreachable:
            key = voter_changes.key_text(ReplicaKey(voter.id, voter.directory_id))
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT, f"New voter {key} is not ready to receive requests"
            ) from None
        if response.error_code != ErrorCode.NONE:
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT,
                "Aborted add voter operation for since API_VERSIONS returned an error "
                f"{ErrorCode(response.error_code).name}",
            )
        for feature in response.supported_features:
            supports = feature.min_version <= self._quorum.kraft_version <= feature.max_version
            if feature.name == KRAFT_VERSION and supports:
                return feature.min_version, feature.max_version
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Aborted add voter operation for {voter.id} since its {KRAFT_VERSION} range doesn't support the "
            f"finalized version {self._quorum.kraft_version}",
        )

    async def _wait_until_caught_up(self, leader: Leader, key: ReplicaKey) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._quorum.request_ms / 1000
        while not voter_changes.is_caught_up(leader, key, self._quorum.wall_ms()):
            if loop.time() >= deadline or self._log.leader is not leader:
                raise KafkaError(
                    ErrorCode.REQUEST_TIMED_OUT,
                    f"Aborted add voter operation for {voter_changes.key_text(key)} "
                    "since it is lagging behind",
                )
            await asyncio.sleep(POLL_MS / 1000)


class LocalVoterReporter:
    """Reports this controller to the leader periodically: a changed address, or a request to become a
    voter."""

    def __init__(self, quorum: Quorum, auto_join: bool, period_ms: int) -> None:
        self._quorum = quorum
        self._auto_join = auto_join
        self._period_ms = period_ms

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._period_ms / 1000)
            request = self._next()
            role = self._quorum.member.role
            if request is None or not isinstance(role, Follower):
                continue
            try:
                address = Address(role.host, role.port)
                response: Any = await self._quorum.peers.send_request(
                    address, request, self._quorum.request_ms * 2, lanes.VOTERS
                )
            except PeerUnreachable as error:
                logger.debug("could not report this voter to the leader: %s", error)
                continue
            if response.error_code != ErrorCode.NONE:
                logger.info(
                    "the leader refused %s: %s", type(request).__name__, ErrorCode(response.error_code).name
                )

    def _next(self) -> Any:
        quorum, log = self._quorum, self._quorum.log
        membership, local = log.membership, log.local
        if membership.kraft_version < 1 and local.id not in membership.voters.voters:
            return None
        known = membership.voters.voters.get(local.id)
        if known is not None and known.directory_id in (NULL_UUID, local.directory_id):
            return None if known == local else self._update_request(local, quorum.leader_hint)
        if not self._auto_join:
            return None
        if known is not None:  # this controller's earlier disk still holds the vote
            return RemoveRaftVoterRequest(
                cluster_id=quorum.cluster_id, voter_id=known.id, voter_directory_id=known.directory_id
            )
        return AddRaftVoterRequest(
            cluster_id=quorum.cluster_id,
            timeout_ms=quorum.request_ms,
            voter_id=local.id,
            voter_directory_id=local.directory_id,
            listeners=[
                AddRaftVoterRequest.Listener(name=each.name, host=each.host, port=each.port)
                for each in local.endpoints
            ],
            ack_when_committed=False,
        )

    def _update_request(self, local: Voter, leading: LeaderHint) -> UpdateRaftVoterRequest:
        lowest, highest = local.kraft_versions
        return UpdateRaftVoterRequest(
            cluster_id=self._quorum.cluster_id,
            current_leader_epoch=leading.epoch,
            voter_id=local.id,
            voter_directory_id=local.directory_id,
            listeners=[
                UpdateRaftVoterRequest.Listener(name=each.name, host=each.host, port=each.port)
                for each in local.endpoints
            ],
            kraft_version_feature=UpdateRaftVoterRequest.KRaftVersionFeature(
                min_supported_version=lowest, max_supported_version=highest
            ),
        )
