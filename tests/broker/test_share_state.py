"""The share coordinator behind a socket, and the persister that brokers call."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.node import Node
from barnabas.protocol import ErrorCode, uuid
from barnabas.protocol.messages.create_topics import CreateTopicsRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.initialize_share_group_state import InitializeShareGroupStateRequest
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.messages.read_share_group_state import ReadShareGroupStateRequest
from barnabas.protocol.messages.read_share_group_state_summary import ReadShareGroupStateSummaryRequest
from barnabas.protocol.messages.write_share_group_state import WriteShareGroupStateRequest
from barnabas.settings import BrokerSettings
from barnabas.settings.one_machine import one_node_properties
from barnabas.testing import Broker
from barnabas.testing.ports import free_ports

from .conversation import Conversation

SHARE = 2
InitTopic = InitializeShareGroupStateRequest.InitializeStateData
ReadTopic = ReadShareGroupStateRequest.ReadStateData
WriteTopic = WriteShareGroupStateRequest.WriteStateData
SummaryTopic = ReadShareGroupStateSummaryRequest.ReadStateSummaryData
Batch = WriteTopic.PartitionData.StateBatch


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    overrides = {"share.coordinator.state.topic.num.partitions": 3}
    with Broker(tmp_path_factory.mktemp("shares"), overrides=overrides) as broker:
        broker.create_topic("orders", 4)
        yield broker


@pytest.fixture(scope="module")
def topic_id(served: Broker) -> bytes:
    with Conversation(served) as talk:
        [topic] = talk.ask(
            MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="orders")]), 12
        ).topics
        found: bytes = topic.topic_id
        return found


def initialize(group: str, topic_id: bytes, *partitions: int, epoch: int = 1, start: int = 0) -> Any:
    data = [
        InitTopic.PartitionData(partition=each, state_epoch=epoch, start_offset=start) for each in partitions
    ]
    return InitializeShareGroupStateRequest(
        group_id=group, topics=[InitTopic(topic_id=topic_id, partitions=data)]
    )


def read(group: str, topic_id: bytes, *partitions: int, leader_epoch: int = 0) -> Any:
    data = [ReadTopic.PartitionData(partition=each, leader_epoch=leader_epoch) for each in partitions]
    return ReadShareGroupStateRequest(group_id=group, topics=[ReadTopic(topic_id=topic_id, partitions=data)])


def write(
    group: str, topic_id: bytes, partition: int, start: int, *batches: tuple[int, int, int, int]
) -> Any:
    data = WriteTopic.PartitionData(
        partition=partition,
        state_epoch=1,
        leader_epoch=0,
        start_offset=start,
        delivery_complete_count=0,
        state_batches=[
            Batch(first_offset=first, last_offset=last, delivery_state=state, delivery_count=count)
            for first, last, state, count in batches
        ],
    )
    return WriteShareGroupStateRequest(
        group_id=group, topics=[WriteTopic(topic_id=topic_id, partitions=[data])]
    )


def errors(response: Any) -> list[int]:
    return [data.error_code for topic in response.results for data in topic.partitions]


def test_the_persister_keeps_and_returns_state(tmp_path: Path) -> None:
    async def scenario() -> Any:
        port, controller_port = free_ports(2)
        properties = one_node_properties(port, controller_port) | {"log.dirs": str(tmp_path)}
        node = Node(BrokerSettings.load(properties), format_empty=True)
        await node.start()
        try:
            topics = [CreateTopicsRequest.CreatableTopic(name="t", num_partitions=4, replication_factor=1)]
            [topic] = (await node.broker.controller.handle(CreateTopicsRequest(topics=topics))).topics
            persister, topic_id = node.broker.share_persister, topic.topic_id
            assert errors(await persister.initialize(initialize("g", topic_id, 0, 1, 2, 3))) == [0] * 4
            batches = (5, 9, 0, 1), (20, 29, 2, 1)
            assert errors(await persister.write(write("g", topic_id, 1, 5, *batches))) == [0]
            return await persister.read(read("g", topic_id, 1))
        finally:
            await node.stop()

    [topic] = asyncio.run(scenario()).results
    [state] = topic.partitions
    assert (state.error_code, state.state_epoch, state.start_offset) == (0, 1, 5)
    assert [(each.first_offset, each.last_offset) for each in state.state_batches] == [(5, 9), (20, 29)]


def test_a_coordinator_of_share_partitions_is_found(served: Broker, topic_id: bytes) -> None:
    key = f"a:group:{uuid.to_text(topic_id)}:0"
    with Conversation(served) as talk:
        request = FindCoordinatorRequest(key_type=SHARE, coordinator_keys=[key, "group", "g:short:0"])
        found = talk.ask(request, 6).coordinators
        assert [each.error_code for each in found] == [
            ErrorCode.NONE,
            ErrorCode.INVALID_REQUEST,
            ErrorCode.INVALID_REQUEST,
        ]
        assert found[0].node_id == 1
        [refused] = talk.ask(FindCoordinatorRequest(key_type=SHARE, coordinator_keys=[key]), 5).coordinators
        assert refused.error_code == ErrorCode.INVALID_REQUEST


def test_state_is_kept_over_the_wire(served: Broker, topic_id: bytes) -> None:
    with Conversation(served) as talk:
        talk.ask(
            FindCoordinatorRequest(key_type=SHARE, coordinator_keys=[f"w:{uuid.to_text(topic_id)}:0"]), 6
        )
        assert errors(talk.ask(initialize("w", topic_id, *range(4), start=-1), 0)) == [0] * 4
        assert errors(talk.ask(write("w", topic_id, 0, 3, (3, 5, 2, 1)), 1)) == [0]
        [topic] = talk.ask(read("w", topic_id, 0, 1), 0).results
        assert {data.partition: data.start_offset for data in topic.partitions} == {0: 3, 1: -1}
