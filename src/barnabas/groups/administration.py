"""Lists, describes and deletes the groups of a shard, of every kind.

In: requests, the kinds of groups, committed offsets. Out: outcomes, in steps of bounded work, because a
request may name thousands of groups. The deletion of a share group waits until share coordinators have
deleted its state.
Does not know: the log, authorization, members.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from barnabas.groups.basics.kind import GroupKind
from barnabas.groups.basics.outcome import Caller, Outcome, StateCall
from barnabas.groups.basics.records import Entry
from barnabas.groups.basics.steps import PORTION, portions
from barnabas.groups.classic.coordinator import ClassicGroups
from barnabas.groups.consumer.coordinator import ConsumerGroups
from barnabas.groups.offsets.offsets import Offsets
from barnabas.groups.share.administration import DeletingGroups
from barnabas.groups.share.coordinator import ShareGroups
from barnabas.groups.streams.coordinator import StreamsGroups
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.steps import Steps
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from barnabas.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from barnabas.protocol.messages.share_group_describe import (
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)

NOT_FOUND_IS_AN_ERROR_VERSION = 6  # of DescribeGroups: older versions show an unknown group as Dead


class GroupAdministration:
    __slots__ = ("_classic", "_consumer", "_kind_of", "_kinds", "_offsets", "_share")

    def __init__(
        self,
        kinds: tuple[ClassicGroups, ConsumerGroups, ShareGroups, StreamsGroups],
        offsets: Offsets,
        kind_of: Callable[[str], GroupKind | None],
    ) -> None:
        self._classic, self._consumer, self._share = kinds[:3]
        self._kinds: Sequence[GroupKind] = kinds
        self._offsets = offsets
        self._kind_of = kind_of

    def is_much_to_delete(self, request: DeleteGroupsRequest) -> bool:
        names = request.groups_names
        return len(names) > PORTION or sum(map(self._offsets.count_of, names)) > PORTION

    def delete(
        self, request: DeleteGroupsRequest, caller: Caller, image: MetadataImage, now_ms: int
    ) -> Steps[Outcome]:
        whole = self._share.administration.begin_deletion()
        response = whole.response
        records: list[Entry] = []
        calls: list[StateCall] = []
        for group_id in dict.fromkeys(request.groups_names):
            result = DeleteGroupsResponse.DeletableGroupResult(group_id=group_id)
            response.results.append(result)
            kind = self._kind_of(group_id)
            if kind is None:
                result.error_code = ErrorCode.GROUP_ID_NOT_FOUND
                continue
            try:
                kind.check_delete(group_id)
                if kind is self._share:
                    group = self._share.state.groups[group_id]
                    found = self._share.administration.delete_state(group, whole, result, image)
                    records += found[0]
                    calls += found[1]
                else:
                    records += yield from self._offsets.tombstones(group_id)
                    records += kind.tombstones(group_id)
            except KafkaError as refused:
                result.error_code = refused.code
            yield
        if calls:
            return Outcome(records, waiting_token=whole.token, state_calls=tuple(calls))
        return Outcome(records + self._share_tombstones(whole), response)

    def _share_tombstones(self, whole: DeletingGroups) -> list[Entry]:
        """The records that delete share groups whose state is deleted, unless a member joined meanwhile."""
        records: list[Entry] = []
        for group_id, result in whole.waiting.items():
            try:
                if not self._share.owns(group_id):
                    raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
                self._share.check_delete(group_id)
                records += self._share.tombstones(group_id)
            except KafkaError as refused:
                result.error_code = refused.code
        return records

    def state_response(self, number: int, response: Message, image: MetadataImage) -> Outcome:
        """Go on with what waited for a response of share coordinators (`Outcome.state_calls`)."""
        found = self._share.state_response(number, response, image)
        if isinstance(found, DeletingGroups):
            records = self._share_tombstones(found)
            return Outcome(records, responses=[(found.token, found.response)])
        return found if found is not None else Outcome()

    def list_groups(
        self, request: ListGroupsRequest, caller: Caller, image: MetadataImage, now_ms: int
    ) -> Steps[Outcome]:
        """List groups. Filters ignore case; unknown states and types match nothing."""
        states = {state.strip().lower() for state in request.states_filter}
        types = {kind.lower() for kind in request.types_filter}
        listed = []
        for kind in self._kinds:
            for some in portions(kind.group_ids()):
                for group_id in some:
                    group = kind.listed(group_id)
                    if (
                        group is not None
                        and (not states or group.group_state.lower() in states)
                        and (not types or group.group_type.lower() in types)
                    ):
                        listed.append(group)
                yield
        return Outcome(reply=ListGroupsResponse(groups=listed))

    def describe_groups(
        self, request: DescribeGroupsRequest, caller: Caller, image: MetadataImage, now_ms: int
    ) -> Steps[Outcome]:
        response = DescribeGroupsResponse()
        for group_id in request.groups:
            response.groups.append(self._describe(group_id, caller.version))
            yield
        return Outcome(reply=response)

    def describe_consumer_groups(
        self, request: ConsumerGroupDescribeRequest, caller: Caller, image: MetadataImage, now_ms: int
    ) -> Steps[Outcome]:
        response = ConsumerGroupDescribeResponse()
        for group_id in request.group_ids:
            response.groups.append(self._consumer.describe(group_id, image))
            yield
        return Outcome(reply=response)

    def describe_share_groups(
        self, request: ShareGroupDescribeRequest, caller: Caller, image: MetadataImage, now_ms: int
    ) -> Steps[Outcome]:
        response = ShareGroupDescribeResponse()
        for group_id in request.group_ids:
            response.groups.append(self._share.describe(group_id, image))
            yield
        return Outcome(reply=response)

    def _describe(self, group_id: str, version: int) -> DescribeGroupsResponse.DescribedGroup:
        found = self._classic.describe(group_id)
        if found is not None:
            return found
        dead = DescribeGroupsResponse.DescribedGroup(group_id=group_id, group_state="Dead")
        if version >= NOT_FOUND_IS_AN_ERROR_VERSION:
            dead.error_code = ErrorCode.GROUP_ID_NOT_FOUND
            is_other = self._kind_of(group_id) is not None
            dead.error_message = f"Group {group_id} {'is not a classic group' if is_other else 'not found'}."
        return dead
