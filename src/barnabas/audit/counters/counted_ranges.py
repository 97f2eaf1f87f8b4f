"""How far each partition was counted, as the audit topic tells.

In: count messages with ranges of offsets, in the order of the topic. Out: for each stream the offset behind
its last message, the leader epoch of the last batch that was counted, and the offsets where messages began
and ended. A log that lost its end in an unclean election is counted again from such an offset on.
Does not know: logs, clients.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from barnabas.audit.core.messages import NO_EPOCH, CountMessage, StreamKind
from barnabas.audit.core.streams import CUTS_REMEMBERED

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
        self.streams: dict[str, Progress] = {}

    def note(self, message: CountMessage, arrived_ms: int = 0) -> None:
        if message.tier != self._tier or message.kind is not StreamKind.OFFSETS:
            return
        found = self.streams.setdefault(message.stream, Progress())
        if message.is_correction:
            found.cuts = deque((cut for cut in found.cuts if cut <= message.start), maxlen=CUTS_MAX)
            found.end, found.epoch = message.end, NO_EPOCH
            return
        if message.end < found.end:
            return
        found.end = message.end
        found.epoch = message.epoch
        for cut in (message.start, message.end):
            if not found.cuts or cut > found.cuts[-1]:
                found.cuts.append(cut)
