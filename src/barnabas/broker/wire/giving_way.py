"""The choice of a connection to close when no descriptor is left for a new one.

In: the channels of a listener, the time. Out: the least active channel that has sent no request within
`SILENT_S` of connecting, or has been idle for `IDLE_S`. Clients connect again when they need to. The channels
are searched at most once in `LOOK_EVERY_S`, so that a flood of connections costs little.
Does not know: descriptors, listeners.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.broker.wire.channel import Channel

SILENT_S = 5.0
IDLE_S = 60.0
LOOK_EVERY_S = 1.0


class GivingWay:
    def __init__(self, channels: Mapping[Channel, None]) -> None:
        self._channels = channels
        self._found: deque[Channel] = deque()
        self._looked_at: float | None = None

    def next(self, now: float) -> Channel | None:
        while True:
            while self._found:
                channel = self._found.popleft()
                if channel in self._channels and can_be_spared(channel, now):
                    return channel
            if self._looked_at is not None and now - self._looked_at < LOOK_EVERY_S:
                return None
            self._looked_at = now
            found = [channel for channel in self._channels if can_be_spared(channel, now)]
            if not found:
                return None
            found.sort(key=lambda each: each.last_active)
            self._found.extend(found)


def can_be_spared(channel: Channel, now: float) -> bool:
    quiet_s = now - channel.last_active
    if channel.has_spoken:
        return quiet_s >= IDLE_S and not channel.is_busy
    return quiet_s >= SILENT_S
