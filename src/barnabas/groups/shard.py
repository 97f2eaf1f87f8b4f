"""One partition of `__consumer_offsets`: every request about its groups goes in here.

In: requests (batched ones hold only groups of this shard), records to take over, time, metadata. Out:
outcomes. The work is done by one object a kind of group, and by `Offsets`; this module only knows which of them to ask.
Does not know: the log, sockets, the clock, who may do what.
"""

from __future__ import annotations

from barnabas.groups.member_ids import Rng
from barnabas.groups.outcome import Caller, Outcome, Token
from barnabas.groups.records import Entry
from barnabas.groups.settings import GroupSettings
from barnabas.metadata.image import MetadataImage
from barnabas.protocol import Message


class GroupShard:
    def __init__(self, settings: GroupSettings, rng: Rng, now_ms: int) -> None:
        self.settings = settings
        raise NotImplementedError

    def handle(self, request: Message, caller: Caller, image: MetadataImage, now_ms: int) -> Outcome:
        """Decides on a request; its records must be applied before the next one."""
        raise NotImplementedError

    def apply(self, entry: Entry) -> None:
        """Takes over a record, decided or replayed. Cannot fail, does not look at the clock."""
        raise NotImplementedError

    def loaded(self, now_ms: int) -> None:
        """Everything was replayed: members that were restored get fresh sessions."""
        raise NotImplementedError

    def next_deadline_ms(self) -> int | None:
        raise NotImplementedError

    def on_time(self, now_ms: int, image: MetadataImage) -> list[Outcome]:
        raise NotImplementedError

    def metadata_changed(self, image: MetadataImage, now_ms: int) -> list[Outcome]:
        raise NotImplementedError

    def unload(self) -> list[tuple[Token, Message]]:
        """Answers for all who wait (NOT_COORDINATOR): the partition is led elsewhere now."""
        raise NotImplementedError
