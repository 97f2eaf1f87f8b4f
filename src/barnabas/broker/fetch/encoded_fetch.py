"""Fetch responses of many partitions, encoded in steps.

In: a response, or one that was encoded in steps. Out: `encode_in_steps` puts the encoded bytes behind the
topics of the response; `encoder` writes them instead of encoding again. So code that changes the throttle
time, counts errors or logs the response sees a message like any other. Short records are read meanwhile, as
far as `READ_BYTES_MAX` allows; longer ones remain slices of log files.
Does not know: fetches, connections.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from barnabas.protocol import KafkaError
from barnabas.protocol.codec import codec
from barnabas.protocol.messages.fetch import FetchResponse
from barnabas.storage.segments.log_slice import LogSlice

if TYPE_CHECKING:
    from barnabas.metadata.steps import Steps

Topic = FetchResponse.FetchableTopicResponse
Write = Callable[[Any], object]
RECORDS_BYTES_MAX = 4 * 1024  # of a partition, that are read and copied
READ_BYTES_MAX = 1024 * 1024  # of a response
CHUNK_BYTES = 64 * 1024
_throttle_time = struct.Struct(">i")  # a response begins with it, in all versions


class EncodedTopics(list[Topic]):
    """The topics of a response, and the encoded response that has them."""

    __slots__ = ("encoded",)

    def __init__(self, topics: list[Topic], encoded: list[bytes | LogSlice]) -> None:
        super().__init__(topics)
        self.encoded = encoded


def encode_in_steps(response: FetchResponse, version: int) -> Steps[FetchResponse]:
    """Encode a response. Of the result, only the throttle time may be changed."""
    encoded: list[bytes | LogSlice] = []
    chunk = bytearray()
    fresh: list[Any] = []
    room = READ_BYTES_MAX
    for _ in codec(FetchResponse, version).encode_in_steps(response, fresh.append):
        for part in fresh:
            if not isinstance(part, LogSlice):
                chunk += part
                continue
            records = read_if_short(part, room)
            if records is not None:
                room -= len(records)
                chunk += records
            else:
                encoded.append(bytes(chunk))
                encoded.append(part)
                chunk.clear()
        fresh.clear()
        if len(chunk) >= CHUNK_BYTES:
            encoded.append(bytes(chunk))
            chunk.clear()
        yield
    encoded.append(bytes(chunk))
    response.responses = EncodedTopics(response.responses, encoded)
    return response


def read_if_short(records: LogSlice, room: int) -> bytes | None:
    size = len(records)
    if size > min(RECORDS_BYTES_MAX, room) or not records.can_read_without_disk(0, size):
        return None
    try:
        return records.read()
    except KafkaError:
        return None  # it is sent as far as it can be read


def encoder(version: int) -> Callable[[FetchResponse, Write], None]:
    """Make an encoder like the codec's, for responses that may have been encoded in steps."""
    encode = codec(FetchResponse, version).encode

    def write(response: FetchResponse, append: Write) -> None:
        topics = response.responses
        if type(topics) is not EncodedTopics:
            encode(response, append)
            return
        first, *others = topics.encoded
        assert isinstance(first, bytes)  # the head of the response
        append(_throttle_time.pack(response.throttle_time_ms))
        append(first[_throttle_time.size :])
        for part in others:
            append(part)

    return write
