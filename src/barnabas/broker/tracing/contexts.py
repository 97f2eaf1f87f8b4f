"""Trace contexts in the bytes of produce requests: found by their shape, without decoding a record.

In: bytes of a request or of its batches. Out: contexts. A header `traceparent` has a name and a value of
fixed lengths, so its first bytes are always the same. Compressed batches are not looked into. A value that
happens to hold these bytes links a trace to a span that nobody knows; nothing else depends on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from barnabas.records.trace_context import TraceContext, parse_traceparent

COMPRESSION_AT, COMPRESSION_BITS = 22, 7  # in a batch: the lower byte of the attributes
# Lengths are zigzag varints: 11 for the name, 55 for the value.
HEADER = re.compile(rb"\x16traceparent\x6e(00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2})")
SAMPLED_HEADER = re.compile(rb"\x16traceparent\x6e00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f][13579bdf]")
FRAME_BYTES_LOOKED_AT = 2048  # of each produce request, if headers decide what is traced
BATCH_BYTES_LOOKED_AT = 64 * 1024  # of a traced one
CONTEXTS_MAX = 32


def has_sampled_context(frame: memoryview) -> bool:
    """Whether a record at the begin of a produce request belongs to a sampled trace."""
    return SAMPLED_HEADER.search(frame, 0, FRAME_BYTES_LOOKED_AT) is not None


def contexts_of(batches: Iterable[memoryview | None]) -> list[TraceContext]:
    """The different contexts of records in these batches, at most 32."""
    found: dict[TraceContext, None] = {}
    for batch in batches:
        if batch is None or len(batch) <= COMPRESSION_AT or batch[COMPRESSION_AT] & COMPRESSION_BITS:
            continue
        for match in HEADER.finditer(batch, 0, BATCH_BYTES_LOOKED_AT):
            context = parse_traceparent(match[1])
            if context is not None:
                found[context] = None
            if len(found) >= CONTEXTS_MAX:
                return list(found)
    return list(found)
