"""Large batches are validated in threads: in order for their connection, without keeping others waiting."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.broker.produce import preparing
from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.produce import ProduceResponse
from barnabas.records.compression import Compression
from barnabas.testing import Broker
from broker.conversation import Conversation, batch, end_offset, fetch, produce, records_of
from poisoned_batches import batch_around, good, record, sized

LARGE = batch_around(good(2000), 2000)
POISONED = batch_around(good(2000) + b"\0", 2000)
SMALL = batch(b"small")
STRICT = {"barnabas.produce.validation": "strict"}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


class Gate:
    """Holds back the threads that validate."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.entered = threading.Semaphore(0)
        self.running = 0
        self.running_max = 0
        self._lock = threading.Lock()
        self._validate = preparing.validate_all

    def __call__(self, jobs: Any, version: int, now_ms: int, pause: Any) -> Any:
        if pause is None:
            return self._validate(jobs, version, now_ms, pause)
        with self._lock:
            self.running += 1
            self.running_max = max(self.running, self.running_max)
        self.entered.release()
        assert self.open.wait(60)
        with self._lock:
            self.running -= 1
        return self._validate(jobs, version, now_ms, pause)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    gate = Gate()
    monkeypatch.setattr(preparing, "validate_all", gate)
    try:
        yield gate
    finally:
        gate.open.set()


def results(answer: ProduceResponse) -> list[tuple[ErrorCode, int]]:
    found = answer.responses[0].partition_responses
    return [(ErrorCode(each.error_code), each.base_offset) for each in found]


def result(answer: ProduceResponse) -> tuple[ErrorCode, int]:
    [found] = results(answer)
    return found


def test_responses_keep_the_order_of_requests(broker: Broker) -> None:
    broker.create_topic("order", configs=STRICT)
    with Conversation(broker) as talk:
        for _ in range(3):  # the second time around a channel knows the request
            start = end_offset(talk, "order")
            talk.send(*[produce("order", each) for each in (SMALL, LARGE, SMALL, POISONED, LARGE, SMALL)])
            answers = [result(talk.receive()) for _ in range(6)]
            assert answers == [
                (ErrorCode.NONE, start),
                (ErrorCode.NONE, start + 1),
                (ErrorCode.NONE, start + 2001),
                (ErrorCode.INVALID_RECORD, -1),
                (ErrorCode.NONE, start + 2002),
                (ErrorCode.NONE, start + 4002),
            ]
        assert records_of(talk.ask(*fetch("order", 1)))[61 : len(LARGE)] == LARGE[61:]


def test_other_requests_are_served_while_a_thread_validates(broker: Broker, gate: Gate) -> None:
    broker.create_topic("others", configs=STRICT)
    with Conversation(broker) as slow, Conversation(broker) as quick:
        slow.send(produce("others", LARGE), produce("others", SMALL))
        assert gate.entered.acquire(timeout=60)
        assert [result(quick.ask(*produce("others", SMALL)))[1] for _ in range(3)] == [0, 1, 2]
        assert not slow.has_answer()
        gate.open.set()
        assert [result(slow.receive())[1] for _ in range(2)] == [3, 2003]


def test_few_batches_are_validated_at_a_time(broker: Broker, gate: Gate) -> None:
    broker.create_topic("few", configs=STRICT)
    talks = [Conversation(broker) for _ in range(6)]
    for talk in talks:
        talk.send(produce("few", LARGE))
    for _ in range(preparing.RUNNING_MAX):
        assert gate.entered.acquire(timeout=60)
    gate.open.set()
    offsets = [result(talk.receive())[1] for talk in talks]
    assert sorted(offsets) == [0, 2000, 4000, 6000, 8000, 10_000]
    assert gate.running_max == preparing.RUNNING_MAX
    for talk in talks:
        talk.__exit__(None, None, None)


def test_the_bytes_that_wait_are_bounded(broker: Broker, gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    broker.create_topic("bounded", configs=STRICT)
    monkeypatch.setattr(preparing, "WAITING_BYTES_MAX", 2 * len(LARGE))
    talks = [Conversation(broker) for _ in range(3)]
    for talk in talks[:2]:
        talk.send(produce("bounded", LARGE))
        assert gate.entered.acquire(timeout=60)
    refusal = talks[2].ask(*produce("bounded", LARGE))
    assert result(refusal) == (ErrorCode.REQUEST_TIMED_OUT, -1)  # clients try again
    gate.open.set()
    assert sorted(result(talk.receive())[1] for talk in talks[:2]) == [0, 2000]
    assert result(talks[2].ask(*produce("bounded", LARGE)))[1] == 4000
    for talk in talks:
        talk.__exit__(None, None, None)


def test_a_closed_connection_gives_its_turn_back(broker: Broker, gate: Gate) -> None:
    broker.create_topic("gone", configs=STRICT)
    for _ in range(preparing.RUNNING_MAX * 2):
        with Conversation(broker) as talk:
            talk.send(produce("gone", LARGE))
            if gate.running < preparing.RUNNING_MAX:
                assert gate.entered.acquire(timeout=60)
    gate.open.set()
    with Conversation(broker) as talk:
        assert result(talk.ask(*produce("gone", LARGE))) == (ErrorCode.NONE, 0)


def test_each_partition_of_a_request_gets_its_result(broker: Broker) -> None:
    broker.create_topic("several", partitions=5, configs=STRICT)
    batches = (SMALL, LARGE, POISONED, batch_around(b"no record", 1), LARGE)
    with Conversation(broker) as talk:
        for round_ in range(3):
            assert results(talk.ask(*produce("several", *batches))) == [
                (ErrorCode.NONE, round_),
                (ErrorCode.NONE, round_ * 2000),
                (ErrorCode.INVALID_RECORD, -1),
                (ErrorCode.INVALID_RECORD, -1),
                (ErrorCode.NONE, round_ * 2000),
            ]


def test_small_batches_of_one_request_are_too_long_together(broker: Broker, gate: Gate) -> None:
    broker.create_topic("together", partitions=40, configs=STRICT)
    parts = [batch_around(good(100), 100)] * 40
    with Conversation(broker) as talk:
        talk.send(produce("together", *parts))
        assert gate.entered.acquire(timeout=60)
        gate.open.set()
        assert results(talk.receive()) == [(ErrorCode.NONE, 0)] * 40


def test_sequence_numbers_are_checked_when_batches_are_appended(broker: Broker) -> None:
    broker.create_topic("sequences", configs=STRICT)
    values = [b"value"] * 1000
    sent = [batch(*values, producer_id=77, epoch=0, sequence=1000 * n) for n in range(5)]
    with Conversation(broker) as talk:
        talk.send(*[produce("sequences", each) for each in (*sent, sent[4], sent[2])])
        assert [result(talk.receive()) for _ in range(7)] == [
            *[(ErrorCode.NONE, 1000 * n) for n in range(5)],
            (ErrorCode.NONE, 4000),  # sent again: known
            (ErrorCode.NONE, 2000),
        ]
        gap = batch(*values, producer_id=77, epoch=0, sequence=9000)
        assert result(talk.ask(*produce("sequences", gap))) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
        assert end_offset(talk, "sequences") == 5000


def test_an_error_without_acks_closes_the_connection(broker: Broker) -> None:
    broker.create_topic("silent", configs=STRICT)
    with Conversation(broker) as talk:
        talk.send(produce("silent", LARGE, acks=0), answered=False)
        assert result(talk.ask(*produce("silent", LARGE)))[1] == 2000
        talk.send(produce("silent", POISONED, acks=0), answered=False)
        assert talk.is_closed()


@pytest.mark.parametrize("stamped", ["CreateTime", "LogAppendTime"])
def test_large_batches_are_compressed_in_a_thread(broker: Broker, gate: Gate, stamped: str) -> None:
    topic = f"compressed-{stamped}"
    broker.create_topic(topic, configs={"compression.type": "zstd", "message.timestamp.type": stamped})
    with Conversation(broker) as talk:
        talk.send(produce(topic, LARGE))
        assert gate.entered.acquire(timeout=60)
        gate.open.set()
        assert result(talk.receive()) == (ErrorCode.NONE, 0)
        stored = records_of(talk.ask(*fetch(topic, 0)))
        assert 61 < len(stored) < len(LARGE) // 10


def test_a_batch_that_unpacks_to_too_much_is_refused_and_forgotten(broker: Broker) -> None:
    configs = {**STRICT, "max.message.bytes": "10000000"}
    broker.create_topic("bomb", configs=configs)
    body = record(0, value=sized(bytes(200_000_000)))
    bomb = batch_around(body, 1, Compression.ZSTD)
    del body
    with Conversation(broker) as talk:
        answer = talk.ask(*produce("bomb", bomb))
        assert result(answer) == (ErrorCode.MESSAGE_TOO_LARGE, -1)
        assert "decompress to more than" in answer.responses[0].partition_responses[0].error_message
        assert result(talk.ask(*produce("bomb", SMALL))) == (ErrorCode.NONE, 0)


def test_the_setting_is_the_topics_or_the_brokers() -> None:
    odd = batch_around(good(300) + record(300, value=sized(b"\0" * 40)) + record(301, size_more=1), 302)
    inside = bytearray(good(300))
    inside[1000] ^= 0xFF
    hidden = batch_around(bytes(inside), 300)  # sound at both ends
    with Broker(overrides=STRICT) as broker, Conversation(broker) as talk:
        for level in ("none", "relaxed", "strict"):
            broker.create_topic(level, configs={"barnabas.produce.validation": level})
        broker.create_topic("inherited")
        found = {
            topic: [result(talk.ask(*produce(topic, each)))[0] for each in (hidden, odd)]
            for topic in ("none", "relaxed", "strict", "inherited")
        }
    refused = ErrorCode.INVALID_RECORD
    assert found == {
        "none": [ErrorCode.NONE, ErrorCode.NONE],
        "relaxed": [ErrorCode.NONE, refused],
        "strict": [refused, refused],
        "inherited": [refused, refused],
    }


def test_transactions_are_validated_in_threads_too(broker: Broker, gate: Gate) -> None:
    """Through a real client, whose batches are verified before."""
    confluent_kafka = pytest.importorskip("confluent_kafka")
    gate.open.set()
    broker.create_topic("transactions", configs=STRICT)
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "transactional.id": "large",
            "linger.ms": 200,
            "batch.num.messages": 5000,
        }
    )
    producer.init_transactions(60)
    for _ in range(2):
        producer.begin_transaction()
        for index in range(5000):
            producer.produce("transactions", b"value %d" % index)
        producer.commit_transaction(60)
    assert gate.entered.acquire(timeout=60)
    with Conversation(broker) as talk:
        assert end_offset(talk, "transactions") == 10_002
