"""The light producer when brokers are in the way: it repeats what may be repeated, and gives up in time."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from barnabas.client.accumulator import SentRecord
from barnabas.client.cluster import Cluster
from barnabas.client.core.errors import ClientError
from barnabas.client.producer import NewRecord, Producer, ProducerSettings
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.protocol.messages.produce import ProduceRequest, ProduceResponse
from barnabas.records.batch import BatchHeader
from barnabas.records.record import read_records

from .fake_broker import SILENCE, FakeBroker

TOPIC_ID = bytes(range(16))


class OneTopic:
    """A broker with the topic `t`; `codes` are its answers to produce, then it succeeds."""

    def __init__(self, codes: Iterator[Any], partitions: int = 1) -> None:
        self._codes = codes
        self._partitions = partitions
        self.batches: list[tuple[int, bytes]] = []
        self.broker = FakeBroker(
            {
                MetadataRequest: self.metadata,
                ProduceRequest: self.produce,
                InitProducerIdRequest: self.producer_id,
            }
        )

    def metadata(self, request: MetadataRequest, version: int) -> MetadataResponse:
        host, port = self.broker.address
        nested = MetadataResponse.MetadataResponseTopic
        partitions = [
            nested.MetadataResponsePartition(
                partition_index=index, leader_id=1, replica_nodes=[1], isr_nodes=[1]
            )
            for index in range(self._partitions)
        ]
        return MetadataResponse(
            brokers=[MetadataResponse.MetadataResponseBroker(node_id=1, host=host, port=port)],
            topics=[nested(name="t", topic_id=TOPIC_ID, partitions=partitions)],
        )

    def producer_id(self, request: InitProducerIdRequest, version: int) -> InitProducerIdResponse:
        return InitProducerIdResponse(producer_id=77, producer_epoch=0)

    def produce(self, request: ProduceRequest, version: int) -> Any:
        code = next(self._codes, 0)
        if code is None or code is SILENCE:
            return code
        nested = ProduceResponse.TopicProduceResponse
        answers = []
        for topic in request.topic_data:
            for each in topic.partition_data:
                self.batches.append((each.index, bytes(each.records)))
                answers.append(
                    nested.PartitionProduceResponse(
                        index=each.index, error_code=code, base_offset=0 if code else 40
                    )
                )
        return ProduceResponse(responses=[nested(topic_id=TOPIC_ID, partition_responses=answers)])


def with_producer(
    topic: OneTopic, settings: ProducerSettings, use: Callable[[Producer], Any], **arguments: Any
) -> Any:
    async def main() -> Any:
        async with topic.broker, Cluster([topic.broker.address], api_timeout_ms=2_000) as cluster:
            producer = Producer(cluster, settings, **arguments)
            try:
                return await use(producer)
            finally:
                await producer.close()

    return asyncio.run(main())


QUICK = ProducerSettings(retry_backoff_ms=1)


def test_a_record_knows_its_offset_when_it_is_written() -> None:
    async def use(producer: Producer) -> Any:
        one, two = await producer.send("t", b"one"), await producer.send("t", b"two")
        return await one, await two

    one, two = with_producer(OneTopic(iter(())), QUICK, use)
    assert (one.topic, one.partition, one.offset) == ("t", 0, 40)
    assert two.offset in (40, 41)


@pytest.mark.parametrize(
    "trouble", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS, None], ids=str
)
def test_a_passing_trouble_is_repeated(trouble: ErrorCode | None) -> None:
    async def use(producer: Producer) -> Any:
        return await (await producer.send("t", b"one"))

    topic = OneTopic(iter([trouble]))
    assert with_producer(topic, QUICK, use).offset == 40
    assert topic.broker.count(ProduceRequest) == 2


def test_metadata_is_asked_again_when_the_leader_moved() -> None:
    async def use(producer: Producer) -> Any:
        return await (await producer.send("t", b"one"))

    topic = OneTopic(iter([ErrorCode.NOT_LEADER_OR_FOLLOWER]))
    with_producer(topic, QUICK, use)
    assert topic.broker.count(MetadataRequest) == 2


def test_an_error_that_will_not_pass_ends_the_record_at_once() -> None:
    failures = []

    async def use(producer: Producer) -> Any:
        sent = await producer.send("t", b"one")
        await producer.flush()
        return await sent

    topic = OneTopic(iter([ErrorCode.MESSAGE_TOO_LARGE]))
    with pytest.raises(KafkaError) as caught:
        with_producer(
            topic, QUICK, use, on_failure=lambda batch, error: failures.append((len(batch.records), error))
        )
    assert caught.value.code == ErrorCode.MESSAGE_TOO_LARGE
    assert topic.broker.count(ProduceRequest) == 1
    assert failures == [(1, caught.value)]


def test_retries_are_bounded() -> None:
    async def use(producer: Producer) -> Any:
        return await (await producer.send("t", b"one"))

    settings = ProducerSettings(retry_backoff_ms=1, retries_max=2)
    topic = OneTopic(iter([ErrorCode.NOT_ENOUGH_REPLICAS] * 9))
    with pytest.raises(KafkaError):
        with_producer(topic, settings, use)
    assert topic.broker.count(ProduceRequest) == 3


def test_the_delivery_timeout_ends_what_is_never_answered() -> None:
    async def use(producer: Producer) -> Any:
        return await (await producer.send("t", b"one"))

    settings = ProducerSettings(request_timeout_ms=20, delivery_timeout_ms=50, retry_backoff_ms=1)
    with pytest.raises(ClientError, match="did not answer ProduceRequest within 20 ms"):
        with_producer(OneTopic(iter([SILENCE] * 100)), settings, use)


def test_order_survives_a_retry() -> None:
    async def use(producer: Producer) -> None:
        for number in range(10):
            await producer.send("t", str(number).encode())
            await asyncio.sleep(0)
        await producer.flush()

    topic = OneTopic(iter([0, ErrorCode.NOT_ENOUGH_REPLICAS, 0, ErrorCode.NOT_ENOUGH_REPLICAS]))
    with_producer(topic, ProducerSettings(retry_backoff_ms=1, batch_size_bytes=100), use)
    seen = [record.value for _, batch in topic.batches for record in read_records(batch)]
    first_seen = list(dict.fromkeys(seen))
    assert first_seen == [str(number).encode() for number in range(10)]


def test_a_retried_batch_keeps_its_sequence_number() -> None:
    async def use(producer: Producer) -> None:
        await (await producer.send("t", b"one"))
        await (await producer.send("t", b"two"))

    topic = OneTopic(iter([ErrorCode.NOT_ENOUGH_REPLICAS]))
    with_producer(topic, ProducerSettings(retry_backoff_ms=1, idempotence=True), use)
    headers = [BatchHeader(batch) for _, batch in topic.batches]
    assert [(header.producer_id, header.base_sequence) for header in headers] == [(77, 0), (77, 0), (77, 1)]


def test_a_duplicate_counts_as_written() -> None:
    async def use(producer: Producer) -> Any:
        return await (await producer.send("t", b"one"))

    topic = OneTopic(iter([ErrorCode.DUPLICATE_SEQUENCE_NUMBER]))
    assert with_producer(topic, ProducerSettings(idempotence=True), use).topic == "t"


def test_a_record_larger_than_a_request_is_refused_here() -> None:
    async def use(producer: Producer) -> Any:
        return await producer.send("t", bytes(2000))

    with pytest.raises(KafkaError, match=r"max\.request\.size"):
        with_producer(OneTopic(iter(())), ProducerSettings(request_size_bytes_max=1000), use)


def test_a_full_buffer_holds_the_sender_until_there_is_room() -> None:
    settings = ProducerSettings(
        buffer_bytes_max=400, batch_size_bytes=200, request_timeout_ms=100, retry_backoff_ms=1
    )

    async def use(producer: Producer) -> int:
        for _ in range(20):
            await producer.send("t", bytes(100))
        await producer.flush()
        return producer._waiting.bytes_buffered

    assert with_producer(OneTopic(iter(())), settings, use) == 0


def test_a_buffer_that_stays_full_is_told() -> None:
    settings = ProducerSettings(
        buffer_bytes_max=300, batch_size_bytes=200, block_ms_max=50, request_timeout_ms=10_000
    )

    async def use(producer: Producer) -> None:
        for _ in range(20):
            await producer.send("t", bytes(100))

    with pytest.raises(ClientError, match="the buffer of 300 bytes stayed full for 50 ms"):
        with_producer(OneTopic(iter([SILENCE] * 100)), settings, use)


def test_lingering_records_share_a_batch() -> None:
    async def use(producer: Producer) -> None:
        for number in range(5):
            await producer.send("t", str(number).encode())
        await producer.flush()

    topic = OneTopic(iter(()))
    with_producer(topic, ProducerSettings(linger_ms=10_000), use)
    assert [len(read_records(batch)) for _, batch in topic.batches] == [5]


def test_records_handed_over_together_share_a_batch_of_their_partition_and_keep_their_order() -> None:
    async def use(producer: Producer) -> list[tuple[int, int]]:
        records = [NewRecord(index % 2, None, str(index).encode()) for index in range(6)]
        sent = await producer.send_all("t", records)
        assert all(isinstance(each, SentRecord) and each.is_done for each in sent)
        return [(each.result().partition, each.result().offset) for each in sent]  # type: ignore[union-attr]

    topic = OneTopic(iter(()), partitions=2)
    assert with_producer(topic, ProducerSettings(), use) == [
        (index % 2, 40 + index // 2) for index in range(6)
    ]
    values = [[record.value for record in read_records(batch)] for _, batch in sorted(topic.batches)]
    assert values == [[b"0", b"2", b"4"], [b"1", b"3", b"5"]]


def test_records_without_key_and_partition_go_to_one_partition_together() -> None:
    async def use(producer: Producer) -> int:
        sent = await producer.send_all("t", [NewRecord(None, None, bytes(100)) for _ in range(500)])
        return len({each.result().partition for each in sent})  # type: ignore[union-attr]

    assert with_producer(OneTopic(iter(()), partitions=9), ProducerSettings(), use) == 1


def test_a_record_that_is_too_large_fails_alone() -> None:
    async def use(producer: Producer) -> list[Any]:
        records = [NewRecord(0, None, value) for value in (b"a", bytes(2000), b"b")]
        return await producer.send_all("t", records)

    sent = with_producer(OneTopic(iter(())), ProducerSettings(request_size_bytes_max=1000), use)
    assert [getattr(each, "code", None) for each in sent] == [None, ErrorCode.MESSAGE_TOO_LARGE, None]


def test_a_batch_that_the_broker_finds_too_large_is_sent_in_halves() -> None:
    async def use(producer: Producer) -> list[Any]:
        sent = await producer.send_all("t", [NewRecord(0, None, str(index).encode()) for index in range(4)])
        assert producer._waiting.bytes_buffered == 0
        return sent

    too_large = ErrorCode.MESSAGE_TOO_LARGE
    topic = OneTopic(iter([too_large, too_large, 0, too_large]))  # 4, 2, 1, 1, 2 records
    sent = with_producer(topic, ProducerSettings(idempotence=True), use)
    assert [getattr(each, "code", None) for each in [outcome(each) for each in sent]] == [
        None,
        too_large,
        None,
        None,
    ]
    tried = [[record.value for record in read_records(batch)] for _, batch in topic.batches]
    assert tried == [[b"0", b"1", b"2", b"3"], [b"0", b"1"], [b"0"], [b"1"], [b"2", b"3"]]
    sequences = [BatchHeader(batch).base_sequence for _, batch in topic.batches]
    assert sequences == [0, 0, 0, 1, 1]


def outcome(sent: Any) -> Any:
    try:
        return sent.result()
    except KafkaError as error:
        return error
