"""The prepared requests follow the protocol: the package's own codecs read them back."""

import struct

import pytest
from bench.generator import LoadError, Plan

from barnabas.protocol.headers import RequestHeader
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.protocol.messages.list_offsets import ListOffsetsRequest
from barnabas.protocol.messages.produce import ProduceRequest, ProduceResponse
from barnabas.records import batch as batches
from bench import frames, generator


def body(frame: bytes) -> bytes:
    assert struct.unpack_from(">i", frame)[0] == len(frame) - 4
    flexible = struct.unpack_from(">h", frame, 4)[0] == 0
    header = RequestHeader.decode(frame[4:], 2 if flexible else 1)
    assert header.client_id == frames.CLIENT_ID.decode()
    return frame[4 + 8 + 2 + len(frames.CLIENT_ID) + flexible :]


@pytest.mark.parametrize(("records", "value_bytes"), [(1, 100), (139, 100), (880, 1000)])
def test_a_batch_is_valid_and_counts_its_records(records: int, value_bytes: int) -> None:
    batch = frames.batch_of(records, value_bytes)
    header = batches.peek(batch.content)
    assert (header.size, header.record_count, header.last_offset_delta) == (batch.size, records, records - 1)
    assert header.crc == batches.compute_crc(batch.content, 0, batch.size)


def test_a_produce_frame_holds_the_batch() -> None:
    batch = frames.batch_of(3)
    load = frames.produce("a-topic", batch, 2)
    half = len(load.frames) // 2
    assert load.frames[:half] == load.frames[half:]
    request = ProduceRequest.decode(body(load.frames[:half]), frames.PRODUCE_VERSION)
    assert (request.acks, request.topic_data[0].name) == (1, "a-topic")
    assert bytes(request.topic_data[0].partition_data[0].records) == batch.content


@pytest.mark.parametrize("version", [3, 7, 9, 12])
def test_a_produce_frame_holds_a_batch_for_each_partition(version: int) -> None:
    frame = frames.produce_frame("a-topic", [(3, b"three"), (0, b"x" * 500)], -1, version)
    header = RequestHeader.decode(frame[4:], 2 if version >= 9 else 1)
    assert (header.request_api_version, header.client_id) == (version, frames.CLIENT_ID.decode())
    body_at = 4 + 8 + 2 + len(frames.CLIENT_ID) + (version >= 9)
    request = ProduceRequest.decode(frame[body_at:], version)
    found = [(each.index, bytes(each.records or b"")) for each in request.topic_data[0].partition_data]
    assert (request.acks, found) == (-1, [(3, b"three"), (0, b"x" * 500)])
    topic = ProduceResponse.TopicProduceResponse
    answer = topic(name="a-topic", partition_responses=[topic.PartitionProduceResponse(error_code=0x1234)])
    response = ProduceResponse(responses=[answer]).encode(version)
    head = bytes(8 + (version >= 9))
    at = frames.error_at("a-topic", version)
    assert (head + response)[at : at + 2] == b"\x12\x34"


def test_batches_of_an_idempotent_producer_count_up_and_are_valid() -> None:
    for sequence, content in enumerate(frames.numbered(frames.batch_of(1), 3)):
        header = batches.validate(content)
        assert (header.producer_epoch, header.base_sequence) == (0, sequence)
        assert header.producer_id > 0


def test_the_offset_of_a_fetch_is_patched_in_place() -> None:
    frame = bytearray(frames.fetch("a-topic", 0, 1 << 20))
    struct.pack_into(">q", frame, frames.fetch_offset_at("a-topic"), 12345)
    request = FetchRequest.decode(body(bytes(frame)), frames.FETCH_VERSION)
    partition = request.topics[0].partitions[0]
    assert (request.topics[0].topic, partition.fetch_offset, partition.partition_max_bytes) == (
        "a-topic",
        12345,
        1 << 20,
    )


def test_list_offsets_requests_the_end_of_every_partition() -> None:
    request = ListOffsetsRequest.decode(
        body(frames.list_offsets({"a": 2, "b": 1})), frames.LIST_OFFSETS_VERSION
    )
    asked = [(topic.name, [each.timestamp for each in topic.partitions]) for topic in request.topics]
    assert asked == [("a", [-1, -1]), ("b", [-1])]


def test_a_response_with_an_error_fails_the_load() -> None:
    if generator.compiled() is None:
        pytest.skip("no C compiler: there is no bare server")
    frame = frames.request(0, 12, b"", flexible=True)
    with generator.bare_server(64) as port:
        assert port is not None
        assert generator.run(port, frame, Plan(requests=10, error_at=4)).requests == 10
        with pytest.raises(LoadError, match="10 of 10 responses have an error"):
            generator.run(port, frame, Plan(requests=10, error_at=2))  # the last bytes of the length: 60
