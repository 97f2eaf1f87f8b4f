"""Templates of fetches and responses give the bytes that the codec writes."""

from __future__ import annotations

import pytest

from barnabas.broker.fetch.fetch_templates import EPOCH_MARK, FetchTemplate, ResponseTemplate
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse

Topic = FetchRequest.FetchTopic
Data = FetchResponse.FetchableTopicResponse.PartitionData
VERSIONS = range(13, 19)
HEAD = b"\0\x08follower\0"


def request(session_epoch: int = 7, fetch_offset: int = 1000, **changes: int) -> FetchRequest:
    asked = {
        "partition": 3,
        "current_leader_epoch": 5,
        "last_fetched_epoch": 5,
        "log_start_offset": 10,
        "partition_max_bytes": 1 << 20,
    }
    whole = {"max_wait_ms": 500, "min_bytes": 1, "max_bytes": 10 << 20, "session_id": 4711}
    asked |= {name: value for name, value in changes.items() if name in asked}
    whole |= {name: value for name, value in changes.items() if name in whole}
    partition = Topic.FetchPartition(fetch_offset=fetch_offset, **asked)
    return FetchRequest(
        session_epoch=session_epoch,
        topics=[Topic(topic_id=b"t" * 16, partitions=[partition])],
        **whole,
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_a_filled_request_is_what_the_codec_writes(version: int) -> None:
    template = FetchTemplate(request(), version)
    for epoch, offset in ((8, 1001), (1, 0), (2**31 - 1, 2**63 - 1)):
        assert template.fill(epoch, offset) == request(epoch, offset).encode(version)


@pytest.mark.parametrize("version", VERSIONS)
def test_requests_that_differ_in_nothing_else_are_recognized(version: int) -> None:
    template = FetchTemplate(request(), version, HEAD)
    frame = HEAD + request(90, 123_456).encode(version)
    assert template.match(memoryview(frame)) == (90, 123_456)


@pytest.mark.parametrize(
    "name",
    [
        "partition", "current_leader_epoch", "last_fetched_epoch", "log_start_offset", "partition_max_bytes",
        "max_wait_ms", "min_bytes", "max_bytes", "session_id",
    ],
)  # fmt: skip
def test_requests_that_differ_elsewhere_are_not_recognized(name: str) -> None:
    template = FetchTemplate(request(), 18, HEAD)
    assert template.match(memoryview(HEAD + request(8, 1001, **{name: 2}).encode(18))) is None


def test_a_request_with_another_head_or_more_partitions_is_not_recognized() -> None:
    template = FetchTemplate(request(), 18, HEAD)
    body = request(8, 1001).encode(18)
    assert template.match(memoryview(b"\0\x08followed\0" + body)) is None
    assert template.match(memoryview(HEAD + body + b"\0")) is None
    more = request(8, 1001)
    more.topics[0].partitions.append(Topic.FetchPartition(partition=4))
    assert template.match(memoryview(HEAD + more.encode(18))) is None


def test_a_session_id_with_the_bytes_of_the_epoch_mark_is_not_filled() -> None:
    template = FetchTemplate(request(session_id=EPOCH_MARK), 18)
    assert template.fill(8, 1001) == request(8, 1001, session_id=EPOCH_MARK).encode(18)


def test_the_request_that_a_template_is_made_of_is_left_as_it_was() -> None:
    made_of = request(7, 1000)
    FetchTemplate(made_of, 18)
    assert made_of == request(7, 1000)


def response(high_watermark: int, stable: int, log_start: int, records: bytes) -> FetchResponse:
    data = Data(
        partition_index=3,
        high_watermark=high_watermark,
        last_stable_offset=stable,
        log_start_offset=log_start,
        aborted_transactions=None,
        records=records,
    )
    topic = FetchResponse.FetchableTopicResponse(topic_id=b"t" * 16, partitions=[data])
    return FetchResponse(session_id=4711, responses=[topic])


@pytest.mark.parametrize("version", VERSIONS)
def test_a_filled_response_is_what_the_codec_writes(version: int) -> None:
    template = ResponseTemplate(response(0, 0, 0, b""), version)
    for size in (1, 126, 127, 128, 16_000):
        records = bytes(range(256)) * 63
        state = (2**40, 2**39, 7)
        assert template.fill(*state, records[:size]) == response(*state, records[:size]).encode(version)
