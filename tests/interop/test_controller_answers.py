"""The same requests to an active controller of either product: what brokers and administrators are told.

Brokers 11 to 14 exist as requests only: they register, beat and report in-sync replicas, as real ones would.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.client.address import parse_address
from barnabas.client.connection import Connection
from barnabas.metadata.versions import supported_features
from barnabas.protocol import Message, apis
from barnabas.protocol.messages.alter_partition import AlterPartitionRequest
from barnabas.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from barnabas.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from barnabas.protocol.messages.broker_registration import BrokerRegistrationRequest
from barnabas.protocol.messages.create_topics import CreateTopicsRequest
from barnabas.protocol.messages.elect_leaders import ElectLeadersRequest
from barnabas.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from barnabas.protocol.messages.unregister_broker import UnregisterBrokerRequest
from barnabas.testing.cluster import APACHE, BARNABAS, CLUSTER_ID, Cluster

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.usefixtures("java")]
PATIENT = {"broker.session.timeout.ms": 600_000, "min.insync.replicas": 2}
CAUGHT_UP = 1 << 60
FAKES = (11, 12, 13, 14)


class Talk:
    """One conversation with an active controller; `said` is what it answered."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.said: list[str] = []
        self.epochs: dict[int, int] = {}
        self.topic_id = b"not known yet"
        self.leader_epoch = self.partition_epoch = 0

    async def ask(self, request: Message, *, is_told: bool = True) -> Any:
        key = request.schema.key
        assert key is not None
        answer = await self._connection.send(request, apis.response_class(key))
        if is_told:
            text = repr(answer).replace(repr(self.topic_id), "*")  # which differs, and nothing else
            self.said.append(f"{type(request).__name__}: {text}")
        return answer

    async def register(self, broker_id: int) -> None:
        feature = BrokerRegistrationRequest.Feature
        answer = await self.ask(
            BrokerRegistrationRequest(
                broker_id=broker_id,
                cluster_id=CLUSTER_ID,
                incarnation_id=bytes([broker_id]) * 16,
                listeners=[
                    BrokerRegistrationRequest.Listener(name="PLAINTEXT", host="nowhere", port=broker_id)
                ],
                features=[
                    feature(name=name, min_supported_version=low, max_supported_version=high)
                    for name, (low, high) in supported_features().items()
                ],
                log_dirs=[bytes([100 + broker_id]) * 16],
            ),
            is_told=False,
        )
        assert answer.error_code == 0
        self.epochs[broker_id] = answer.broker_epoch
        await self.beat(broker_id)

    async def beat(self, broker_id: int, **wants: bool) -> None:
        epoch = self.epochs[broker_id]
        await self.ask(
            BrokerHeartbeatRequest(
                broker_id=broker_id, broker_epoch=epoch, current_metadata_offset=CAUGHT_UP, **wants
            )
        )

    async def isr(
        self, broker_id: int, isr: list[int], *, epoch: int = 0, version: int = 0, life: int = 0, **more: Any
    ) -> None:
        """AlterPartition; `epoch`, `version` and `life` are added to what is right."""
        topic = AlterPartitionRequest.TopicData
        state = topic.PartitionData.BrokerState
        answer = await self.ask(
            AlterPartitionRequest(
                broker_id=broker_id,
                broker_epoch=self.epochs[broker_id],
                topics=[
                    topic(
                        topic_id=self.topic_id,
                        partitions=[
                            topic.PartitionData(
                                leader_epoch=self.leader_epoch + epoch,
                                partition_epoch=self.partition_epoch + version,
                                new_isr_with_epochs=[
                                    state(broker_id=each, broker_epoch=self.epochs.get(each, 0) + life)
                                    for each in isr
                                ],
                                **more,
                            )
                        ],
                    )
                ],
            )
        )
        for found in answer.topics[0].partitions if answer.topics else ():
            if not found.error_code:
                self.leader_epoch, self.partition_epoch = found.leader_epoch, found.partition_epoch

    async def move(self, replicas: list[int] | None, *, number: int = 0, keep: bool = False) -> None:
        topic = AlterPartitionReassignmentsRequest.ReassignableTopic
        asked = topic.ReassignablePartition(partition_index=number, replicas=replicas)
        request = AlterPartitionReassignmentsRequest(
            allow_replication_factor_change=not keep, topics=[topic(name="t", partitions=[asked])]
        )
        answer = await self.ask(request)
        if answer.responses and not answer.responses[0].partitions[0].error_code:
            self.partition_epoch += 1
            self.leader_epoch += replicas is None  # a replica has left
        await self.ask(ListPartitionReassignmentsRequest(topics=None))

    async def elect(self, kind: int, number: int = 0, name: str = "t") -> None:
        topics = [ElectLeadersRequest.TopicPartitions(topic=name, partitions=[number])]
        await self.ask(ElectLeadersRequest(election_type=kind, topic_partitions=topics))


async def story(address: str) -> list[str]:
    connection = await Connection.open(parse_address(address))
    try:
        talk = Talk(connection)
        for broker_id in FAKES:
            await talk.register(broker_id)
        topic = CreateTopicsRequest.CreatableTopic
        place = topic.CreatableReplicaAssignment(partition_index=0, broker_ids=[11, 12, 13])
        wanted = topic(name="t", num_partitions=-1, replication_factor=-1, assignments=[place])
        made = await talk.ask(CreateTopicsRequest(topics=[wanted]), is_told=False)
        talk.topic_id = made.topics[0].topic_id
        # Epochs that are ahead, behind, or of another life; who does not lead; who is not a replica.
        for ahead in (1, -1):
            await talk.isr(11, [11, 12], epoch=ahead)
            await talk.isr(11, [11, 12], version=ahead)
        await talk.isr(12, [11, 12])
        await talk.isr(11, [11, 14])
        await talk.isr(11, [12, 13])
        await talk.isr(11, [11, 12], life=1)
        await talk.isr(11, [11], leader_recovery_state=1)
        await talk.isr(11, [11, 12])
        await talk.isr(11, [11])
        await talk.isr(11, [11, 12, 13])
        # A move, begun, cancelled, begun again, and complete when the new replica is in sync.
        for replicas in ([12, 13, 14], None, None, [12, 13, 14]):
            await talk.move(replicas)
        await talk.isr(11, [11, 12, 13, 14])
        await talk.ask(ListPartitionReassignmentsRequest(topics=None))
        for replicas in ([99], [12, 12], []):
            await talk.move(replicas)
        await talk.move([12, 13], keep=True)
        await talk.move([12], number=7)
        for kind in (0, 1):
            await talk.elect(kind)
            await talk.elect(kind, 9)
            await talk.elect(kind, name="nobody")
        # The leader wants to go: it is led out, may not come back in sync, and goes.
        await talk.beat(12, want_shut_down=True)
        await talk.elect(0)
        for _ in range(2):
            await talk.beat(12, want_shut_down=True)
        await talk.beat(13, want_fence=True)
        await talk.beat(13)
        await talk.ask(UnregisterBrokerRequest(broker_id=12))
        await talk.ask(UnregisterBrokerRequest(broker_id=12))
        return talk.said
    finally:
        await connection.close()


@pytest.fixture(scope="module")
def answers() -> Iterator[dict[str, list[str]]]:
    found = {}
    for product in (BARNABAS, APACHE):
        cluster = Cluster(brokers=1, controllers=1, overrides=PATIENT)
        cluster[101].product = product
        with cluster:
            found[product] = asyncio.run(story(cluster[101].address))
    yield found


def test_both_controllers_give_the_same_answers(answers: dict[str, list[str]]) -> None:
    assert len(answers[BARNABAS]) > 40
    assert answers[BARNABAS] == answers[APACHE]
