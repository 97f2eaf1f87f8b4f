"""The messages of one tail, in order: records, notices, signs of life.

In: a reader, options. Out: `Message` values that each transport writes in its own form. Records are rendered
a few at a time, so that the loop serves others in between. Does not know: SSE, WebSocket.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import Enum

from barnabas.client.core.errors import ClientError
from barnabas.client.core.fetching import ConsumerRecord
from barnabas.protocol import KafkaError
from barnabas.rest.kafka_errors import api_error
from barnabas.rest.proxy import Proxy
from barnabas.rest.tail.options import TailOptions, position_text
from barnabas.rest.tail.reader import Skipped, TailReader
from barnabas.rest.tail.rendering import Rendering
from barnabas.rest.v3.lists import encoded

RENDERED_AT_ONCE = 50
POSITIONS_IN_EACH = 32  # partitions of a tail whose every record has the position behind it
POLL_MS = 1_000


class Kind(Enum):
    RECORD = "record"
    NOTICE = "notice"
    ERROR = "error"  # the last one
    ALIVE = "alive"


@dataclass(frozen=True, slots=True)
class Message:
    """`fields` is JSON without its braces. `position` resumes behind this message; empty: not known here."""

    kind: Kind
    fields: str = ""
    position: str = ""


async def messages(proxy: Proxy, reader: TailReader, options: TailOptions) -> AsyncIterator[Message]:
    """All messages, from an open reader, until the limit, an error, or the proxy stops."""
    rendering = Rendering(proxy.formats, options)
    positions = reader.positions
    left = options.limit
    loop = asyncio.get_running_loop()
    last_sign = loop.time()
    idle_s = proxy.settings.tail_idle_ms / 1000
    yield Message(Kind.ALIVE, position=position_text(positions))
    try:
        while not proxy.stopping.is_set() and left != 0:
            records, skipped = await reader.read(min(POLL_MS, proxy.settings.tail_idle_ms))
            for each in skipped:
                positions[each.partition] = each.to
                yield Message(Kind.NOTICE, notice_of(each), position_text(positions))
            wanted = [record for record in records if rendering.wants(record)][:left]
            async for message in rendered(rendering, wanted, positions):
                yield message
            left = None if left is None else left - len(wanted)
            if left != 0:
                positions.update(reader.positions)
            if wanted and len(positions) <= POSITIONS_IN_EACH:
                last_sign = loop.time()
            elif records or loop.time() >= last_sign + idle_s:
                if not records:
                    await reader.check()
                    positions.update(reader.positions)
                last_sign = loop.time()
                yield Message(Kind.ALIVE, position=position_text(positions))
    except (KafkaError, ClientError) as error:
        found = api_error(error)
        yield Message(Kind.ERROR, encoded({"error_code": found.code, "message": found.message})[1:-1])


async def rendered(
    rendering: Rendering, records: list[ConsumerRecord], positions: dict[int, int]
) -> AsyncIterator[Message]:
    for start in range(0, len(records), RENDERED_AT_ONCE):
        some = records[start : start + RENDERED_AT_ONCE]
        known = await rendering.prepare(some)
        for record in some:
            positions[record.partition] = record.offset + 1
            position = position_text(positions) if len(positions) <= POSITIONS_IN_EACH else ""
            yield Message(Kind.RECORD, rendering.text(record, known), position)
        await asyncio.sleep(0)


def notice_of(skipped: Skipped) -> str:
    fields = {
        "partition_id": skipped.partition,
        "skipped_from": skipped.first,
        "skipped_to": skipped.to,
        "reason": skipped.reason,
    }
    return encoded(fields)[1:-1]
