"""The sink's producer on scripted brokers, without sockets: what happens to batches when brokers fail."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="needs the extra `spark`")

from barnabas.client.core.topology import TopicPartition
from barnabas.client.core.transaction import Fenced, Transaction
from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.messages.produce import ProduceRequest, ProduceResponse
from barnabas.spark.basics.cluster import WorkerCluster
from barnabas.spark.basics.settings import ClientSettings
from barnabas.spark.producer import BlockingProducer
from barnabas.spark.writing.rows import RowError
from client.scripted import HANGS_UP, SILENCE, ScriptedNetwork, metadata, run

PARTITIONS = 3
Trouble = Callable[[str], Any]  # given a batch's name: an error code, "lost", "unanswered", SILENCE or 0


@dataclass(eq=False)
class Batch:
    """In place of an encoded one: its bytes are its name, its sequence and its count."""

    name: str
    partition: int
    count: int = 1
    base_sequence: int | None = None

    @property
    def where(self) -> TopicPartition:
        return TopicPartition("t", self.partition)

    @property
    def buffer(self) -> bytes:
        return b"x" * 1_000_000

    @property
    def rows(self) -> Any:
        return self, [0]

    @property
    def keys(self) -> Any:
        return self

    def value(self, row: int) -> bytes:
        return self.name.encode()

    def sealed(self, producer_id: int, producer_epoch: int, is_transactional: bool) -> bytes:
        return f"{self.name} {self.base_sequence} {self.count}".encode()


class Encoder:
    """Cuts a batch in two."""

    def halves(self, batch: Batch) -> list[Batch]:
        half = batch.count // 2
        return [
            Batch(f"{batch.name}+", batch.partition, half),
            Batch(f"{batch.name}-", batch.partition, batch.count - half),
        ]


class Brokers:
    """Two brokers that share the logs of three partitions, and check sequences as Kafka does."""

    def __init__(self, trouble: Trouble = lambda name: 0) -> None:
        self.trouble = trouble
        self.leaders = [1, 2, 1]
        self.logs: list[list[str]] = [[] for _ in range(PARTITIONS)]
        self._next = [0] * PARTITIONS
        self._recent: list[deque[int]] = [deque(maxlen=5) for _ in range(PARTITIONS)]
        answers = {
            MetadataRequest: metadata(lambda: {"t": self.leaders}, (1, 2)),
            ProduceRequest: self._produce,
            InitProducerIdRequest: lambda request, version: InitProducerIdResponse(producer_id=5),
        }
        self.network = ScriptedNetwork({1: answers, 2: answers})

    def producer(self, timeout_ms: int = 60_000) -> BlockingProducer:
        cluster = WorkerCluster(ClientSettings("broker:1,broker:2"))
        cluster.network = self.network
        transaction = Transaction(cluster)
        run(transaction.init())
        encoder: Any = Encoder()
        return BlockingProducer(cluster, encoder, transaction, timeout_ms=timeout_ms)

    def _produce(self, request: ProduceRequest, version: int) -> Any:
        port = self.network.seen[-1][0]
        nested = ProduceResponse.TopicProduceResponse
        answers = []
        is_answered = True
        for each in request.topic_data[0].partition_data:
            name, sequence, count = bytes(each.records or b"").decode().split()
            code = self.trouble(name)
            if code == "lost":
                return None
            if code is SILENCE or code is HANGS_UP:
                return code
            if code == "unanswered":
                is_answered, code = False, 0
            if self.leaders[each.index] != port:
                code = ErrorCode.NOT_LEADER_OR_FOLLOWER
            code = code or self._append(each.index, name, int(sequence), int(count))
            answers.append(nested.PartitionProduceResponse(index=each.index, error_code=code))
        if not is_answered:
            return None
        return ProduceResponse(responses=[nested(name="t", partition_responses=answers)])

    def _append(self, index: int, name: str, sequence: int, count: int) -> ErrorCode:
        if sequence in self._recent[index]:
            return ErrorCode.DUPLICATE_SEQUENCE_NUMBER
        if sequence != self._next[index]:
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        self._recent[index].append(sequence)
        self._next[index] += count
        self.logs[index].append(name)
        return ErrorCode.NONE


def batches(count: int, records: int = 1) -> list[Any]:
    return [Batch(f"{number}", number % PARTITIONS, records) for number in range(count)]


def expected(count: int) -> list[list[str]]:
    return [[f"{number}" for number in range(index, count, PARTITIONS)] for index in range(PARTITIONS)]


def test_several_batches_of_a_partition_are_in_flight() -> None:
    brokers = Brokers()
    producer = brokers.producer()
    producer.write(batches(60))
    producer.flush()
    assert brokers.logs == expected(60)
    assert len(brokers.network.requests(ProduceRequest)) > 1


@pytest.mark.parametrize("seed", range(60))
def test_each_batch_is_written_once_and_in_order(seed: int) -> None:
    rng = random.Random(seed)
    brokers = Brokers()

    def trouble(name: str) -> Any:
        chance = rng.random()
        if chance < 0.03:
            brokers.leaders = [rng.choice([1, 2, -1]) for _ in range(PARTITIONS)]
        elif chance < 0.05:
            return rng.choice(["lost", "unanswered", HANGS_UP])
        elif chance < 0.08:
            return rng.choice([ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.REQUEST_TIMED_OUT])
        return 0

    brokers.trouble = trouble

    async def sleep(seconds: float) -> None:
        brokers.network.clock += seconds
        brokers.leaders = [max(each, 1) for each in brokers.leaders]

    brokers.network.sleep = sleep  # type: ignore[method-assign]
    producer = brokers.producer(timeout_ms=10_000_000)
    producer.write(batches(90))
    producer.flush()
    assert brokers.logs == expected(90)


def test_a_leader_that_moved_is_found_by_metadata() -> None:
    brokers = Brokers()
    producer = brokers.producer()
    producer.write(batches(3))
    producer.flush()
    brokers.leaders = [2, 1, 2]
    producer.write(batches(6)[3:])
    producer.flush()
    assert brokers.logs == expected(6)
    assert len(brokers.network.pauses) == 1


def test_a_batch_that_the_broker_finds_out_of_order_is_sent_again() -> None:
    codes = iter([ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER])
    brokers = Brokers(lambda name: next(codes, 0))
    producer = brokers.producer()
    producer.write(batches(6))
    producer.flush()
    assert brokers.logs == expected(6)


def test_a_batch_that_is_too_large_is_cut_and_those_behind_it_follow() -> None:
    brokers = Brokers(lambda name: ErrorCode.MESSAGE_TOO_LARGE if name == "0" else 0)
    producer = brokers.producer()
    producer.write(batches(9, records=4))
    producer.flush()
    assert brokers.logs[0] == ["0+", "0-", "3", "6"]


def test_a_row_that_cannot_be_written_is_named() -> None:
    producer = Brokers(lambda name: ErrorCode.INVALID_RECORD if name == "3" else 0).producer()
    with pytest.raises(RowError, match="the row with key b'3' cannot be written to t-0: INVALID_RECORD"):
        producer.write(batches(9))
        producer.flush()


def test_a_fenced_producer_stops() -> None:
    producer = Brokers(lambda name: ErrorCode.INVALID_PRODUCER_EPOCH if name == "3" else 0).producer()
    with pytest.raises(Fenced):
        producer.write(batches(9))
        producer.flush()


@pytest.mark.parametrize(
    "answer", ["lost", SILENCE, ErrorCode.NOT_ENOUGH_REPLICAS], ids=["lost", "silent", "few"]
)
def test_the_time_for_delivery_ends(answer: Any) -> None:
    brokers = Brokers(lambda name: answer)
    producer = brokers.producer(timeout_ms=5_000)
    with pytest.raises(RowError, match=r"cannot be written to t-0: (NETWORK_EXCEPTION|NOT_ENOUGH_REPLICAS)"):
        producer.write(batches(3))
        producer.flush()
