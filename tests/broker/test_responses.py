"""Responses leave in the order of the requests, after their records are written."""

from __future__ import annotations

import pytest

from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.records.batch import headers
from barnabas.records.record import read_records
from barnabas.testing import Broker

from .conversation import Conversation, batch, end_offset, fetch, produce, records_of


def metadata(topic: str) -> tuple[MetadataRequest, int]:
    return MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=topic)]), 12


def test_pipelined_requests_get_responses_in_order(broker: Broker, topic: str) -> None:
    with Conversation(broker) as talk:
        talk.send(
            metadata(topic),
            produce(topic, batch(b"1")),
            (ApiVersionsRequest(client_software_name="test", client_software_version="1"), 3),
            produce(topic, batch(b"2"), batch(b"3")),
            fetch(topic, 0),
            metadata(topic),
        )
        assert talk.receive().topics[0].name == topic
        assert talk.receive().responses[0].partition_responses[0].base_offset == 0
        assert talk.receive().error_code == ErrorCode.NONE
        assert [p.base_offset for p in talk.receive().responses[0].partition_responses] == [1, 0]
        assert talk.receive().error_code == ErrorCode.NONE
        assert talk.receive().topics[0].name == topic


def test_requests_behind_a_waiting_fetch_wait_for_it(broker: Broker, topic: str) -> None:
    with Conversation(broker) as waiting, Conversation(broker) as other:
        waiting.send(fetch(topic, 0, wait_ms=30_000), metadata(topic), produce(topic, batch(b"late")))
        other.ask(*produce(topic, batch(b"woken")))
        fetched = waiting.receive()
        assert [record.value for record in read_records(records_of(fetched))] == [b"woken"]
        assert waiting.receive().topics[0].name == topic
        assert waiting.receive().responses[0].partition_responses[0].base_offset == 1


def test_a_fetch_waits_for_min_bytes(broker: Broker, topic: str) -> None:
    with Conversation(broker) as waiting, Conversation(broker) as other:
        each = batch(b"x" * 1000)
        waiting.send(fetch(topic, 0, wait_ms=30_000, min_bytes=3 * len(each)))
        for _ in range(3):
            other.ask(*produce(topic, each))
        assert len(records_of(waiting.receive())) == 3 * len(each)


def test_an_empty_fetch_gets_a_response_after_its_maximum_wait(broker: Broker, topic: str) -> None:
    with Conversation(broker) as talk:
        answer = talk.ask(*fetch(topic, 0, wait_ms=20))
        assert answer.error_code == ErrorCode.NONE
        assert records_of(answer) == b""


def test_ten_thousand_pipelined_produces_get_dense_offsets(broker: Broker, topic: str) -> None:
    with Conversation(broker) as talk:
        for _ in range(10):
            talk.send(*[produce(topic, batch(b"%d" % number)) for number in range(1000)])
        offsets = [talk.receive().responses[0].partition_responses[0].base_offset for _ in range(10_000)]
        assert offsets == list(range(10_000))
        assert end_offset(talk, topic) == 10_000


def test_large_batches_arrive_whole(broker: Broker, topic: str) -> None:
    large = batch(*[bytes([number]) * 100_000 for number in range(10)])
    with Conversation(broker) as talk:
        talk.send(produce(topic, large), produce(topic, batch(b"small")), produce(topic, large))
        offsets = [talk.receive().responses[0].partition_responses[0].base_offset for _ in range(3)]
        assert offsets == [0, 10, 11]
        fetched = records_of(talk.ask(*fetch(topic, 11)))
        assert [record.value for record in read_records(fetched)] == [bytes([n]) * 100_000 for n in range(10)]


@pytest.mark.parametrize("acks", [1, -1])
def test_later_requests_take_the_shortcut_and_get_the_same_response(
    broker: Broker, topic: str, acks: int
) -> None:
    with Conversation(broker) as talk:
        answers = [talk.ask(*produce(topic, batch(b"again"), acks=acks)) for _ in range(5)]
        partitions = [answer.responses[0].partition_responses[0] for answer in answers]
        assert [partition.base_offset for partition in partitions] == [0, 1, 2, 3, 4]
        assert {answer.responses[0].name for answer in answers} == {topic}
        assert {(p.error_code, p.log_append_time_ms, p.log_start_offset) for p in partitions} == {(0, -1, 0)}


def test_a_bad_batch_among_good_ones_is_refused_alone(broker: Broker, topic: str) -> None:
    good = batch(b"good")
    bad = good[:-1] + bytes([good[-1] ^ 1])
    with Conversation(broker) as talk:
        talk.send(*[produce(topic, each) for each in (good, good, bad, good)])
        answers = [talk.receive().responses[0].partition_responses[0] for _ in range(4)]
        assert [answer.error_code for answer in answers] == [0, 0, ErrorCode.CORRUPT_MESSAGE, 0]
        assert [answer.base_offset for answer in answers] == [0, 1, -1, 2]


def test_a_repeated_batch_of_an_idempotent_producer_gets_the_first_response_again(
    broker: Broker, topic: str
) -> None:
    with Conversation(broker) as talk:
        each = [batch(b"x", producer_id=77, epoch=0, sequence=number) for number in range(4)]
        for number in range(4):
            answer = talk.ask(*produce(topic, each[number]))
            assert answer.responses[0].partition_responses[0].base_offset == number
        again = talk.ask(*produce(topic, each[2])).responses[0].partition_responses[0]
        assert (again.error_code, again.base_offset) == (0, 2)
        gap = batch(b"x", producer_id=77, epoch=0, sequence=9)
        refused = talk.ask(*produce(topic, gap)).responses[0].partition_responses[0]
        assert refused.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert end_offset(talk, topic) == 4


def test_an_error_with_acks_0_closes_the_connection(broker: Broker, topic: str) -> None:
    with Conversation(broker) as talk:
        talk.send(produce("no such topic", batch(b"x"), acks=0), answered=False)
        assert talk.is_closed()


def test_a_large_backlog_comes_in_one_response_while_others_are_served(broker: Broker, topic: str) -> None:
    values = [bytes([number]) * 900_000 for number in range(30)]
    with Conversation(broker) as reader, Conversation(broker) as other:
        for value in values:
            other.ask(*produce(topic, batch(value)))
        request, version = fetch(topic, 0)
        request.max_bytes = request.topics[0].partitions[0].partition_max_bytes = 100 << 20
        reader.send((request, version))
        assert other.ask(*metadata(topic)).topics[0].name == topic
        fetched = records_of(reader.receive())
    found = [read_records(fetched[at : at + header.size])[0].value for at, header in headers(fetched)]
    assert found == values


def test_acks_0_gets_no_response(broker: Broker, topic: str) -> None:
    with Conversation(broker) as talk:
        talk.send(produce(topic, batch(b"quiet"), acks=0), answered=False)
        assert talk.ask(*produce(topic, batch(b"loud"))).responses[0].partition_responses[0].base_offset == 1


def test_flush_messages_makes_records_durable_before_the_response(broker: Broker) -> None:
    broker.create_topic("synced", configs={"flush.messages": 1})
    with Conversation(broker) as talk:
        talk.send(*[produce("synced", batch(b"x")) for _ in range(20)])
        offsets = [talk.receive().responses[0].partition_responses[0].base_offset for _ in range(20)]
        assert offsets == list(range(20))
        assert talk.ask(*produce("synced", batch(b"y"))).responses[0].partition_responses[0].base_offset == 20
