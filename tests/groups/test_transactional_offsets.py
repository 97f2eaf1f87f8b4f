"""Offsets of open transactions: which of several commits takes effect, and what is deleted with a group."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.groups.basics.outcome import Caller
from barnabas.groups.basics.settings import GroupSettings
from barnabas.groups.offsets.offsets import Offsets
from barnabas.metadata.steps import at_once
from barnabas.protocol import ErrorCode
from barnabas.protocol.log_records.consumer_offsets import OffsetCommitKey, OffsetCommitValue
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest
from barnabas.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest

from .host import Host

TOPICS = {"t": 3}
KEYS = [OffsetCommitKey(group=group, topic="t", partition=index) for group in "gh" for index in range(2)]
PRODUCERS = [-1, 1, 2, 3]  # the first commits outside of transactions
DAY_MS = 86_400_000
Topic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
FetchGroup = OffsetFetchRequest.OffsetFetchRequestGroup

commits = st.tuples(st.just("commit"), st.sampled_from(PRODUCERS), st.integers(0, len(KEYS) - 1))
ends = st.tuples(st.just("end"), st.sampled_from(PRODUCERS[1:]), st.booleans())
removals = st.tuples(st.just("remove"), st.integers(0, len(KEYS) - 1), st.none())


class Model:
    """The expected state, computed from the positions of records in the log."""

    def __init__(self) -> None:
        self.committed: dict[int, tuple[int, int]] = {}  # key -> position of the record, offset
        self.pending: dict[int, dict[int, tuple[int, int]]] = {}  # producer -> the same

    def take(self, place: int, step: tuple[Any, ...]) -> None:
        match step:
            case "commit", -1, key:
                self.committed[key] = place, place
            case "commit", producer, key:
                self.pending.setdefault(producer, {})[key] = place, place
            case "remove", key, _:
                self.committed.pop(key, None)
                for offsets in self.pending.values():
                    offsets.pop(key, None)
            case "end", producer, is_commit:
                for key, found in self.pending.pop(producer, {}).items():
                    if is_commit and found > self.committed.get(key, (-1, -1)):
                        self.committed[key] = found


@given(st.lists(st.one_of(commits, commits, ends, removals), max_size=60))
def test_the_newest_commit_of_the_log_counts(history: list[tuple[Any, ...]]) -> None:
    offsets, model = Offsets(), Model()
    for place, step in enumerate(history):
        model.take(place, step)
        match step:
            case "commit", -1, key:
                offsets.apply(KEYS[key], OffsetCommitValue(offset=place))
            case "commit", producer, key:
                offsets.apply_pending(producer, KEYS[key], OffsetCommitValue(offset=place))
            case "remove", key, _:
                offsets.apply(KEYS[key], None)
            case "end", producer, is_commit:
                offsets.end_transaction(producer, is_commit=is_commit)
        for number, key in enumerate(KEYS):
            found = offsets.get(key.group, key.topic, key.partition)
            assert (found.offset if found is not None else None) == model.committed.get(number, (0, None))[1]
            is_pending = any(number in each for each in model.pending.values())
            assert offsets.is_pending(key.group, key.topic, key.partition) == is_pending
        tombstones = [each for group in "gh" for each in at_once(offsets.tombstones(group))]
        gone = {(each.key.group, each.key.partition) for each in tombstones}  # type: ignore[attr-defined]
        known = {number for each in (model.committed, *model.pending.values()) for number in each}
        assert gone == {(KEYS[number].group, KEYS[number].partition) for number in known}


class TransactionalHost(Host):
    """Appends what a transaction commits as pending, as the broker's host does."""

    def commit(self, producer_id: int, group: str, partition: int, offset: int, **who: Any) -> int:
        request = TxnOffsetCommitRequest(
            transactional_id="id",
            group_id=group,
            producer_id=producer_id,
            topics=[
                Topic(
                    name="t",
                    partitions=[
                        Topic.TxnOffsetCommitRequestPartition(
                            partition_index=partition, committed_offset=offset
                        )
                    ],
                )
            ],
            **who,
        )
        outcome = self.shard.handle(request, Caller(version=5), self.image, self.now_ms)
        for entry in outcome.records:
            self.shard.apply_pending(producer_id, entry)
        reply: Any = outcome.reply
        return int(reply.topics[0].partitions[0].error_code)

    def end(self, producer_id: int, *, is_commit: bool) -> None:
        self.shard.complete_transaction(producer_id, 0, is_commit=is_commit)

    def fetch(self, group: str, partition: int, *, stable: bool = True) -> tuple[int, int]:
        asked = FetchGroup.OffsetFetchRequestTopics(name="t", partition_indexes=[partition])
        request = OffsetFetchRequest(
            groups=[FetchGroup(group_id=group, topics=[asked])], require_stable=stable
        )
        answer: Any = self.ask("c", request, 9)
        [found] = answer.groups[0].topics[0].partitions
        return found.error_code, found.committed_offset


@pytest.fixture
def host() -> TransactionalHost:
    return TransactionalHost(GroupSettings(offsets_retention_ms=DAY_MS), TOPICS)


def test_a_group_that_only_has_pending_offsets_exists(host: TransactionalHost) -> None:
    host.commit(1, "g", 0, 5)
    assert host.shard.classic.owns("g")
    assert host.fetch("g", 0) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
    assert host.fetch("g", 0, stable=False) == (ErrorCode.NONE, -1)


def test_a_group_with_pending_offsets_outlives_the_retention(host: TransactionalHost) -> None:
    host.commit(1, "g", 0, 5)
    host.commit(2, "g", 1, 5)
    host.end(2, is_commit=True)
    host.advance(3 * DAY_MS)
    assert host.shard.classic.owns("g")
    assert host.fetch("g", 1) == (ErrorCode.NONE, -1), "what is not pending has expired"
    host.end(1, is_commit=False)
    host.advance(DAY_MS)
    assert not host.shard.classic.owns("g")


def test_an_expired_offset_stays_while_a_newer_one_is_pending(host: TransactionalHost) -> None:
    host.commit(1, "g", 0, 5)
    host.end(1, is_commit=True)
    host.commit(2, "g", 0, 6)
    host.advance(3 * DAY_MS)
    host.end(2, is_commit=False)
    assert host.fetch("g", 0) == (ErrorCode.NONE, 5)


def test_a_deleted_group_does_not_come_back_with_the_marker(host: TransactionalHost) -> None:
    host.commit(1, "g", 0, 5)
    host.ask("c", DeleteGroupsRequest(groups_names=["g"]), 2)
    host.end(1, is_commit=True)
    assert host.fetch("g", 0) == (ErrorCode.NONE, -1)
    assert not host.shard.classic.owns("g")


def test_a_deleted_topic_takes_its_pending_offsets_with_it(host: TransactionalHost) -> None:
    host.commit(1, "g", 0, 5)
    host.change_topics({"other": 1})
    host.end(1, is_commit=True)
    assert host.shard.offsets.get("g", "t", 0) is None


@pytest.mark.parametrize(
    ("who", "error"),
    [
        ({}, ErrorCode.NONE),
        ({"generation_id": 4}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation_id": 4, "member_id": "m"}, ErrorCode.ILLEGAL_GENERATION),
    ],
)
def test_a_generation_of_no_group_is_refused(
    host: TransactionalHost, who: dict[str, Any], error: ErrorCode
) -> None:
    assert host.commit(1, "g", 0, 5, **who) == error
