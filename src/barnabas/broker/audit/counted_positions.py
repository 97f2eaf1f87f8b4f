"""How far each partition of the cluster was counted, as the audit topic tells.

In: a reader of the audit topic. Out: for each stream the offset behind its last count message.
Does not know: logs, who counted.
"""

from __future__ import annotations

from barnabas.audit.core.messages import CountMessage, StreamKind
from barnabas.audit.counters.audit_topic_reader import AuditTopicReader


class CountedPositions:
    def __init__(self, reader: AuditTopicReader, tier: str) -> None:
        self._reader = reader
        self._tier = tier
        self.ends: dict[str, int] = {}  # by stream

    async def catch_up(self) -> None:
        """Read everything that the audit topic has now."""
        await self._reader.catch_up(self._note)

    def _note(self, message: CountMessage, arrived_ms: int) -> None:
        if message.tier == self._tier and message.kind is StreamKind.OFFSETS:
            self.ends[message.stream] = max(self.ends.get(message.stream, 0), message.end)

    async def close(self) -> None:
        await self._reader.close()
