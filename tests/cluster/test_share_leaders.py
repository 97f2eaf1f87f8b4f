"""Leaders of share partitions on three nodes: they are killed, and every record is accepted."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from barnabas.client.cluster import Cluster as Client
from barnabas.client.consumers.share_consumer import ShareConsumer, ShareConsumerSettings
from barnabas.client.core.address import parse_bootstrap
from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from barnabas.protocol.messages.share_fetch import ShareFetchRequest
from barnabas.testing.cluster import Cluster
from barnabas.testing.waiting import wait_until
from broker.conversation import Conversation
from broker.share_member import VERSION, FetchTopic, topic_id
from cluster.replicated import SOON, Writer, leader, wait_for_isr

GROUP_RESOURCE = 32
EVERYBODY = {1, 2, 3}


@pytest.fixture(scope="module")
def running() -> Iterator[Cluster]:
    state = {
        "share.coordinator.state.topic.num.partitions": 3,
        "share.coordinator.state.topic.replication.factor": 3,
        "share.coordinator.state.topic.min.isr": 1,
        "offsets.topic.replication.factor": 3,
        "offsets.topic.num.partitions": 3,
    }
    with Cluster(brokers=3, overrides={**SOON, **state}) as cluster:
        yield cluster


@pytest.fixture
def cluster(running: Cluster) -> Cluster:
    running.start_again()
    return running


class Accepting:
    """A member in a thread of its own, which accepts what it gets."""

    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self.accepted: list[int] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._live(bootstrap, group, topic)))
        self._thread.start()

    async def _live(self, bootstrap: str, group: str, topic: str) -> None:
        async with Client(parse_bootstrap(bootstrap)) as client:
            consumer = ShareConsumer(client, ShareConsumerSettings(group))
            await consumer.subscribe([topic])
            try:
                while not self._ended.is_set():
                    found = await consumer.poll(500)
                    self.accepted += [int(record.value or b"") for record in found]
            finally:
                await consumer.close()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()


def read_from_the_start(cluster: Cluster, group: str) -> None:
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    entry = resource.AlterableConfig(name="share.auto.offset.reset", config_operation=0, value="earliest")
    request = IncrementalAlterConfigsRequest(
        resources=[resource(resource_type=GROUP_RESOURCE, resource_name=group, configs=[entry])]
    )
    with Conversation(None, port=int(cluster[1].address.rpartition(":")[2])) as talk:  # type: ignore[arg-type]
        assert not talk.ask(request, 1).responses[0].error_code


@pytest.mark.long
def test_all_records_are_accepted_while_leaders_die(cluster: Cluster) -> None:
    cluster.create_topic("shared", replication_factor=3)
    read_from_the_start(cluster, "sharers")
    writer = Writer(cluster.bootstrap, "shared")
    writer.write(300)
    writer.flush()
    members = [Accepting(cluster.bootstrap, "sharers", "shared") for _ in range(3)]

    def accepted() -> set[int]:
        return {value for member in members for value in member.accepted}

    try:
        wait_until(lambda: len(accepted()) >= 300, 60, what=lambda: f"{len(accepted())} of 300 are accepted")
        for round_number in (1, 2):
            node = leader(cluster, "shared")
            node.kill()
            writer.write_more(200, 60)
            wait_until(
                lambda: accepted() >= set(writer.acknowledged),
                90,
                what=lambda: f"{len(set(writer.acknowledged) - accepted())} records are not accepted",
            )
            node.start()
            wait_for_isr(cluster, "shared", EVERYBODY)
            assert round_number
    finally:
        for member in members:
            member.stop()


@pytest.mark.long
def test_a_broker_that_does_not_lead_names_the_leader(cluster: Cluster) -> None:
    cluster.create_topic("led", replication_factor=3)
    node = leader(cluster, "led")
    other = next(each for each in cluster.brokers if each is not node)
    with Conversation(None, port=int(other.address.rpartition(":")[2])) as talk:  # type: ignore[arg-type]
        asked = [FetchTopic(topic_id=topic_id(talk, "led"), partitions=[FetchTopic.FetchPartition()])]
        request = ShareFetchRequest(group_id="g", member_id="m", max_records=1, batch_size=1, topics=asked)
        response = talk.ask(request, VERSION)
        [data] = response.responses[0].partitions
        assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert data.current_leader.leader_id == node.id
        assert [each.node_id for each in response.node_endpoints] == [node.id]
