"""A tiny round of the rows about transactions on our broker alone; the codecs read their frames back."""

from __future__ import annotations

import pytest
from bench.rounds import Comparison

from barnabas.protocol.headers import RequestHeader
from barnabas.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from barnabas.protocol.messages.fetch import FetchResponse
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.protocol.messages.produce import ProduceRequest, ProduceResponse
from barnabas.records import batch
from bench import frames, loads
from bench import transaction_frames as wire

NAMES = ["transaction-latency", "transaction-commit", "transactions-1", "transactions-50"]
NAMES += ["transaction-loop", "transaction-fetch"]


def body(frame: bytes, header_version: int = 1) -> bytes:
    """The body of a frame after size and header."""
    return frame[4 + len(RequestHeader(client_id="bench").encode(header_version)) :]


@pytest.mark.long
def test_every_row_has_a_value() -> None:
    found = Comparison(loads.TINY, 1, lambda _: None, alone="barnabas").run(NAMES)

    assert sorted(result.row.name for result in found) == sorted(NAMES)
    assert all(len(result.ours) == 1 and result.ours[0] > 0 for result in found)


def test_requests_are_those_of_the_protocol() -> None:
    producer = wire.Producer("tx", 7, 3)
    find = FindCoordinatorRequest.decode(body(wire.find_coordinator("tx")), 2)
    assert (find.key, find.key_type) == ("tx", 1)
    init = InitProducerIdRequest.decode(body(wire.init_producer_id("tx")), 1)
    assert (init.transactional_id, init.transaction_timeout_ms) == ("tx", 60_000)
    end = EndTxnRequest.decode(body(wire.end(producer, commit=False), 2), 5)
    assert (end.transactional_id, end.producer_id, end.producer_epoch, end.committed) == ("tx", 7, 3, False)
    given = wire.produce(producer, "topic", 2, frames.batch_of(3), sequence=9)
    produce = ProduceRequest.decode(body(given, 2), 12)
    [data] = produce.topic_data
    assert (produce.transactional_id, produce.acks, data.name) == ("tx", -1, "topic")
    assert data.partition_data[0].index == 2
    header = batch.validate(data.partition_data[0].records)
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 3, 9)


def test_responses_are_read() -> None:
    init = InitProducerIdResponse(error_code=51, producer_id=7, producer_epoch=3)
    assert wire.initialized(bytes(4) + init.encode(1)) == (51, 7, 3)
    end = EndTxnResponse(error_code=51, producer_id=7, producer_epoch=4)
    assert wire.ended(bytes(5) + end.encode(5)) == (51, 7, 4)
    topic = ProduceResponse.TopicProduceResponse(name="topic")
    topic.partition_responses = [topic.PartitionProduceResponse(error_code=51)]
    assert wire.produce_error(bytes(5) + ProduceResponse(responses=[topic]).encode(12), "topic") == 51


def test_records_of_a_fetch_are_found_after_the_aborted_transactions() -> None:
    records = bytearray(frames.batch_of(3).content + frames.batch_of(2).content)
    batch.assign(records, len(frames.batch_of(3).content), 3, 0)
    topic = FetchResponse.FetchableTopicResponse(topic="topic")
    data = topic.PartitionData(records=bytes(records) + b"cut off")
    data.aborted_transactions = [data.AbortedTransaction(producer_id=1, first_offset=0)] * 2
    topic.partitions = [data]
    answer = memoryview(bytes(4) + FetchResponse(responses=[topic]).encode(11))
    found = wire.fetched(answer, "topic")
    assert (found.error, found.aborted, found.records_bytes) == (0, 2, len(records) + 7)
    assert wire.next_offset(answer[found.records_at :]) == (5, len(records))
