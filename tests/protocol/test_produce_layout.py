"""The layout of Produce and the codec: the same requests, the same responses, for every version."""

from __future__ import annotations

import random

import pytest

from barnabas.protocol import NULL_UUID, ProtocolError, apis
from barnabas.protocol.codec import codec
from barnabas.protocol.headers import RequestHeader
from barnabas.protocol.messages.produce import ProduceRequest, ProduceResponse
from barnabas.protocol.produce_layout import (
    BATCHES_MAX,
    FRONTS_MAX,
    VERSIONS,
    Batches,
    FoundBatch,
    ProduceLayout,
)

PRODUCE = 0
Given = tuple[int, bytes | None]
Data = ProduceRequest.TopicProduceData
Topic = ProduceResponse.TopicProduceResponse
Answer = Topic.PartitionProduceResponse


def frame_of(request: ProduceRequest, version: int, client_id: str | None = "client") -> memoryview:
    header = RequestHeader(
        request_api_key=PRODUCE, request_api_version=version, correlation_id=7, client_id=client_id
    )
    return memoryview(
        bytearray(header.encode(apis.request_header_version(PRODUCE, version)) + request.encode(version))
    )


def client_end(frame: memoryview) -> int:
    return 10 + max(int.from_bytes(frame[8:10], "big", signed=True), 0)


def request_of(version: int, *topics: tuple[str, list[Given]], **others: object) -> ProduceRequest:
    return ProduceRequest(
        **{"acks": 1, "timeout_ms": 30_000, **others},  # type: ignore[arg-type]
        topic_data=[
            Data(
                name=name if version < 13 else "",
                topic_id=id_of(name) if version >= 13 else NULL_UUID,
                partition_data=[
                    Data.PartitionProduceData(index=index, records=each) for index, each in batches
                ],
            )
            for name, batches in topics
        ],
    )


def id_of(name: str) -> bytes:
    return name.encode()[:16].ljust(16, b"\1")


def as_batches(request: ProduceRequest, version: int) -> Batches:
    """What a layout should find in it."""
    return (
        request.transactional_id,
        request.acks,
        request.timeout_ms,
        [
            (
                data.topic_id if version >= 13 else data.name,
                [(given.index, memoryview(given.records or b"")) for given in data.partition_data],
            )
            for data in request.topic_data
        ],
    )


def some_request(rng: random.Random, version: int) -> ProduceRequest:
    def batches() -> list[Given]:
        sizes = (61, 62, 126, 127, 128, 300, 16_382, 16_383, 16_384, 20_000)
        return [
            (rng.randrange(-1, 300), rng.randbytes(rng.choice(sizes)))
            for _ in range(rng.choice((1, 1, 2, 5)))
        ]

    names = ["t", "events", "x" * 100, "zwölf"]
    return request_of(
        version,
        *[(rng.choice(names), batches()) for _ in range(rng.choice((1, 1, 1, 2, 3)))],
        acks=rng.choice((-1, 0, 1, 2)),
        timeout_ms=rng.randrange(1 << 31),
        transactional_id=rng.choice((None, None, "", "tx", "t" * 100)),
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_a_layout_reads_the_same_as_the_codec(version: int) -> None:
    rng = random.Random(version)
    layout = ProduceLayout(version)
    for _ in range(300):
        request = some_request(rng, version)
        frame = frame_of(request, version, rng.choice(("client", "", None)))
        assert layout.read(frame, client_end(frame)) == as_batches(request, version)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_front_that_is_remembered_finds_the_batches(version: int) -> None:
    rng = random.Random(version)
    layout = ProduceLayout(version)
    found_often = several = 0
    for _ in range(500):
        request = some_request(rng, version)
        frame = frame_of(request, version)
        batches = layout.read(frame, client_end(frame))
        assert batches is not None
        transactional_id, acks, timeout_ms, topics = batches
        layout.remember(frame, batches)
        found = layout.find(frame, client_end(frame))
        assert (found is not None) is (len(topics) == 1 and acks in (-1, 0, 1))
        if found is None:
            continue
        assert behind_front(layout, frame, found) == batches
        front = found[0]
        if front.count == 1:
            found_often += 1
        else:
            several += 1
        assert (front.acks, front.timeout_ms, front.transactional_id) == (acks, timeout_ms, transactional_id)
        assert front.topic == topics[0][0]
    assert found_often > 60 and several > 60


def behind_front(layout: ProduceLayout, frame: memoryview, found: FoundBatch) -> Batches | None:
    """The whole request, as `read` gives it."""
    front, index, records = found
    if front.count > 1:
        assert records is frame
        return layout.read_behind(front, frame, index)
    return front.transactional_id, front.acks, front.timeout_ms, [(front.topic, [(index, records)])]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_layout_reads_damaged_requests_like_the_codec(version: int) -> None:
    """Both see the same in it, or the layout leaves it to the codec."""
    rng = random.Random(version)
    layout = ProduceLayout(version)
    decode = codec(ProduceRequest, version).decode
    read_header = codec(RequestHeader, apis.request_header_version(PRODUCE, version)).decode
    read = 0
    for _ in range(1500):
        original = frame_of(some_request(rng, version), version)
        if (known := layout.read(original, client_end(original))) is not None:
            layout.remember(original, known)
        frame = damaged(rng, original)
        position = client_end(frame)
        batches, found = layout.read(frame, position), layout.find(frame, position)
        if found is not None and behind_front(layout, frame, found) is None:
            found = None
        if batches is None and found is None:
            continue
        try:
            header, body_at = read_header(frame, 0)
        except ProtocolError:  # the channel has looked at the client id before `read`
            assert found is None
            continue
        read += 1
        request, end = decode(frame, body_at)
        assert end == len(frame) and not header.unknown_tagged_fields
        expected = as_batches(request, version)
        if batches is not None:
            assert batches == expected
        if found is not None:
            found_behind = behind_front(layout, frame, found)
            assert found_behind in (None, expected)
            assert found_behind == batches or batches is None
    assert read > 100


def damaged(rng: random.Random, frame: memoryview) -> memoryview:
    """Cut off, longer, or with other bytes; not in the batches alone, which are nobody's business here."""
    changed = bytearray(frame)
    for _ in range(rng.choice((1, 1, 2))):
        kind = rng.randrange(4)
        if kind == 0:
            changed[rng.randrange(8, min(len(changed), 70))] = rng.choice(
                (0, 1, 2, 127, 128, 255, rng.randrange(256))
            )
        elif kind == 1:
            changed[-rng.randrange(1, 5)] = rng.randrange(3)
        elif kind == 2:
            del changed[-rng.randrange(1, 50) :]
        else:
            changed += bytes(rng.randrange(1, 4))
    return memoryview(changed)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_response_has_the_bytes_of_the_codec(version: int) -> None:
    rng = random.Random(version)
    layout = ProduceLayout(version)
    for _ in range(200):
        frame = frame_of(some_request(rng, version), version)
        batches = layout.read(frame, client_end(frame))
        assert batches is not None
        topics = batches[3]
        placed = [
            (rng.randrange(1 << 62), rng.choice((-1, 1_700_000_000_000)), rng.randrange(1 << 40))
            for _, found in topics
            for _ in found
        ]
        expected = framed(response_of(topics, placed, version), version)
        assert layout.response(7, topics, placed) == expected
        if len(placed) == 1 and batches[1] in (-1, 0, 1):
            layout.remember(frame, batches)
            one = layout.find(frame, client_end(frame))
            assert one is not None
            front, index, _ = one
            assert front.pack(front.size, 7, front.start, index, *placed[0], front.end) == expected


def response_of(topics: list, placed: list, version: int) -> ProduceResponse:  # type: ignore[type-arg]
    where = iter(placed)
    return ProduceResponse(
        responses=[
            Topic(
                name="" if version >= 13 else topic,
                topic_id=topic if version >= 13 else NULL_UUID,
                partition_responses=[
                    Answer(index=index, base_offset=base, log_append_time_ms=time_ms, log_start_offset=start)
                    for (index, _), (base, time_ms, start) in ((each, next(where)) for each in batches)
                ],
            )
            for topic, batches in topics
        ]
    )


def framed(response: ProduceResponse, version: int) -> bytes:
    header = (7).to_bytes(4, "big") + (b"\0" if apis.response_header_version(PRODUCE, version) else b"")
    body = header + response.encode(version)
    return len(body).to_bytes(4, "big") + body


@pytest.mark.parametrize("version", VERSIONS)
def test_unusual_requests_are_left_to_the_codec(version: int) -> None:
    layout = ProduceLayout(version)
    batch = bytes(100)
    unusual = [
        request_of(version),
        request_of(version, ("t", [])),
        request_of(version, ("t", [(0, None)])),
        request_of(version, ("t", [(0, b"")])),
        request_of(version, ("t", [(0, batch), (1, bytes(60))])),
    ]
    unusual.append(request_of(version, ("t", [(index, batch) for index in range(BATCHES_MAX + 1)])))
    half = BATCHES_MAX // 2 + 1
    unusual.append(request_of(version, *[("t", [(index, batch) for index in range(half)])] * 2))
    if version < 13:
        unusual.append(request_of(version, ("n" * 200, [(0, batch)])))
    if version >= 9:
        tagged = request_of(version, ("t", [(0, batch)]))
        tagged.unknown_tagged_fields = [(99, b"x")]
        in_topic = request_of(version, ("t", [(0, batch)]))
        in_topic.topic_data[0].unknown_tagged_fields = [(99, b"x")]
        in_partition = request_of(version, ("t", [(0, batch)]))
        in_partition.topic_data[0].partition_data[0].unknown_tagged_fields = [(99, b"x")]
        unusual += [tagged, in_topic, in_partition, request_of(version, *[("t", [(0, batch)])] * 130)]
        unusual.append(request_of(version, ("t", [(0, batch)]), transactional_id="t" * 200))
    for request in unusual:
        frame = frame_of(request, version)
        assert layout.read(frame, client_end(frame)) is None


def test_the_number_of_fronts_has_a_bound() -> None:
    layout = ProduceLayout(7)
    request = request_of(7, ("t", [(0, bytes(100))]))
    frames = [frame_of(request, 7, f"client-{number}") for number in range(FRONTS_MAX + 10)]
    for frame in frames:
        batches = layout.read(frame, client_end(frame))
        assert batches is not None
        layout.remember(frame, batches)
    assert layout.find(frames[0], client_end(frames[0])) is None
    assert layout.find(frames[-1], client_end(frames[-1])) is not None
    assert len(layout._fronts) == FRONTS_MAX


def test_a_very_long_front_is_not_remembered() -> None:
    layout = ProduceLayout(7)
    frame = frame_of(request_of(7, ("t", [(0, bytes(100))])), 7, "c" * 30_000)
    batches = layout.read(frame, client_end(frame))
    assert batches is not None
    layout.remember(frame, batches)
    assert layout.find(frame, client_end(frame)) is None
