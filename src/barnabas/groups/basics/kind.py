"""The interface of every kind of group (classic, consumer, share, streams).

One object holds all groups of its kind in a shard. `handle` and `on_timer` decide, `apply` applies records.
The other methods serve offsets and administration and mean the same for all kinds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from barnabas.groups.basics.outcome import Caller, Outcome, Token
from barnabas.groups.basics.records import Entry
from barnabas.groups.basics.settings import GroupSettings
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.steps import Steps
from barnabas.metadata.topic_changes import TopicChanges
from barnabas.metadata.topics import TopicImage
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.messages.list_groups import ListGroupsResponse

KEEP_ALL = None  # offsets of the group do not expire now
SINCE_COMMIT = -1  # each offset expires counted from its own commit

PartitionCheck = Callable[[TopicImage, int], ErrorCode]
"""Takes a topic and a partition, returns the error of committing to it, or NONE."""


class GroupKind(Protocol):
    def handle(self, request: Message, caller: Caller, image: MetadataImage, now_ms: int) -> Outcome: ...

    def apply(self, entry: Entry) -> None:
        """Apply a record of this kind. Cannot fail, does not look at the clock."""

    def replayed(self, now_ms: int) -> Steps[None]:
        """Start sessions and other deadlines, after everything was replayed. If more is replayed later, it
        is called again."""

    def loaded(self, now_ms: int) -> None:
        """Start to serve requests: nothing more is replayed."""

    def next_deadline_ms(self) -> int | None:
        """When to call `on_timer`. Too early does no harm."""

    def on_timer(self, now_ms: int, image: MetadataImage) -> list[Outcome]: ...

    def on_clock_set(self, by_ms: int) -> None:
        """Shift sessions and other deadlines after the wall clock was set."""

    def metadata_changed(self, image: MetadataImage, changes: TopicChanges, now_ms: int) -> list[Outcome]: ...

    def unload(self) -> list[tuple[Token, Message]]:
        """Return NOT_COORDINATOR responses for every waiting request."""

    def owns(self, group_id: str) -> bool:
        """Whether the group exists and is of this kind."""

    def is_empty(self, group_id: str) -> bool:
        """Whether an existing group has no members."""

    def check_commit(
        self, group_id: str, member_id: str, instance_id: str | None, epoch: int, version: int, now_ms: int
    ) -> PartitionCheck | None:
        """Raise KafkaError unless this member (or, in a group without members, anybody) may commit in this
        epoch.
        The result, if any, checks each partition."""

    def check_transactional_commit(
        self, group_id: str, member_id: str, instance_id: str | None, epoch: int
    ) -> PartitionCheck | None:
        """The same for a commit in a transaction, which may name no member."""

    def check_fetch(self, group_id: str, member_id: str | None, epoch: int) -> None:
        """Raise KafkaError if the request names a member that is unknown or has another epoch."""

    def check_offset_delete(self, group_id: str) -> None:
        """Raise KafkaError if single offsets of the group cannot be deleted."""

    def is_subscribed(self, group_id: str, topic: str) -> bool:
        """Whether members subscribed to the topic, as far as the group knows. Its offsets do not expire
        then."""

    def check_delete(self, group_id: str) -> None:
        """Raise KafkaError (NON_EMPTY_GROUP) unless the group may be deleted."""

    def tombstones(self, group_id: str) -> list[Entry]:
        """The records that delete the group, without those of its offsets."""

    def expires_since(self, group_id: str) -> int | None:
        """When retention begins to count: a time in ms, SINCE_COMMIT or KEEP_ALL."""

    def group_ids(self) -> list[str]:
        """The ids of all groups."""

    @property
    def group_count(self) -> int:
        """The number of groups."""

    def configure(self, settings: GroupSettings) -> None:
        """Change the settings at run time."""

    def listed(self, group_id: str) -> ListGroupsResponse.ListedGroup | None:
        """The group with state and type as ListGroups names them; None if it does not exist."""


def not_a_consumer_group(group_id: str) -> KafkaError:
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
