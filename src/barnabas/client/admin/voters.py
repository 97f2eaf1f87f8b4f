"""Voters of the metadata quorum: adding and removing a controller (KIP-853).

In: a Cluster, a controller's id and directory id, where it listens. Out: nothing, or the leader's refusal.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from barnabas.client.admin.part import AdminPart
from barnabas.client.core.errors import check
from barnabas.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from barnabas.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse


@dataclass(frozen=True, slots=True)
class VoterAddress:
    listener: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.listener}://{host}:{self.port}"


class VoterAdmin(AdminPart):
    async def add_voter(self, node_id: int, directory_id: bytes, addresses: Sequence[VoterAddress]) -> None:
        request = AddRaftVoterRequest(
            cluster_id=None,
            timeout_ms=self.timeout_ms,
            voter_id=node_id,
            voter_directory_id=directory_id,
            listeners=[
                AddRaftVoterRequest.Listener(name=each.listener, host=each.host, port=each.port)
                for each in addresses
            ],
        )
        response = await self.cluster.ask(request, AddRaftVoterResponse)
        check(response.error_code, response.error_message)

    async def remove_voter(self, node_id: int, directory_id: bytes) -> None:
        request = RemoveRaftVoterRequest(cluster_id=None, voter_id=node_id, voter_directory_id=directory_id)
        response = await self.cluster.ask(request, RemoveRaftVoterResponse)
        check(response.error_code, response.error_message)
