"""Reads the header of a request with the codec, for headers that the channel's fast path cannot read.

In: a frame. Out: the header and the position of the body. Does not know: bodies, connections.
"""

from __future__ import annotations

from barnabas.protocol.codec import codec
from barnabas.protocol.headers import RequestHeader

read_header = codec(RequestHeader, 1).decode, codec(RequestHeader, 2).decode  # by whether it is flexible


def skip_header(frame: memoryview) -> int:
    """Return the position of the body behind a header with tagged fields."""
    position: int = read_header[True](frame, 0)[1]
    return position
