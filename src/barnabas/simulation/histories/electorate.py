"""An administrator who takes voters out of the quorum, one after the other; they come back by themselves.

In: a stage whose voters are in the log and join by themselves, a client. Out: removals of voters drawn from
the client's randomness, the leader of the quorum among them, until faults are over. Two voters stay, so that
no single one is all that remembers.
Does not know: who else uses the cluster, when a voter is back.
"""

from __future__ import annotations

import asyncio
from random import Random

from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from barnabas.raft.voters import Voter
from barnabas.simulation.histories.cluster_stage import ClusterPromise, ClusterStage
from barnabas.simulation.world.client import SimulatedClient
from barnabas.simulation.world.cluster import CLUSTER_ID, Shape

PAUSE_S = 1.5
CHANCE = 0.6
VOTERS_LEFT_MIN = 2
TIMEOUT_MS = 3_000


def changes_voters(rng: Random, promise: ClusterPromise, shape: Shape) -> bool:
    """Not where a disk may be wiped: the fewer voters there are for a while, the more each of them counts."""
    can = shape.is_dynamic and len(shape.controllers) > VOTERS_LEFT_MIN and not promise.loses_one
    return can and rng.random() < CHANCE


class Electorate:
    def __init__(self, stage: ClusterStage) -> None:
        self._stage = stage
        self.removed = 0

    async def run(self, client: SimulatedClient) -> None:
        """For a client's job."""
        while not self._stage.faults_are_over:
            await asyncio.sleep(client.rng.expovariate(1 / PAUSE_S))
            voters = self._stage.cluster.voters()
            if len(voters) > VOTERS_LEFT_MIN:
                await self._remove(client, client.rng.choice(voters))

    async def _remove(self, client: SimulatedClient, voter: Voter) -> None:
        request = RemoveRaftVoterRequest(
            cluster_id=CLUSTER_ID, voter_id=voter.id, voter_directory_id=voter.directory_id
        )
        answer = await client.ask(request, RemoveRaftVoterResponse, timeout_ms=TIMEOUT_MS)
        if answer is not None and answer.error_code == ErrorCode.NONE:
            self.removed += 1
