"""The same requests to an active controller of either product: what brokers and administrators are told.

Brokers 11 to 14 exist as requests only: they register, beat and report in-sync replicas, as real ones would.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.client.asyncio_network import Connection, connect
from barnabas.client.core.address import parse_address
from barnabas.metadata.versions import supported_features
from barnabas.protocol import Message, apis
from barnabas.protocol.messages.alter_partition import AlterPartitionRequest
from barnabas.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from barnabas.protocol.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from barnabas.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from barnabas.protocol.messages.broker_registration import BrokerRegistrationRequest
from barnabas.protocol.messages.create_partitions import CreatePartitionsRequest
from barnabas.protocol.messages.create_topics import CreateTopicsRequest
from barnabas.protocol.messages.describe_cluster import DescribeClusterRequest
from barnabas.protocol.messages.describe_quorum import DescribeQuorumRequest
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
    connection = await connect(parse_address(address))
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
        await odd_topics(talk)
        await odd_moves(talk)
        await odd_elections(talk)
        await odd_brokers(talk)
        return talk.said
    finally:
        await connection.close()


async def odd_topics(talk: Talk) -> None:
    """Topics and partitions placed by hand, badly; asked for twice; on brokers that are not there."""
    topic = CreateTopicsRequest.CreatableTopic
    place = topic.CreatableReplicaAssignment

    def placed(name: str, *brokers: list[int], first: int = 0, **more: Any) -> Any:
        places = [place(partition_index=first + at, broker_ids=each) for at, each in enumerate(brokers)]
        return topic(
            name=name, **{"num_partitions": -1, "replication_factor": -1, **more}, assignments=places
        )

    wrong = [
        placed("unknown-broker", [11, 99]),
        placed("twice-the-same", [11, 11]),
        placed("nobody", []),
        placed("two-sizes", [11, 13], [11]),
        placed("not-from-zero", [11], first=1),
        placed("negative", [-1]),
        placed("with-a-count", [11], num_partitions=1),
        placed("with-a-factor", [11], replication_factor=1),
        topic(name="too-many-replicas", num_partitions=1, replication_factor=9),
        topic(name="no-replicas", num_partitions=1, replication_factor=0),
        topic(name="no-partitions", num_partitions=0, replication_factor=1),
    ]
    for each in wrong:  # one by one: the order of an answer's topics is anybody's
        await talk.ask(CreateTopicsRequest(topics=[each], validate_only=True))
    twice = topic(name="asked-twice", num_partitions=1, replication_factor=1)
    await talk.ask(CreateTopicsRequest(topics=[twice, twice], validate_only=True))
    await talk.ask(CreateTopicsRequest(topics=[]))
    more = CreatePartitionsRequest.CreatePartitionsTopic
    for count, brokers in (
        (1, None),
        (0, None),
        (-1, None),
        (2, [[11, 13, 99]]),
        (2, [[11, 11, 13]]),
        (2, [[11]]),
        (2, [[]]),
        (2, []),
        (3, [[11, 13, 14]]),
        (2, [[11, 13, 14], [11, 13, 14]]),
    ):
        places = None if brokers is None else [more.CreatePartitionsAssignment(broker_ids=x) for x in brokers]
        wanted = more(name="t", count=count, assignments=places)
        await talk.ask(CreatePartitionsRequest(topics=[wanted], validate_only=True, timeout_ms=5_000))
    for names in (("nobody",), ("t", "t"), ()):
        asked = [more(name=name, count=2, assignments=None) for name in names]
        await talk.ask(CreatePartitionsRequest(topics=asked, validate_only=True, timeout_ms=5_000))


async def odd_moves(talk: Talk) -> None:
    topic = AlterPartitionReassignmentsRequest.ReassignableTopic
    partition = topic.ReassignablePartition
    for name, partitions in (
        ("nobody", [(0, [11])]),
        ("t", [(-1, [11])]),
        ("t", [(0, [-1])]),
        ("t", [(0, [13, 99])]),
        ("t", [(0, [13, 13])]),
        ("t", [(0, [])]),
        ("t", [(5, None)]),
        ("t", []),
    ):
        asked = [partition(partition_index=index, replicas=replicas) for index, replicas in partitions]
        await talk.ask(AlterPartitionReassignmentsRequest(topics=[topic(name=name, partitions=asked)]))
    await talk.ask(AlterPartitionReassignmentsRequest(topics=[]))
    listed = ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics
    for name, indexes in (("nobody", [0]), ("t", [0, 7, -1]), ("t", [])):
        topics = [listed(name=name, partition_indexes=indexes)]
        await talk.ask(ListPartitionReassignmentsRequest(topics=topics))
    await talk.ask(ListPartitionReassignmentsRequest(topics=[]))


async def odd_elections(talk: Talk) -> None:
    wanted = ElectLeadersRequest.TopicPartitions
    for kind in (0, 1):
        await talk.ask(ElectLeadersRequest(election_type=kind, topic_partitions=None))
        await talk.ask(ElectLeadersRequest(election_type=kind, topic_partitions=[]))
        await talk.elect(kind, -1)
        await talk.ask(
            ElectLeadersRequest(election_type=kind, topic_partitions=[wanted(topic="t", partitions=[])])
        )


async def odd_brokers(talk: Talk) -> None:
    """Heartbeats, registrations and directories of brokers that are unknown, old, or of another cluster."""
    for broker_id, epoch in ((99, 5), (11, talk.epochs[11] + 1), (11, -1)):
        await talk.ask(
            BrokerHeartbeatRequest(broker_id=broker_id, broker_epoch=epoch, current_metadata_offset=CAUGHT_UP)
        )
    for broker_id in (99, -1):
        await talk.ask(UnregisterBrokerRequest(broker_id=broker_id))
    dirs = AssignReplicasToDirsRequest.DirectoryData
    for broker_id, epoch, directory, topic_id, index in (
        (99, 5, bytes([111]) * 16, talk.topic_id, 0),
        (11, talk.epochs[11] + 1, bytes([111]) * 16, talk.topic_id, 0),
        (11, talk.epochs[11], bytes([7]) * 16, talk.topic_id, 0),
        (11, talk.epochs[11], bytes([111]) * 16, bytes([9]) * 16, 0),
        (11, talk.epochs[11], bytes([111]) * 16, talk.topic_id, 9),
        (14, talk.epochs[14], bytes([114]) * 16, talk.topic_id, 0),
    ):
        partition = dirs.TopicData.PartitionData(partition_index=index)
        data = dirs(id=directory, topics=[dirs.TopicData(topic_id=topic_id, partitions=[partition])])
        await talk.ask(
            AssignReplicasToDirsRequest(broker_id=broker_id, broker_epoch=epoch, directories=[data])
        )
    quorum = DescribeQuorumRequest.TopicData
    for name, index in (("t", 0), ("__cluster_metadata", 1)):
        asked = quorum(topic_name=name, partitions=[quorum.PartitionData(partition_index=index)])
        await talk.ask(DescribeQuorumRequest(topics=[asked]))
    await talk.ask(DescribeQuorumRequest(topics=[]))
    await talk.ask(DescribeClusterRequest(endpoint_type=1))
    await talk.ask(DescribeClusterRequest(endpoint_type=7))


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
