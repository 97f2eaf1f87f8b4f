"""The history of a cluster whose nodes and clients log in: the same clients, faults and checks, with SASL
everywhere and sessions so short that they are renewed many times.

Checks, in addition to those of `cluster`: strangers, who know no password or do not log in at all, are never
served, and nothing that they ask for happens.
"""

from __future__ import annotations

import asyncio

from barnabas.client.core.errors import AuthenticationError, ClientError
from barnabas.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from barnabas.security.clients.client_security import PLAINTEXT, ClientSecurity, client_security
from barnabas.simulation.histories.cluster import ClusterHistory
from barnabas.simulation.histories.cluster_stage import ClusterStage
from barnabas.simulation.histories.stage import Machines
from barnabas.simulation.world.client import Job, SimulatedClient
from barnabas.simulation.world.cluster import SimulatedCluster
from barnabas.simulation.world.faults import Plan
from barnabas.simulation.world.history import Wrong
from barnabas.simulation.world.routed_client import RoutedClient
from barnabas.simulation.world.world import World

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
NODE, NODE_PASSWORD = "node", "of the nodes"
CLIENT, CLIENT_PASSWORD = "client", "of the clients"
SESSION_MS = 1_200
PROPERTIES = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "SCRAM-SHA-256",
    "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
    "listener.name.plaintext.scram-sha-256.sasl.jaas.config": (
        f'{SCRAM} required username="{NODE}" password="{NODE_PASSWORD}";'
    ),
    "listener.name.controller.plain.sasl.jaas.config": (
        f'{PLAIN} required username="{NODE}" password="{NODE_PASSWORD}" user_{NODE}="{NODE_PASSWORD}";'
    ),
    "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "connections.max.reauth.ms": str(SESSION_MS),
}
CREDENTIALS = [
    f"SCRAM-SHA-256=[name={NODE},password={NODE_PASSWORD}]",
    f"SCRAM-SHA-256=[name={CLIENT},password={CLIENT_PASSWORD}]",
]
STRANGER, SILENT = "stranger", "silent-stranger"
STOLEN = "stolen-{}"
ATTEMPT_PAUSE_S = 0.3


class SecuredStage(ClusterStage):
    def _build(self, properties: dict[str, str]) -> Machines:
        properties = {**properties, **PROPERTIES}
        self.cluster = SimulatedCluster(self.world, self.shape, properties, CREDENTIALS)
        return self.cluster

    def _client(self, name: str, job: Job) -> SimulatedClient:
        return RoutedClient(self.world, self.cluster.brokers, name, job, self._security(name))

    def _security(self, name: str) -> ClientSecurity:
        if name == SILENT:
            return PLAINTEXT
        password = "guessed" if name == STRANGER else CLIENT_PASSWORD
        properties = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.jaas.config": f'{SCRAM} required username="{CLIENT}" password="{password}";',
        }
        return client_security(properties, random_bytes=self.world.rng(f"nonces of {name}").randbytes)


class ClusterLoginsHistory(ClusterHistory):
    name = "cluster-logins"
    stage_class = SecuredStage

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._refused = self._attempts = 0

    def others(self) -> dict[str, Job]:
        return {**super().others(), STRANGER: self._break_in, SILENT: self._break_in}

    async def run(self, world: World, faults: Plan) -> dict[str, int]:
        counts = await super().run(world, faults)
        image = self._cluster_stage.cluster.image()
        assert image is not None
        stolen = [name for name in image.topics.by_name if name.startswith(STOLEN.format(""))]
        if stolen:
            raise Wrong(f"strangers created {stolen}")
        if not self._refused:
            raise Wrong("no stranger was refused: none of them has reached a broker")
        return counts | {"refused logins": self._refused}

    async def _break_in(self, client: SimulatedClient) -> None:
        brokers = list(self._cluster_stage.cluster.brokers.values())
        while not self._is_over:
            self._attempts += 1
            topic = CreateTopicsRequest.CreatableTopic(
                name=STOLEN.format(self._attempts), num_partitions=1, replication_factor=-1
            )
            request = CreateTopicsRequest(topics=[topic], timeout_ms=1000)
            try:
                connection = await client.cluster.connection_to(client.rng.choice(brokers))
                await connection.send(request, CreateTopicsResponse)
            except AuthenticationError:
                self._refused += 1
            except ClientError:
                pass  # a fault, or the broker has closed the connection
            else:
                raise Wrong(f"{client.host} was served without a login")
            await asyncio.sleep(client.rng.expovariate(1 / ATTEMPT_PAUSE_S))
