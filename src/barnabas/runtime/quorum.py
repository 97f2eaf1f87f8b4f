"""A node's place in the quorum: it leads alone, or follows the leader that it finds.

In: the metadata log, where voters or bootstrap servers are. Out: the log kept like the leader's; who leads.
Does not know: what the records mean, connections (`peers`), the controller's decisions.
"""

from __future__ import annotations

import asyncio
import logging
from itertools import cycle

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.raft.leader_hint import LeaderHint
from barnabas.runtime.metadata_log import MetadataLog
from barnabas.runtime.peers import Peers, PeerUnreachable
from barnabas.runtime.quorum_fetching import Fetching
from barnabas.runtime.quorum_serving import Leading, Serving
from barnabas.settings.broker import BrokerSettings
from barnabas.settings.quorum import Address

logger = logging.getLogger(__name__)


class Quorum:
    def __init__(self, settings: BrokerSettings, cluster_id: str, log: MetadataLog, peers: Peers) -> None:
        self._settings = settings
        self._log = log
        self._fetching = Fetching(log, cluster_id, peers, settings)
        self.serving = Serving(log, cluster_id, lambda: self.leading)
        self._hint = LeaderHint(epoch=log.election_state.epoch)
        self._observing: asyncio.Task[None] | None = None
        self._caught_up = asyncio.Event()
        self._retry_ms: int = settings["controller.quorum.retry.backoff.ms"]
        self._servers = cycle(self._bootstrap_addresses())

    @property
    def is_alone(self) -> bool:
        """Whether this node is the quorum."""
        local = self._log.local
        is_sole = self._log.membership.voters.is_sole(local.id, local.directory_id)
        return self._settings.is_controller and is_sole

    @property
    def kraft_version(self) -> int:
        return self._log.membership.kraft_version

    @property
    def leading(self) -> Leading:
        leader, local = self._log.leader, self._log.local
        if leader is not None:
            host, port = (local.endpoints[0].host, local.endpoints[0].port) if local.endpoints else ("", 0)
            return Leading(leader.node_id, leader.epoch, host, port)
        address = self._address_of(self._hint)
        if address is None:
            return Leading(-1, self._hint.epoch)
        return Leading(self._hint.leader_id, self._hint.epoch, address.host, address.port)

    def start(self) -> None:
        """Begins to follow; a node that leads alone has nobody to follow."""
        if not self.is_alone:
            self._observing = asyncio.get_running_loop().create_task(self._observe())

    async def stop(self) -> None:
        if self._observing is not None:
            self._observing.cancel()
            await asyncio.wait([self._observing])

    async def caught_up(self) -> None:
        """Returns when this node's metadata is as new as a leader's was since it started."""
        if self._observing is not None:
            await self._caught_up.wait()

    # Observing

    def _bootstrap_addresses(self) -> list[Address]:
        voters = [voter.address for voter in self._settings.voters]
        return [*self._settings.bootstrap_servers, *voters]

    def _address_of(self, hint: LeaderHint) -> Address | None:
        if hint.leader_id < 0:
            return None
        if hint.host:
            return Address(hint.host, hint.port)
        voter = self._log.membership.voters.voters.get(hint.leader_id)
        if voter is None or not voter.endpoints:
            return None
        return Address(voter.endpoints[0].host, voter.endpoints[0].port)

    async def _observe(self) -> None:
        while self._log.error is None:
            address = self._address_of(self._hint) or next(self._servers)
            try:
                fetched = await self._fetching.fetch(address, self._hint.epoch)
            except PeerUnreachable as error:
                logger.debug("no metadata from %s: %s", address, error)
                self._hint = LeaderHint(epoch=self._hint.epoch)
                await asyncio.sleep(self._retry_ms / 1000)
                continue
            except KafkaError as error:
                logger.error("metadata could not be taken over from %s: %s", address, error)
                await asyncio.sleep(self._retry_ms / 1000)
                continue
            if fetched.error == ErrorCode.NONE:
                if self._hint.leader_id < 0:  # the connection was lost, and a server that was asked leads
                    self._follow(fetched.hint)
                if 0 <= fetched.high_watermark <= self._log.end_offset:
                    self._caught_up.set()
            elif not self._follow(fetched.hint):
                logger.debug("%s does not lead: %s", address, fetched.error.name)
                self._hint = LeaderHint(epoch=self._hint.epoch)
                await asyncio.sleep(self._retry_ms / 1000)

    def _follow(self, hint: LeaderHint) -> bool:
        """Takes a leader of this epoch or a newer one; whether there is one to ask now."""
        if hint.epoch < self._hint.epoch or hint.leader_id < 0:
            return False
        if hint == self._hint:
            return False
        self._hint = hint
        return True
