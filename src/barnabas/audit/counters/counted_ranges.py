"""How far each partition was counted, as the audit topic tells.

In: count messages with ranges of offsets, in the order of the topic. Out: for each stream the offset behind
its last message, the leader epoch of the last batch that was counted, and the offsets where messages began
and ended. A log that lost its end in an unclean election is counted again from such an offset on.
Does not know: logs, clients.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field

from barnabas.audit.core.messages import NO_EPOCH, CountMessage, StreamKind, decode
from barnabas.audit.core.streams import CUTS_REMEMBERED

# As `encode` writes them, where no name needs escapes.
HEAD = re.compile(
    rb'\{"version":1,"tier":"([^"\\]*)","topic":"[^"\\]*","host":"[^"\\]*","stream":"([^"\\]*)",'
    rb'"kind":"([a-z]+)","start":(\d+),"end":(\d+),"time":'
)
EPOCH = re.compile(rb'"epoch":(\d+)[,}]')
OFFSETS, CORRECTION = StreamKind.OFFSETS.value.encode(), b'"correction":'
CUTS_MAX = CUTS_REMEMBERED // 2  # readers must know these sums too


@dataclass(slots=True)
class Progress:
    """Of one stream."""

    end: int = 0
    epoch: int = NO_EPOCH
    cuts: deque[int] = field(default_factory=lambda: deque(maxlen=CUTS_MAX))

    def cut_before(self, offset: int) -> int | None:
        """The last offset up to this one where a message began or ended."""
        return max((cut for cut in self.cuts if cut <= offset), default=None)


class CountedRanges:
    def __init__(self, tier: str) -> None:
        self._tier = tier
        self._tier_bytes = tier.encode()
        self.streams: dict[str, Progress] = {}

    def see(self, value: bytes | None, arrived_ms: int = 0) -> None:
        """Note a message as it stands in the topic. MessageError if it is none.

        A broker that starts reads the messages of a week: most are told by their first fields, at a tenth of
        the cost of decoding them. Any other form is decoded."""
        head = HEAD.match(value or b"")
        if head is None or value is None or CORRECTION in value:
            self.note(decode(value))
            return
        tier, stream, kind, start, end = head.groups()
        if tier == self._tier_bytes and kind == OFFSETS:
            epoch = EPOCH.search(value, head.end())
            self._add(stream.decode(), int(start), int(end), int(epoch[1]) if epoch else NO_EPOCH)

    def note(self, message: CountMessage, arrived_ms: int = 0) -> None:
        if message.tier != self._tier or message.kind is not StreamKind.OFFSETS:
            return
        if message.is_correction:
            found = self.streams.setdefault(message.stream, Progress())
            found.cuts = deque((cut for cut in found.cuts if cut <= message.start), maxlen=CUTS_MAX)
            found.end, found.epoch = message.end, NO_EPOCH
            return
        self._add(message.stream, message.start, message.end, message.epoch)

    def _add(self, stream: str, start: int, end: int, epoch: int) -> None:
        found = self.streams.setdefault(stream, Progress())
        if end < found.end:
            return
        found.end = end
        found.epoch = epoch
        for cut in (start, end):
            if not found.cuts or cut > found.cuts[-1]:
                found.cuts.append(cut)
