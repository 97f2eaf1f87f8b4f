"""What a shard asks of every kind of group (classic, consumer; later share and streams).

One object holds all groups of its kind in a shard. `handle` and `on_time` decide, `apply` takes records
over; the questions below them are those of offsets and administration, the same for all kinds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from barnabas.groups.basics.outcome import Caller, Outcome, Token
from barnabas.groups.basics.records import Entry
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.steps import Steps
from barnabas.metadata.topic_changes import TopicChanges
from barnabas.protocol import ErrorCode, Message
from barnabas.protocol.messages.list_groups import ListGroupsResponse

KEEP_ALL = None  # offsets of the group do not expire now
SINCE_COMMIT = -1  # each offset counts from its own commit

PartitionCheck = Callable[[bytes, int], ErrorCode]
"""Topic id and partition in, the error of committing to it (or NONE) out."""


class GroupKind(Protocol):
    def handle(self, request: Message, caller: Caller, image: MetadataImage, now_ms: int) -> Outcome: ...

    def apply(self, entry: Entry) -> None:
        """Take over a record of one of this kind's types. Cannot fail, does not look at the clock."""

    def replayed(self, now_ms: int) -> Steps[None]:
        """Everything was replayed: sessions and other deadlines begin now. More may be replayed after it, and
        then it is called again."""

    def loaded(self, now_ms: int) -> None:
        """Nothing more is replayed, requests come."""

    def next_deadline_ms(self) -> int | None:
        """When `on_time` wants to be called; too early does no harm."""

    def on_time(self, now_ms: int, image: MetadataImage) -> list[Outcome]: ...

    def clock_was_set(self, by_ms: int) -> None:
        """Sessions and other deadlines end no earlier and no later for it."""

    def metadata_changed(self, image: MetadataImage, changes: TopicChanges, now_ms: int) -> list[Outcome]: ...

    def unload(self) -> list[tuple[Token, Message]]:
        """Answers (NOT_COORDINATOR) for all who wait."""

    def owns(self, group_id: str) -> bool:
        """Whether the group exists and is of this kind."""

    def is_empty(self, group_id: str) -> bool:
        """Whether a group that is owned has no members."""

    def check_commit(
        self, group_id: str, member_id: str, instance_id: str | None, epoch: int, version: int, now_ms: int
    ) -> PartitionCheck | None:
        """KafkaError unless this member (or, without members, anybody) may commit in this epoch.

        What is returned, if anything, judges every partition on its own.
        """

    def check_transactional_commit(
        self, group_id: str, member_id: str, instance_id: str | None, epoch: int
    ) -> PartitionCheck | None:
        """The same for a commit in a transaction, in which a member may say nothing of itself."""

    def check_fetch(self, group_id: str, member_id: str | None, epoch: int) -> None:
        """KafkaError unless a member that names itself is one, with the current epoch."""

    def check_offset_delete(self, group_id: str) -> None:
        """KafkaError where offsets cannot be deleted one by one."""

    def is_subscribed(self, group_id: str, topic: str) -> bool:
        """Whether members read the topic, as far as the group knows: then its offsets stay."""

    def check_delete(self, group_id: str) -> None:
        """KafkaError (NON_EMPTY_GROUP) unless the group may go."""

    def tombstones(self, group_id: str) -> list[Entry]:
        """Records that end the group; its offsets are not part of them."""

    def expires_since(self, group_id: str) -> int | None:
        """From when retention counts: a time in ms, SINCE_COMMIT or KEEP_ALL."""

    def group_ids(self) -> list[str]:
        """All groups."""

    def listed(self, group_id: str) -> ListGroupsResponse.ListedGroup | None:
        """A group with state and type as ListGroups names them; None for one that is gone."""
