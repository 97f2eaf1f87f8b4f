"""Quotas: responses carry the throttle time, and the broker mutes the connection meanwhile."""

from __future__ import annotations

import pytest

from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.create_partitions import CreatePartitionsRequest
from barnabas.protocol.messages.create_topics import CreateTopicsRequest
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.messages.produce import ProduceRequest
from barnabas.testing import Broker

from .administration import set_quotas
from .conversation import Conversation, batch, fetch, produce

METADATA_VERSION = 12
WINDOW_S = 10
RATE = 1_000.0
NOBODY = MetadataRequest(topics=[])


@pytest.fixture
def client(request: pytest.FixtureRequest) -> str:
    """A client id that no other test uses."""
    return str(request.node.name)


def sized(topic: str, size: int, acks: int = 1) -> tuple[ProduceRequest, int]:
    """One record of this size."""
    return produce(topic, batch(b"x" * size), acks=acks)


def is_muted(talk: Conversation, broker: Broker) -> bool:
    """Whether a request on this connection gets no response while others do."""
    talk.send((NOBODY, METADATA_VERSION))
    with Conversation(broker, client_id="somebody else") as other:
        for _ in range(20):
            other.ask(NOBODY, METADATA_VERSION)
    return not talk.has_answer()


def test_a_producer_over_its_quota_gets_a_throttle_time_and_is_muted(
    broker: Broker, topic: str, client: str
) -> None:
    set_quotas(broker, {"client-id": client}, producer_byte_rate=RATE)
    with Conversation(broker, client_id=client) as talk:
        first = talk.ask(*sized(topic, 2_000))
        second = talk.ask(*sized(topic, 20_000))
        sent = 22_000
        assert first.throttle_time_ms == 0
        assert second.throttle_time_ms == pytest.approx((sent / RATE - WINDOW_S) * 1000, rel=0.1)
        assert second.responses[0].partition_responses[0].error_code == ErrorCode.NONE
        assert is_muted(talk, broker)


def test_a_producer_without_acknowledgements_is_muted_too(broker: Broker, topic: str, client: str) -> None:
    set_quotas(broker, {"client-id": client}, producer_byte_rate=RATE)
    with Conversation(broker, client_id=client) as talk:
        talk.send(sized(topic, 30_000, acks=0), answered=False)
        assert is_muted(talk, broker)


def test_a_producer_that_took_the_shortcut_is_counted_from_the_quota_on(
    broker: Broker, topic: str, client: str
) -> None:
    with Conversation(broker, client_id=client) as talk:
        for _ in range(5):
            assert talk.ask(*sized(topic, 20_000)).throttle_time_ms == 0
        set_quotas(broker, {"client-id": client}, producer_byte_rate=RATE)
        assert talk.ask(*sized(topic, 20_000)).throttle_time_ms > 0


def test_a_removed_quota_throttles_no_client(broker: Broker, topic: str, client: str) -> None:
    set_quotas(broker, {"client-id": client}, producer_byte_rate=RATE)
    set_quotas(broker, {"client-id": client}, producer_byte_rate=None)
    with Conversation(broker, client_id=client) as talk:
        for _ in range(3):
            assert talk.ask(*sized(topic, 20_000)).throttle_time_ms == 0


def test_a_clients_connections_share_its_quota(broker: Broker, topic: str, client: str) -> None:
    set_quotas(broker, {"client-id": client}, producer_byte_rate=RATE)
    with Conversation(broker, client_id=client) as one, Conversation(broker, client_id=client) as two:
        assert one.ask(*sized(topic, 9_000)).throttle_time_ms == 0
        assert two.ask(*sized(topic, 9_000)).throttle_time_ms > 0


def test_a_quota_of_a_user_comes_before_one_of_its_client_id(broker: Broker, topic: str, client: str) -> None:
    set_quotas(broker, {"client-id": client}, producer_byte_rate=RATE)
    set_quotas(broker, {"user": "ANONYMOUS", "client-id": client}, producer_byte_rate=1e9)
    with Conversation(broker, client_id=client) as talk:
        assert talk.ask(*sized(topic, 50_000)).throttle_time_ms == 0


def test_a_consumer_over_its_quota_gets_nothing_and_waits_then_gets_its_data(
    broker: Broker, topic: str, client: str
) -> None:
    with Conversation(broker) as talk:
        for _ in range(30):
            talk.ask(*sized(topic, 10_000))
    set_quotas(broker, {"client-id": client}, consumer_byte_rate=20_000.0)
    with Conversation(broker, client_id=client) as talk:
        offset, waited, read_after_waiting = 0, 0, 0
        while read_after_waiting < 3:
            answer = talk.ask(*fetch(topic, offset))
            found = [p.records for t in answer.responses for p in t.partitions if p.records]
            if answer.throttle_time_ms:
                assert not found
                waited += 1
            else:
                offset += len(found)  # each batch has one record, and no answer holds two of them
                read_after_waiting += waited > 0
        assert waited


def test_a_fetch_of_a_limited_consumer_is_cut_small(broker: Broker, topic: str, client: str) -> None:
    with Conversation(broker) as talk:
        for _ in range(10):
            talk.ask(*sized(topic, 10_000))
    set_quotas(broker, {"client-id": client}, consumer_byte_rate=50_000.0)
    with Conversation(broker, client_id=client) as talk:
        answer = talk.ask(*fetch(topic, 0))
        [partition] = [p for t in answer.responses for p in t.partitions]
        assert 0 < len(partition.records) <= 25_000


def test_a_client_that_uses_too_much_time_waits(broker: Broker, client: str) -> None:
    set_quotas(broker, {"client-id": client}, request_percentage=0.0001)
    with Conversation(broker, client_id=client) as talk:
        waits = [talk.ask(NOBODY, METADATA_VERSION).throttle_time_ms for _ in range(2)]
        assert 0 < max(waits) <= 1000  # a request quota makes nobody wait longer than a sample
    set_quotas(broker, {"client-id": client}, request_percentage=None)


def creation(name: str, partitions: int) -> CreateTopicsRequest:
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    return CreateTopicsRequest(topics=[topic], timeout_ms=10_000)


def test_a_client_that_changes_too_many_partitions_is_refused(broker: Broker, client: str) -> None:
    set_quotas(broker, {"client-id": client}, controller_mutation_rate=1.0)
    with Conversation(broker, client_id=client) as talk:
        first = talk.ask(creation(f"{client}-1", 20), 7)
        assert first.topics[0].error_code == ErrorCode.NONE
        assert first.throttle_time_ms == pytest.approx(9_000, rel=0.1)
    for request, version in (
        (creation(f"{client}-2", 1), 7),
        (DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name=f"{client}-1")]), 6),
        (
            CreatePartitionsRequest(
                topics=[CreatePartitionsRequest.CreatePartitionsTopic(name=f"{client}-1", count=21)]
            ),
            3,
        ),
    ):
        with Conversation(broker, client_id=client) as talk:
            answer = talk.ask(request, version)
            [result] = next(
                getattr(answer, name) for name in ("topics", "responses", "results") if hasattr(answer, name)
            )
            assert result.error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
            assert answer.throttle_time_ms > 0


def test_an_older_client_is_served_and_waits_afterwards(broker: Broker, client: str) -> None:
    set_quotas(broker, {"client-id": client}, controller_mutation_rate=1.0)
    with Conversation(broker, client_id=client) as talk:
        assert talk.ask(creation(f"{client}-1", 20), 5).throttle_time_ms > 0
    with Conversation(broker, client_id=client) as talk:
        answer = talk.ask(creation(f"{client}-2", 1), 5)
        assert answer.topics[0].error_code == ErrorCode.NONE
        assert answer.throttle_time_ms > 0
        assert is_muted(talk, broker)


def test_auto_created_topics_count_too(broker: Broker, client: str) -> None:
    set_quotas(broker, {"client-id": client}, controller_mutation_rate=0.01)
    names = [MetadataRequest.MetadataRequestTopic(name=f"{client}-{number}") for number in range(3)]
    with Conversation(broker, client_id=client) as talk:
        answer = talk.ask(MetadataRequest(topics=names, allow_auto_topic_creation=True), METADATA_VERSION)
        assert [topic.error_code for topic in answer.topics] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 3
        assert answer.throttle_time_ms > 0
        assert is_muted(talk, broker)


def test_an_address_that_connects_too_often_is_cut_off(broker: Broker) -> None:
    address = "127.0.0.23"
    set_quotas(broker, {"ip": address}, connection_creation_rate=1.0)
    talks = [Conversation(broker, source=address) for _ in range(15)]
    try:
        talks[0].ask(NOBODY, METADATA_VERSION)
        assert talks[-1].is_closed()
    finally:
        for talk in talks:
            talk.__exit__(None, None, None)
        set_quotas(broker, {"ip": address}, connection_creation_rate=None)


def test_quotas_come_back_after_a_restart(tmp_path_factory: pytest.TempPathFactory) -> None:
    data = tmp_path_factory.mktemp("data")
    with Broker(data) as broker:
        set_quotas(broker, {"client-id": "greedy"}, producer_byte_rate=RATE)
        broker.create_topic("kept")
    with Broker(data) as broker, Conversation(broker, client_id="greedy") as talk:
        assert talk.ask(*sized("kept", 50_000)).throttle_time_ms > 0
