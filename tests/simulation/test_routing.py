"""Simulated clients send requests to the right broker, and learn from error responses."""

from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest
from barnabas.protocol.messages.produce import ProduceRequest, ProduceResponse
from barnabas.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from barnabas.simulation.world.routing import ANY, Role, Target, hint_in, needs_new_route, target_of


def test_records_go_to_leaders_and_the_rest_to_coordinators_or_anybody() -> None:
    data = ProduceRequest.TopicProduceData
    produce = ProduceRequest(
        topic_data=[data(name="orders", partition_data=[data.PartitionProduceData(index=2)])]
    )
    part = FetchRequest.FetchTopic.FetchPartition(partition=1)
    fetch = FetchRequest(topics=[FetchRequest.FetchTopic(topic="orders", partitions=[part])])

    assert target_of(produce) == Target(Role.LEADER, "orders", 2)
    assert target_of(fetch) == Target(Role.LEADER, "orders", 1)
    assert target_of(OffsetCommitRequest(group_id="readers")) == Target(Role.GROUP, "readers")
    assert target_of(StreamsGroupHeartbeatRequest(group_id="app")) == Target(Role.GROUP, "app")
    assert target_of(InitProducerIdRequest(transactional_id="t")) == Target(Role.TRANSACTION, "t")
    assert target_of(InitProducerIdRequest(transactional_id=None)) == ANY
    assert target_of(MetadataRequest()) == ANY


def test_an_error_response_may_name_the_new_leader() -> None:
    topic = ProduceResponse.TopicProduceResponse
    part = topic.PartitionProduceResponse
    refused = ProduceResponse(
        responses=[
            topic(
                partition_responses=[
                    part(
                        error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER,
                        current_leader=part.LeaderIdAndEpoch(leader_id=3, leader_epoch=7),
                    )
                ]
            )
        ]
    )
    taken = ProduceResponse(responses=[topic(partition_responses=[part()])])

    assert needs_new_route(refused)
    assert hint_in(refused) == (3, 7)
    assert not needs_new_route(taken)
    assert hint_in(taken) is None
