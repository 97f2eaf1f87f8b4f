"""Produce requests for many partitions: appended in parts, one response, errors at their partitions."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.broker.produce.produce_parts import (
    PARTITIONS_A_PART,
    PARTITIONS_AT_ONCE_MAX,
    is_long,
    not_written,
    split,
)
from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.produce import ProduceRequest, ProduceResponse
from barnabas.testing import Broker

from .conversation import Conversation, batch, end_offset

MANY = 2 * PARTITIONS_AT_ONCE_MAX
Data = ProduceRequest.TopicProduceData


@pytest.fixture(scope="module")
def many() -> Iterator[Broker]:
    with Broker() as broker:
        broker.create_topic("many", partitions=MANY)
        broker.create_topic("others", partitions=MANY)
        broker.create_topic("synced", partitions=MANY, configs={"flush.messages": 1})
        yield broker


def request(topics: dict[str, int], acks: int = 1, value: bytes = b"x") -> ProduceRequest:
    return ProduceRequest(
        transactional_id=None,
        acks=acks,
        timeout_ms=5000,
        topic_data=[
            Data(
                name=name,
                partition_data=[
                    Data.PartitionProduceData(index=index, records=memoryview(batch(value)))
                    for index in range(size)
                ],
            )
            for name, size in topics.items()
        ],
    )


def errors(response: ProduceResponse) -> dict[tuple[str, int], int]:
    return {
        (topic.name, answer.index): answer.error_code
        for topic in response.responses
        for answer in topic.partition_responses
        if answer.error_code
    }


@pytest.mark.parametrize("acks", [1, -1])
@pytest.mark.parametrize("version", [3, 9, 12])
def test_every_partition_gets_its_batch_and_its_result(many: Broker, acks: int, version: int) -> None:
    with Conversation(many) as talk:
        before = end_offset(talk, "many")
        response = talk.ask(request({"many": MANY, "others": MANY}, acks), version)
        assert [topic.name for topic in response.responses] == ["many", "others"]
        assert [len(topic.partition_responses) for topic in response.responses] == [MANY, MANY]
        assert not errors(response)
        answers = response.responses[0].partition_responses
        assert [answer.index for answer in answers] == list(range(MANY))
        assert {answer.base_offset for answer in answers} == {before}
        assert end_offset(talk, "many") == before + 1


def test_unknown_partitions_are_refused_alone(many: Broker) -> None:
    with Conversation(many) as talk:
        response = talk.ask(request({"many": MANY + 3, "missing": 2}), 12)
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert errors(response) == {
        **{("many", MANY + index): code for index in range(3)},
        **{("missing", index): code for index in range(2)},
    }


def test_logs_that_must_be_synced_before_the_response_are_synced(many: Broker) -> None:
    with Conversation(many) as talk:
        for number in range(3):
            response = talk.ask(request({"synced": MANY}), 9)
            assert not errors(response)
            assert {answer.base_offset for answer in response.responses[0].partition_responses} == {number}


def test_responses_of_one_connection_keep_the_order(many: Broker) -> None:
    with Conversation(many) as talk:
        for number in range(4):
            small = request({"others": 1}, value=b"%d" % number)
            assert not errors(talk.ask(request({"others": MANY}), 12))
            assert not errors(talk.ask(small, 12))


def test_a_request_is_split_without_losing_or_repeating_anything() -> None:
    whole = request({"a": 20, "b": 1, "c": 3 * PARTITIONS_A_PART, "d": PARTITIONS_AT_ONCE_MAX})
    assert is_long(whole)
    assert not is_long(request({"a": PARTITIONS_AT_ONCE_MAX}))
    parts = list(split(whole))
    assert max(len(part.topic_data[0].partition_data) for part in parts) == PARTITIONS_A_PART
    assert [place for part in parts for place in places(part)] == places(whole)


def places(request: ProduceRequest) -> list[tuple[str, int]]:
    return [(data.name, given.index) for data in request.topic_data for given in data.partition_data]


@pytest.mark.parametrize(
    ("written", "synced", "by_count", "is_lost"),
    [(6, 0, False, False), (5, 5, False, True), (6, 5, True, True), (6, 6, True, False)],
)
def test_a_batch_is_lost_if_its_log_has_not_written_or_not_synced_it(
    written: int, synced: int, by_count: bool, is_lost: bool
) -> None:
    log: Any = SimpleNamespace(
        written_offset=written,
        recovery_point=synced,
        failure=None,
        is_count_due=lambda: synced < written,
    )
    partition: Any = SimpleNamespace(log=log, syncs_by_count=by_count)
    assert (not_written(partition, 5) is not None) == is_lost
