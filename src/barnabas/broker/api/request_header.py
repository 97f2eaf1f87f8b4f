"""The header of a request, read by the codec: for what a channel cannot read at a glance.

In: a frame. Out: the header and where the body starts. Does not know: bodies, connections.
"""

from __future__ import annotations

from barnabas.protocol.codec import codec
from barnabas.protocol.headers import RequestHeader

read_header = codec(RequestHeader, 1).decode, codec(RequestHeader, 2).decode  # by whether it is flexible


def skip_header(frame: memoryview) -> int:
    """Where the body starts when the header carries tagged fields."""
    position: int = read_header[True](frame, 0)[1]
    return position
