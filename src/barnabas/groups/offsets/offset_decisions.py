"""Decisions on requests about offsets: may this member do it, and what is the result for every partition?

In: requests, the offsets of the shard, the kind of each group. Out: outcomes, in steps of bounded work,
because a request may name ten thousand partitions. Nothing else is decided in the shard between two steps.
Does not know: the log, how records are applied.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.groups.basics.kind import GroupKind, PartitionCheck
from barnabas.groups.basics.outcome import Caller, Outcome
from barnabas.groups.basics.settings import GroupSettings
from barnabas.groups.basics.steps import portions
from barnabas.groups.offsets.offset_commit import Commit
from barnabas.groups.offsets.offset_requests import (
    Deletion,
    FetchedGroup,
    OffsetReader,
    fetch_response,
    requested_groups,
)
from barnabas.groups.offsets.offsets import Offsets
from barnabas.groups.offsets.transactional_commit import TransactionalCommit
from barnabas.metadata.steps import Steps
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.offset_delete import OffsetDeleteResponse

if TYPE_CHECKING:
    from barnabas.metadata.image import MetadataImage
    from barnabas.protocol.messages.offset_commit import OffsetCommitRequest
    from barnabas.protocol.messages.offset_delete import OffsetDeleteRequest
    from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest
    from barnabas.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest

GROUP_NOT_FOUND_VERSION = 9  # of OffsetCommit: older clients know only ILLEGAL_GENERATION


class OffsetDecisions:
    __slots__ = ("_kind_of", "_offsets", "settings")

    def __init__(
        self, settings: GroupSettings, offsets: Offsets, kind_of: Callable[[str], GroupKind | None]
    ) -> None:
        self.settings = settings
        self._offsets = offsets
        self._kind_of = kind_of

    def commit(
        self, request: OffsetCommitRequest, caller: Caller, image: MetadataImage, now_ms: int
    ) -> Outcome:
        """Decide a commit of few partitions, as most are."""
        commit = Commit(request, caller.version, image.topics)
        for topic in request.topics:
            commit.look_up(topic, topic.partitions)
        commit.end_lookup(now_ms)
        positions = range(len(commit.accepted))
        error, check = self._check_commit(commit, caller, now_ms)
        if check is not None:
            error = next(filter(None, (commit.first_error(position, check) for position in positions)), error)
        for position in positions:
            if error:
                commit.refuse(position, error)
            else:
                commit.write(position, self.settings.offset_metadata_bytes_max, now_ms)
        return commit.outcome()

    def commit_in_steps(
        self, request: OffsetCommitRequest, caller: Caller, image: MetadataImage, now_ms: int
    ) -> Steps[Outcome]:
        """Decide a commit in steps."""
        commit = Commit(request, caller.version, image.topics)
        for topic in request.topics:
            for partitions in portions(topic.partitions):
                commit.look_up(topic, partitions)
                yield
        commit.end_lookup(now_ms)
        positions = range(len(commit.accepted))
        error, check = self._check_commit(commit, caller, now_ms)
        if check is not None:
            for position in positions:
                error = commit.first_error(position, check)
                if error:
                    break
                yield
        for position in positions:
            if error:
                commit.refuse(position, error)
            else:
                commit.write(position, self.settings.offset_metadata_bytes_max, now_ms)
            yield
        return commit.outcome()

    def _check_commit(
        self, commit: Commit, caller: Caller, now_ms: int
    ) -> tuple[ErrorCode, PartitionCheck | None]:
        """The error of the whole commit, or a check for each partition."""
        request, settings = commit.request, self.settings
        if not commit.accepted:
            return ErrorCode.NONE, None
        epoch = request.generation_id_or_member_epoch
        kind = self._kind_of(request.group_id)
        check = None
        if kind is None:
            if epoch >= 0:
                is_old = caller.version < GROUP_NOT_FOUND_VERSION
                return ErrorCode.ILLEGAL_GENERATION if is_old else ErrorCode.GROUP_ID_NOT_FOUND, None
        else:
            member = request.member_id, request.group_instance_id
            try:
                check = kind.check_commit(request.group_id, *member, epoch, caller.version, now_ms)
            except KafkaError as refused:
                return refused.code, None
        if not commit.fits(settings.record_bytes_max, settings.offset_metadata_bytes_max):
            return ErrorCode.UNKNOWN_SERVER_ERROR, None
        return ErrorCode.NONE, check

    def commit_in_transaction(
        self, request: TxnOffsetCommitRequest, caller: Caller, image: MetadataImage, now_ms: int
    ) -> Steps[Outcome]:
        """Decide a commit in a transaction. The host appends the records to the producer's transaction and
        applies them as pending."""
        commit = TransactionalCommit(request)
        yield from commit.look_up(image.topics)
        if not commit.accepted:
            return Outcome(reply=commit.refuse(ErrorCode.NONE))
        group_id = request.group_id
        kind = self._kind_of(group_id)
        metadata_bytes_max = self.settings.offset_metadata_bytes_max
        try:
            if not group_id:
                raise KafkaError(ErrorCode.INVALID_GROUP_ID)
            if kind is None and request.generation_id >= 0:
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
            if kind is not None:
                check = kind.check_transactional_commit(
                    group_id, request.member_id, request.group_instance_id, request.generation_id
                )
                yield from commit.check(check, metadata_bytes_max)
        except KafkaError as refused:
            return Outcome(reply=commit.refuse(refused.code))
        return (yield from commit.records(metadata_bytes_max, now_ms))

    def fetch(
        self, request: OffsetFetchRequest, caller: Caller, image: MetadataImage, now_ms: int
    ) -> Steps[Outcome]:
        reader = OffsetReader(self._offsets, image.topics, caller.version, is_stable=request.require_stable)
        groups = []
        for requested in requested_groups(request, caller.version):
            kind = self._kind_of(requested.group_id)
            try:
                if kind is not None:
                    kind.check_fetch(requested.group_id, requested.member_id, requested.member_epoch)
            except KafkaError as refused:
                groups.append(FetchedGroup(group_id=requested.group_id, error_code=refused.code))
                continue
            groups.append((yield from reader.read(requested)))
        return Outcome(reply=fetch_response(groups, caller.version))

    def delete(
        self, request: OffsetDeleteRequest, caller: Caller, image: MetadataImage, now_ms: int
    ) -> Steps[Outcome]:
        group_id = request.group_id
        if not group_id:
            return Outcome(reply=OffsetDeleteResponse(error_code=ErrorCode.INVALID_GROUP_ID))
        kind = self._kind_of(group_id)
        if kind is None:
            return Outcome(reply=OffsetDeleteResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND))
        try:
            kind.check_offset_delete(group_id)
        except KafkaError as refused:
            return Outcome(reply=OffsetDeleteResponse(error_code=refused.code))
        deletion = Deletion(request)
        yield from deletion.look_up(image.topics)
        names = dict.fromkeys(topic for topic, _ in deletion.accepted)
        subscribed = {topic for topic in names if kind.is_subscribed(group_id, topic)}
        records = yield from deletion.records(self._offsets, subscribed)
        return Outcome(records, deletion.response)
