"""Acknowledging: a member says what became of records that it has acquired.

In: ranges of offsets with types of acknowledgement, one for all records of a range or one for each. Out: a
pending change, or Kafka's error and nothing changed. Offsets below the start offset are ignored, and offsets
that no batch has: compaction has removed them. Does not know: requests, how changes are stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from itertools import groupby
from typing import NamedTuple

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.shares.partition.limits import ShareLimits
from barnabas.shares.partition.runs import ACKNOWLEDGED, ACQUIRED, ARCHIVED, AVAILABLE, NO_MEMBER, UNREAD, Run
from barnabas.shares.partition.share_partition import Change, SharePartition


class AcknowledgeType(IntEnum):
    GAP = 0  # there is no such record
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4  # keep the records, with a new lock (KIP-1222)


GAP, ACCEPT, RELEASE, REJECT, RENEW = AcknowledgeType
STATES: dict[int, int] = {GAP: ARCHIVED, ACCEPT: ACKNOWLEDGED, RELEASE: AVAILABLE, REJECT: ARCHIVED}

NOT_FOUND = "Batch record not found. The request batch offsets are not found in the cache."
FIRST_TOO_LARGE = "Batch record not found. The first offset in request is past acquired records."
LAST_TOO_LARGE = "Batch record not found. The last offset in request is past acquired records."
BATCH_NOT_ACQUIRED = "The batch cannot be acknowledged. The batch is not in the acquired state."
OFFSET_NOT_ACQUIRED = "The offset cannot be acknowledged. The offset is not acquired."
NOT_OWNER_OF_BATCH = "Member is not the owner of batch record"
NOT_OWNER_OF_OFFSET = "Member is not the owner of offset"
NO_RENEWAL = "Renewing acquisition locks is not enabled for the group."


class Acknowledgement(NamedTuple):
    first: int
    last: int
    types: Sequence[int]


class Part(NamedTuple):
    """Offsets with the same type of acknowledgement."""

    first: int
    last: int
    type: int


def acknowledge(
    state: SharePartition,
    member: str,
    acknowledgements: Sequence[Acknowledgement],
    limits: ShareLimits,
    now_ms: int,
) -> Change:
    """Begin the change that a member asks for. Raises KafkaError if one of the records is not acquired by the
    member; then nothing has changed."""
    planned: list[Part] = []
    for asked in acknowledgements:
        if asked.last < state.start_offset:
            continue
        if planned and asked.first <= planned[-1].last:
            raise KafkaError(ErrorCode.INVALID_RECORD_STATE, OFFSET_NOT_ACQUIRED)
        check(state, member, asked)
        planned += parts(asked, state.start_offset)
    if not limits.may_renew and any(part.type == RENEW for part in planned):
        raise KafkaError(ErrorCode.INVALID_RECORD_STATE, NO_RENEWAL)
    change = Change(member, limits.deliveries_max)
    for part in planned:
        apply(state, change, part, now_ms + limits.lock_duration_ms)
    if planned:
        state.runs.merge(planned[0].first, planned[-1].last)
    return change


def apply(state: SharePartition, change: Change, part: Part, deadline_ms: int) -> None:
    for run in state.runs.cut(part.first, part.last):
        if part.type == RENEW:
            run.deadline_ms = deadline_ms
        else:
            state.begin(change, run, STATES[part.type])


def parts(asked: Acknowledgement, start_offset: int) -> Iterator[Part]:
    if len(asked.types) == 1:
        yield Part(max(asked.first, start_offset), asked.last, asked.types[0])
        return
    offset = asked.first
    for kind, equal in groupby(asked.types):
        count = sum(1 for _ in equal)
        if offset + count > start_offset:
            yield Part(max(offset, start_offset), offset + count - 1, kind)
        offset += count


def check(state: SharePartition, member: str, asked: Acknowledgement) -> None:
    """Raise Kafka's error if the member may not acknowledge these records."""
    runs = state.runs
    index = runs.floor(asked.first)
    if index < 0 or runs[index].batch is UNREAD:
        index = runs.floor(state.start_offset) if asked.first < state.start_offset <= asked.last else -1
        if index < 0 or runs[index].batch is UNREAD:
            raise KafkaError(ErrorCode.INVALID_RECORD_STATE, NOT_FOUND)
    last_found = -1
    found: list[Run] = []
    while index < len(runs) and runs[index].first <= asked.last:
        run = runs[index]
        index += 1
        if run.batch is not UNREAD:
            found.append(run)
            last_found = run.batch_last
    if last_found < asked.first:
        raise KafkaError(ErrorCode.INVALID_REQUEST, FIRST_TOO_LARGE)
    if asked.last > last_found:
        raise KafkaError(ErrorCode.INVALID_REQUEST, LAST_TOO_LARGE)
    for run in found:
        if run.batch_last < state.start_offset:
            continue
        if run.batch is None:
            check_batch(run, member)
        elif run.last >= max(asked.first, state.start_offset):
            check_offsets(run, member)


def check_batch(run: Run, member: str) -> None:
    if run.state != ACQUIRED or run.member == NO_MEMBER:
        raise KafkaError(ErrorCode.INVALID_RECORD_STATE, BATCH_NOT_ACQUIRED)
    if run.member != member:
        raise KafkaError(ErrorCode.INVALID_RECORD_STATE, NOT_OWNER_OF_BATCH)


def check_offsets(run: Run, member: str) -> None:
    if run.state != ACQUIRED:
        raise KafkaError(ErrorCode.INVALID_RECORD_STATE, OFFSET_NOT_ACQUIRED)
    if run.member != member:
        raise KafkaError(ErrorCode.INVALID_RECORD_STATE, NOT_OWNER_OF_OFFSET)
