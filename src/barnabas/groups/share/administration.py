"""Changes of share groups by administrators, which wait for share coordinators: start offsets are altered,
state of topics is deleted, groups are deleted.

In: requests, and later the responses of share coordinators. Out: outcomes: first the records that say what
is going on, a token for the waiting request, and requests to share coordinators; then the records and the
response that end it. Does not know: how requests reach share coordinators.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from barnabas.groups.basics.outcome import Outcome, StateCall, Token, Tokens
from barnabas.groups.basics.records import Entry
from barnabas.groups.share import entries, initialization, offsets
from barnabas.groups.share.calls import StateCalls
from barnabas.groups.share.group import ShareGroup
from barnabas.groups.share.state import ShareState
from barnabas.groups.share.state_partitions import NO_STATE, StatePartitions, partitions_of
from barnabas.metadata.image import MetadataImage
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
from barnabas.protocol.messages.delete_groups import DeleteGroupsResponse
from barnabas.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)
from barnabas.protocol.messages.delete_share_group_state import DeleteShareGroupStateResponse
from barnabas.protocol.messages.initialize_share_group_state import InitializeShareGroupStateResponse

DeletedGroup = DeleteGroupsResponse.DeletableGroupResult


@dataclass(slots=True)
class Altering:
    group_id: str
    epoch: int
    token: Token
    response: AlterShareGroupOffsetsResponse


@dataclass(slots=True)
class DeletingOffsets:
    group_id: str
    token: Token
    refused: list[offsets.DeletedTopic]


@dataclass(slots=True)
class DeletingGroups:
    """A DeleteGroups request: all results in order, and the share groups whose state is being deleted."""

    token: Token
    response: DeleteGroupsResponse = field(default_factory=DeleteGroupsResponse)
    waiting: dict[str, DeletedGroup] = field(default_factory=dict)
    left: int = 0  # responses of share coordinators to come


@dataclass(slots=True)
class DeletingGroup:
    group_id: str
    whole: DeletingGroups


@dataclass(slots=True)
class Initializing:
    group_id: str
    epoch: int


Work = Initializing | Altering | DeletingOffsets | DeletingGroup


class Administration:
    __slots__ = ("_calls", "_state", "_tokens")

    def __init__(self, state: ShareState, calls: StateCalls[Work], tokens: Tokens) -> None:
        self._state = state
        self._calls = calls
        self._tokens = tokens

    # Start offsets

    def alter(
        self, group: ShareGroup, request: AlterShareGroupOffsetsRequest, image: MetadataImage, now_ms: int
    ) -> Outcome:
        if group.members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
        found = offsets.alter(request, image.topics)
        if not found.offsets:
            return Outcome(reply=found.response)
        self._calls.check_capacity()
        states = (group.states or NO_STATE).with_initializing(found.topics)
        self._state.note_asked(group.group_id, partitions_of(found.topics), group.epoch, now_ms)
        token = self._tokens.next()
        work = Altering(group.group_id, group.epoch, token, found.response)
        call = self._calls.add(initialization.request(group.group_id, group.epoch, found.offsets), work)
        return Outcome(
            [entries.states(group.group_id, states, image.topics)], None, token, state_calls=(call,)
        )

    def altered(
        self, work: Altering, response: InitializeShareGroupStateResponse, image: MetadataImage
    ) -> Outcome:
        """End an alteration. If it failed in part, nothing is recorded: the administrator tries again."""
        reply = offsets.with_errors(work.response, response)
        failed = any(each.error_code for result in response.results for each in result.partitions)
        records = [] if failed else self.initialized(work.group_id, work.epoch, response, image)
        return Outcome(records, responses=[(work.token, reply)])

    def initialized(
        self, group_id: str, epoch: int, response: InitializeShareGroupStateResponse, image: MetadataImage
    ) -> list[Entry]:
        group = self._state.groups.get(group_id)
        if group is None:
            return []  # deleted meanwhile
        before = group.states or NO_STATE
        current = initialization.not_superseded(self._state, group_id, epoch, response)
        after = initialization.finished(before, current, image.topics)
        return [entries.states(group_id, after, image.topics)] if after != before else []

    # State of topics

    def delete_offsets(
        self, group: ShareGroup, request: DeleteShareGroupOffsetsRequest, image: MetadataImage
    ) -> Outcome:
        if group.members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
        if group.states is None:
            return Outcome(reply=DeleteShareGroupOffsetsResponse())
        found = offsets.delete(request, group.states, image.topics)
        if not found.topics:
            return Outcome(reply=DeleteShareGroupOffsetsResponse(responses=found.refused))
        self._calls.check_capacity()
        states = group.states.with_deleting(found.topics)
        token = self._tokens.next()
        work = DeletingOffsets(group.group_id, token, found.refused)
        call = self._calls.add(offsets.deletion_request(group.group_id, found.topics), work)
        return Outcome(
            [entries.states(group.group_id, states, image.topics)], None, token, state_calls=(call,)
        )

    def offsets_deleted(
        self, work: DeletingOffsets, response: DeleteShareGroupStateResponse, image: MetadataImage
    ) -> Outcome:
        done, results = offsets.deleted(response, image.topics)
        reply = DeleteShareGroupOffsetsResponse(responses=results + work.refused)
        group = self._state.groups.get(work.group_id)
        records = []
        if done and group is not None and group.states is not None:
            after = group.states.without_deleting(done)
            records.append(entries.states(work.group_id, after, image.topics))
        return Outcome(records, responses=[(work.token, reply)])

    # Whole groups

    def begin_deletion(self) -> DeletingGroups:
        return DeletingGroups(self._tokens.next())

    def delete_state(
        self, group: ShareGroup, whole: DeletingGroups, result: DeletedGroup, image: MetadataImage
    ) -> tuple[list[Entry], list[StateCall]]:
        """Begin to delete the state of a group. The group itself is deleted when share coordinators have
        deleted everything."""
        partitions = group.states.to_delete(image.topics) if group.states is not None else {}
        if partitions:
            self._calls.check_capacity()
        whole.waiting[group.group_id] = result
        if not partitions:
            return [], []
        states = StatePartitions(deleting=frozenset(partitions))
        request = offsets.deletion_request(group.group_id, dict(partitions_of(partitions)))
        call = self._calls.add(request, DeletingGroup(group.group_id, whole))
        whole.left += 1
        return [entries.states(group.group_id, states, image.topics)], [call]

    def state_deleted(self, work: DeletingGroup, response: DeleteShareGroupStateResponse) -> bool:
        """Note a response. Returns whether it was the last one of the request."""
        code = next((code for result in response.results if (code := offsets.first_error(result))), 0)
        if code:
            work.whole.waiting.pop(work.group_id).error_code = code
        work.whole.left -= 1
        return not work.whole.left


def refusals(work: Work) -> Iterator[tuple[Token, Message]]:
    """The error response to the request that waits for this work, if one does: the shard is unloaded."""
    code = ErrorCode.NOT_COORDINATOR
    if isinstance(work, Altering):
        yield work.token, AlterShareGroupOffsetsResponse(error_code=code, error_message=code.message)
    elif isinstance(work, DeletingOffsets):
        yield work.token, DeleteShareGroupOffsetsResponse(error_code=code, error_message=code.message)
    elif isinstance(work, DeletingGroup):
        work.whole.waiting[work.group_id].error_code = code
        yield work.whole.token, work.whole.response
