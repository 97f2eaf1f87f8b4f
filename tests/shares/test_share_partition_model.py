"""Random histories of a share partition: intervals and records one by one agree after every step."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from barnabas.protocol import KafkaError
from barnabas.shares.partition import acknowledging, acquiring
from barnabas.shares.partition.acknowledging import Acknowledgement
from barnabas.shares.partition.acquiring import Span, Wish
from barnabas.shares.partition.limits import ShareLimits
from barnabas.shares.partition.share_partition import Change, SharePartition, StateRange

from .share_model import Model, Record, Refused

MEMBERS = "ann", "ben", "eve"
LOCK_MS = 30

members = st.sampled_from(MEMBERS)
types = st.sampled_from([0, 1, 2, 3, 4])


@st.composite
def stored_states(draw: Any) -> list[tuple[int, int, int, int]]:
    found, offset = [], draw(st.integers(10, 14))
    for _ in range(draw(st.integers(0, 4))):
        offset += draw(st.integers(0, 3))
        last = offset + draw(st.integers(0, 5))
        found.append((offset, last, draw(st.sampled_from([0, 2, 4])), draw(st.integers(1, 3))))
        offset = last + 1
    return found


class ShareHistory(RuleBasedStateMachine):
    """The log has batches of one to seven records; compaction has removed some of them."""

    def __init__(self) -> None:
        super().__init__()
        self.spans: list[Span] = []
        self.limits = ShareLimits(record_locks_max=40, deliveries_max=5, lock_duration_ms=LOCK_MS)
        self.state = SharePartition(10)
        self.model = Model(10)
        self.now = 1000
        self.pending: list[tuple[Change, list[Record]]] = []

    @rule(stored=stored_states(), deliveries_max=st.sampled_from([2, 5, 8]))
    @precondition(lambda self: not self.spans)
    def load(self, stored: list[tuple[int, int, int, int]], deliveries_max: int) -> None:
        self.limits = ShareLimits(
            record_locks_max=40, deliveries_max=deliveries_max, lock_duration_ms=LOCK_MS
        )
        self.state = SharePartition.load(10, 0, [StateRange(*each) for each in stored])
        self.model = Model(10)
        self.model.load(stored)

    @rule(size=st.integers(1, 7), gap=st.sampled_from([0, 0, 0, 1, 5]))
    def append(self, size: int, gap: int) -> None:
        first = (self.spans[-1].last + 1 if self.spans else 8) + gap
        self.spans.append(Span(first, first + size - 1))

    @rule(number=st.integers(0, 30))
    @precondition(lambda self: len(self.spans) > 1)
    def compact(self, number: int) -> None:
        self.spans.pop(number % (len(self.spans) - 1))

    @rule(
        member=members,
        records_max=st.integers(0, 20),
        batch_size=st.integers(1, 10),
        strict=st.booleans(),
        batches=st.integers(1, 5),
    )
    def acquire(self, member: str, records_max: int, batch_size: int, strict: bool, batches: int) -> None:
        if not self.state.can_acquire(self.limits.record_locks_max):
            return
        offset = self.state.next_fetch_offset
        read = [span for span in self.spans if span.last >= offset][:batches]
        if not read:
            return
        wish = Wish(member, offset, records_max, batch_size, strict, self.now + LOCK_MS)
        got = acquiring.acquire(self.state, wish, read, self.limits)
        expected = self.model.acquire(
            member, offset, records_max, batch_size, strict, self.now + LOCK_MS, read, self.limits
        )
        assert [tuple(each) for each in got] == expected
        if strict:
            assert sum(each.last - each.first + 1 for each in got) <= records_max

    @rule(member=members, data=st.data())
    def acknowledge(self, member: str, data: st.DataObject) -> None:
        first = data.draw(st.integers(self.state.start_offset - 2, self.state.end_offset + 1))
        asked = []
        for _ in range(data.draw(st.integers(1, 3))):
            last = first + data.draw(st.integers(0, 6))
            one = data.draw(st.booleans())
            kinds = data.draw(st.lists(types, min_size=1, max_size=1) if one else many(last - first + 1))
            asked.append(Acknowledgement(first, last, kinds))
            first = last + 1
        self.send(member, asked)

    @rule(number=st.integers(0, 30), kind=types)
    def acknowledge_what_is_acquired(self, number: int, kind: int) -> None:
        acquired = [run for run in self.state.runs if run.member]
        if acquired:
            run = acquired[number % len(acquired)]
            self.send(run.member, [Acknowledgement(run.first, run.last, [kind])])

    def send(self, member: str, asked: list[Acknowledgement]) -> None:
        try:
            change = acknowledging.acknowledge(self.state, member, asked, self.limits, self.now)
        except KafkaError as error:
            # As Kafka, a batch in front of the range is checked too, if the range begins in a gap behind it.
            if error.message not in (acknowledging.BATCH_NOT_ACQUIRED, acknowledging.NOT_OWNER_OF_BATCH):
                with pytest.raises(Refused):
                    self.model.plan(member, asked, self.limits)
            return
        planned = self.model.plan(member, asked, self.limits)
        expected = self.model.acknowledge(planned, self.limits, self.now)
        stored = {offset for each in change.ranges for offset in range(each.first, each.last + 1)}
        assert stored == {record.offset for record in expected}
        self.pending.append((change, expected))

    @rule(member=members)
    def close_session(self, member: str) -> None:
        change = self.state.release(member, self.limits.deliveries_max)
        self.pending.append((change, self.model.release(member, self.limits)))

    @rule(number=st.integers(0, 30), is_stored=st.sampled_from([True, True, True, False]))
    @precondition(lambda self: self.pending)
    def end_of_write(self, number: int, is_stored: bool) -> None:
        change, changed = self.pending.pop(number % len(self.pending))
        self.state.complete(change, is_stored, self.now)
        self.model.complete(changed, change.member, is_stored, self.now, self.limits)

    @rule(passed=st.integers(1, 40))
    def time_passes(self, passed: int) -> None:
        self.now += passed
        self.state.expire(self.now, self.limits.deliveries_max)
        self.model.expire(self.now, self.limits)

    @rule(distance=st.integers(1, 12))
    @precondition(lambda self: self.spans)
    def delete_records(self, distance: int) -> None:
        offset = min(self.state.start_offset + distance, self.spans[-1].last + 1)
        self.spans = [span for span in self.spans if span.last >= offset]
        self.state.move_log_start(offset)
        self.model.move_log_start(offset)

    @invariant()
    def agree(self) -> None:
        state, model = self.state, self.model
        records = {
            offset: (run.state, run.deliveries if run.state < 2 else 0, run.member, run.pending is not None)
            for run in state.runs
            for offset in range(run.first, run.last + 1)
        }
        assert records == {
            record.offset: (
                record.state,
                record.deliveries if record.state < 2 else 0,
                record.member,
                record.pending is not None,
            )
            for record in model.in_order()
        }
        assert (state.start_offset, state.end_offset) == (model.start, model.end)
        assert state.complete_count == model.complete_count
        assert state.next_fetch_offset == model.next_fetch_offset
        assert state.in_flight == model.in_flight

    @invariant()
    def runs_are_in_order(self) -> None:
        last = -1
        for run in self.state.runs:
            assert last < run.first <= run.last
            last = run.last


def many(size: int) -> Any:
    return st.lists(types, min_size=size, max_size=size)


TestShareHistory = ShareHistory.TestCase
TestShareHistory.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # shrinking a history takes minutes
)
