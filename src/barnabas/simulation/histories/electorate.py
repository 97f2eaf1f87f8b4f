"""An administrator that removes voters from the quorum, one after the other; they join again automatically.

In: a stage with a dynamic quorum and automatic join, a client. Out: removals of random voters, including the
leader of the quorum, until the faults are over. At least two voters stay, so that no single node holds the
only copy.
Does not know: other clients, when a voter has joined again.
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
    """Whether a history removes voters. Not if a disk may be wiped: with fewer voters, one loss is too
    many."""
    can = shape.is_dynamic and len(shape.controllers) > VOTERS_LEFT_MIN and not promise.loses_one
    return can and rng.random() < CHANCE


class Electorate:
    def __init__(self, stage: ClusterStage) -> None:
        self._stage = stage
        self.removed = 0

    async def run(self, client: SimulatedClient) -> None:
        """Change the electorate until the history ends: the job of a client."""
        while not self._stage.faults_are_over:
            await asyncio.sleep(client.rng.expovariate(1 / PAUSE_S))
            voters = self._stage.cluster.voters()
            if len(voters) > VOTERS_LEFT_MIN:
                await self._remove(client, client.rng.choice(voters))

    async def _remove(self, client: SimulatedClient, voter: Voter) -> None:
        request = RemoveRaftVoterRequest(
            cluster_id=CLUSTER_ID, voter_id=voter.id, voter_directory_id=voter.directory_id
        )
        response = await client.ask(request, RemoveRaftVoterResponse, timeout_ms=TIMEOUT_MS)
        if response is not None and response.error_code == ErrorCode.NONE:
            self.removed += 1
