"""Rules of what a partition remembers of its producers, one by one, at their edges: id 0, offset 0, equal
epochs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from barnabas.metadata.steps import at_once
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.records.batch import BatchHeader
from barnabas.records.control import EndMarker, build_end_marker
from barnabas.replication.producer_state import BATCHES_REMEMBERED, NO_OFFSET, BatchMetadata, ProducerState
from barnabas.replication.producers import EPOCH_MAX, PRODUCERS_A_STEP, ProducerStates
from barnabas.replication.verification import NOT_REQUIRED, ONGOING
from replication.test_producers import header

INT32_MAX = 2**31 - 1


def append(states: ProducerStates, batch: BatchHeader) -> BatchMetadata | None:
    """As a leader does; the batch that it repeats."""
    found = states.check(batch, NOT_REQUIRED)
    if found is None:
        batch.base_offset = states.end_offset
        states.apply(batch)
    return found


def marker(states: ProducerStates, producer_id: int, epoch: int, timestamp: int = 2000) -> BatchHeader:
    return BatchHeader(
        build_end_marker(EndMarker(False, 0), producer_id, epoch, timestamp, base_offset=states.end_offset)
    )


@contextmanager
def refused(code: ErrorCode) -> Iterator[None]:
    with pytest.raises(KafkaError) as raised:
        yield
    assert raised.value.code is code


# -- sequences and epochs ----------------------------------------------------------------------------


@pytest.mark.parametrize("producer_id", [0, 1])
def test_a_batch_that_comes_again_is_recognised(producer_id: int) -> None:
    states = ProducerStates()
    assert append(states, header(producer_id, 0, 0, count=3)) is None

    again = append(states, header(producer_id, 0, 0, count=3))
    assert again is not None and (again.base_offset, again.last_offset) == (0, 2)
    assert states.end_offset == 3


def test_a_batch_without_a_producer_leaves_no_trace_but_its_offsets() -> None:
    states = ProducerStates()
    assert append(states, header(-1, -1, -1, count=2)) is None

    assert (len(states), states.end_offset) == (0, 2)


def test_as_many_batches_are_recognised_as_may_be_in_flight() -> None:
    states = ProducerStates()
    for sequence in range(BATCHES_REMEMBERED + 1):
        append(states, header(1, 0, sequence))

    for sequence in range(1, BATCHES_REMEMBERED + 1):
        assert append(states, header(1, 0, sequence)) is not None
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        append(states, header(1, 0, 0))


def test_a_batch_that_repeats_one_in_part_is_not_the_same() -> None:
    states = ProducerStates()
    append(states, header(1, 0, 0, count=3))

    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        append(states, header(1, 0, 1, count=2))
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        append(states, header(1, 0, 0, count=2))


def test_an_older_epoch_is_refused_though_its_sequence_is_the_next() -> None:
    states = ProducerStates()
    append(states, header(1, 1, 0))

    with refused(ErrorCode.INVALID_PRODUCER_EPOCH):
        append(states, header(1, 0, 1))
    assert append(states, header(1, 1, 1)) is None


def test_a_newer_epoch_begins_at_zero() -> None:
    states = ProducerStates()
    append(states, header(1, 0, 0, count=5))

    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        append(states, header(1, 1, 5))
    assert append(states, header(1, 1, 0)) is None
    with refused(ErrorCode.INVALID_PRODUCER_EPOCH):
        append(states, header(1, 0, 5))


def test_batches_of_an_older_epoch_are_forgotten() -> None:
    states = ProducerStates()
    append(states, header(1, 0, 0))
    append(states, header(1, 1, 0))
    state = states.get(1)
    assert state is not None and [batch.last_offset for batch in state.batches] == [1]
    assert (state.last_sequence, state.last_offset, state.producer_epoch) == (0, 1, 1)


def test_sequences_begin_again_behind_the_largest() -> None:
    states = ProducerStates()
    append(states, header(1, 0, INT32_MAX - 1, count=2))
    state = states.get(1)
    assert state is not None and state.next_sequence == 0
    assert append(states, header(1, 0, 0)) is None
    restored = ProducerState(1, 0, batch=BatchMetadata(INT32_MAX, 9, 1, 0))
    assert restored.next_sequence == 0
    assert BatchMetadata(0, 9, 1, 0).first_sequence == INT32_MAX


def test_a_producer_of_which_a_marker_is_known_alone_begins_anywhere_in_a_later_epoch() -> None:
    states = ProducerStates()
    states.apply_marker(marker(states, 1, 3), 0, aborted=False)
    state = states.get(1)
    assert state is not None
    assert (state.last_sequence, state.last_offset, state.next_sequence) == (-1, NO_OFFSET, 0)
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        append(states, header(1, 4, 7))
    assert append(states, header(1, 4, 0)) is None


def test_a_producer_without_an_epoch_may_begin_with_any_sequence() -> None:
    states = ProducerStates()
    states.reset(0, [ProducerState(1)])  # as a snapshot may hold it

    assert append(states, header(1, 0, 42)) is None


# -- transactions ------------------------------------------------------------------------------------


def open_at_zero() -> ProducerStates:
    """A transaction that began at offset 0, of producer 1 in epoch 2."""
    states = ProducerStates()
    append(states, header(1, 2, 0, transactional=True))
    return states


def test_a_transaction_is_open_from_offset_zero_on() -> None:
    states = open_at_zero()

    assert states.has_ongoing_transaction(1)
    assert not states.has_ongoing_transaction(2)
    assert states.first_undecided_offset() == states.first_unstable_offset() == 0
    assert states.check(header(1, 2, 1, transactional=True), ONGOING) is None
    assert states.start_verification(1, 1, 2, bumps_epoch=False, now_ms=0) is None
    with refused(ErrorCode.INVALID_TXN_STATE):
        states.check(header(1, 2, 1))
    assert at_once(states.expire(10**9, 1)) == []


def test_a_transaction_that_is_not_open_is_asked_for() -> None:
    states = ProducerStates()
    with refused(ErrorCode.INVALID_TXN_STATE):
        states.check(header(1, 0, 0, transactional=True), ONGOING)
    with refused(ErrorCode.INVALID_TXN_STATE):
        states.check_coordinator_batch(header(1, 0, -1, transactional=True), ONGOING)
    verification = states.start_verification(1, 0, 0, bumps_epoch=False, now_ms=0)
    assert verification is not None
    assert states.check(header(1, 0, 0, transactional=True), verification) is None
    states.check_coordinator_batch(header(1, 0, -1, transactional=True), verification)


def test_a_transaction_of_an_older_epoch_does_not_stand_for_a_newer_one() -> None:
    states = open_at_zero()

    with refused(ErrorCode.INVALID_TXN_STATE):
        states.check(header(1, 3, 0, transactional=True), ONGOING)
    assert states.start_verification(1, 0, 3, bumps_epoch=False, now_ms=0) is not None


def test_a_coordinator_s_batch_of_an_old_epoch_is_refused() -> None:
    states = open_at_zero()

    states.check_coordinator_batch(header(1, 2, -1, transactional=True), ONGOING)
    with refused(ErrorCode.INVALID_PRODUCER_EPOCH):
        states.check_coordinator_batch(header(1, 1, -1, transactional=True), NOT_REQUIRED)
    with refused(ErrorCode.INVALID_PRODUCER_EPOCH):
        states.start_verification(1, 0, 1, bumps_epoch=False, now_ms=0)


def test_a_later_batch_does_not_move_the_beginning_of_a_transaction() -> None:
    states = open_at_zero()
    append(states, header(2, 0, 0, transactional=True))
    append(states, header(1, 2, 1, transactional=True))

    completed = states.apply_marker(marker(states, 1, 2), 0, aborted=True)
    assert completed is not None
    assert (completed.first_offset, completed.last_offset, completed.aborted) == (0, 3, True)
    assert states.last_stable_offset_after(completed) == 1
    assert not states.has_ongoing_transaction(1)
    assert states.end_offset == 4
    completed = states.apply_marker(marker(states, 2, 0), 0, aborted=False)
    assert completed is not None
    assert states.last_stable_offset_after(completed) == 5


def test_a_marker_of_a_new_epoch_begins_its_sequences() -> None:
    states = open_at_zero()
    states.apply_marker(marker(states, 1, 3, 777), 9, aborted=False)
    state = states.get(1)

    assert state is not None
    assert (state.producer_epoch, state.next_sequence, len(state.batches)) == (3, 0, 0)
    assert (state.coordinator_epoch, state.last_timestamp) == (9, 777)
    assert states.apply_marker(marker(states, 1, 3), 9, aborted=False) is None  # nothing was open


def test_a_marker_of_the_same_epoch_leaves_sequences_alone() -> None:
    states = open_at_zero()
    states.apply_marker(marker(states, 1, 2), 0, aborted=False)

    assert append(states, header(1, 2, 1, transactional=True)) is None


@pytest.mark.parametrize(
    ("epoch", "version", "is_open", "code"),
    [
        (2, 1, True, None),
        (2, 2, True, ErrorCode.INVALID_PRODUCER_EPOCH),
        (2, 3, True, ErrorCode.INVALID_PRODUCER_EPOCH),
        (3, 2, True, None),
        (2, 2, False, None),  # it comes again
        (1, 0, True, ErrorCode.INVALID_PRODUCER_EPOCH),
        (1, 2, False, ErrorCode.INVALID_PRODUCER_EPOCH),
    ],
)
def test_a_marker_is_newer_than_its_data_from_version_two_on(
    epoch: int, version: int, is_open: bool, code: ErrorCode | None
) -> None:
    states = open_at_zero()
    if not is_open:
        states.apply_marker(marker(states, 1, 2), 0, aborted=False)
    if code is None:
        states.check_marker(marker(states, 1, epoch), 0, version)
        return
    with refused(code):
        states.check_marker(marker(states, 1, epoch), 0, version)


def test_at_the_end_of_all_epochs_a_marker_has_the_epoch_of_its_data() -> None:
    states = ProducerStates()
    append(states, header(1, EPOCH_MAX, 0, transactional=True))

    states.check_marker(marker(states, 1, EPOCH_MAX), 0, 2)


def test_a_coordinator_of_an_older_epoch_may_not_end_a_transaction() -> None:
    states = open_at_zero()
    states.apply_marker(marker(states, 1, 2), 5, aborted=False)

    states.check_marker(marker(states, 1, 2), 5)
    with refused(ErrorCode.TRANSACTION_COORDINATOR_FENCED):
        states.check_marker(marker(states, 1, 2), 4)


def test_a_transaction_is_unstable_until_its_marker_is_replicated() -> None:
    states = open_at_zero()
    append(states, header(2, 0, 0, transactional=True))
    states.apply_marker(marker(states, 2, 0), 0, aborted=False)  # at offset 2, of one that began at 1
    states.apply_marker(marker(states, 1, 2), 0, aborted=False)  # at offset 3

    assert states.first_undecided_offset() is None
    assert states.first_unstable_offset(2) == 0
    assert states.first_unstable_offset(3) == 0  # the marker at 2 is replicated
    append(states, header(3, 0, 0, transactional=True))
    assert states.first_unstable_offset(3) == 0
    assert states.first_unstable_offset(4) == 4  # the open one
    states.apply_marker(marker(states, 3, 0), 0, aborted=False)
    assert states.first_unstable_offset(5) == 4
    assert states.first_unstable_offset(6) is None


def test_the_oldest_of_open_and_unreplicated_transactions_is_unstable() -> None:
    states = open_at_zero()
    append(states, header(2, 0, 0, transactional=True))
    states.apply_marker(marker(states, 2, 0), 0, aborted=False)

    assert states.first_unstable_offset(0) == 0  # open since 0; the other began at 1


def test_the_oldest_transaction_tells_when_it_was_written_to() -> None:
    states = ProducerStates()
    assert states.oldest_transaction_timestamp() == -1
    append(states, header(1, 0, 0, timestamp=500, transactional=True))
    append(states, header(2, 0, 0, timestamp=900, transactional=True))
    append(states, header(1, 0, 1, timestamp=700, transactional=True))
    assert states.oldest_transaction_timestamp() == 700


# -- upkeep ------------------------------------------------------------------------------------------


def test_producers_expire_when_they_wrote_nothing_for_so_long() -> None:
    states = ProducerStates()
    append(states, header(1, 0, 0, timestamp=1000))
    append(states, header(2, 0, 0, timestamp=1001))
    states.start_verification(3, 0, 0, bumps_epoch=False, now_ms=0)

    assert at_once(states.expire(1100, 100)) == [1]
    assert states.get(1) is None and states.get(2) is not None
    assert len(states.verifications) == 0


def test_many_producers_expire_in_steps_and_those_that_write_meanwhile_stay() -> None:
    states = ProducerStates()
    for producer_id in range(PRODUCERS_A_STEP + 2):
        append(states, header(producer_id, 0, 0, timestamp=1000))
    last = PRODUCERS_A_STEP + 1

    steps = states.expire(1100, 100)
    next(steps)
    assert len(states) == 2
    append(states, header(last, 0, 1, timestamp=1050))
    append(states, header(last + 1, 0, 0, timestamp=900))
    assert at_once(steps) == list(range(last))
    assert [state.producer_id for state in states] == [last, last + 1]


def test_a_log_that_begins_later_ends_no_earlier() -> None:
    states = open_at_zero()
    states.apply_marker(marker(states, 1, 2), 0, aborted=False)

    states.advance_log_start(1)
    assert (states.end_offset, states.first_unstable_offset()) == (2, 0)
    states.advance_log_start(7)
    assert (states.end_offset, states.first_unstable_offset()) == (7, None)


def test_a_snapshot_is_all_that_is_known() -> None:
    states = open_at_zero()
    states.apply_marker(marker(states, 1, 2), 0, aborted=False)
    states.reset(
        50,
        [
            ProducerState(7, 0, txn_first_offset=40),
            ProducerState(8, 0),
            ProducerState(9, 0, txn_first_offset=0),
        ],
    )

    assert states.end_offset == 50
    assert [state.producer_id for state in states] == [7, 8, 9]
    assert states.first_unstable_offset() == states.first_undecided_offset() == 0  # in the order of offsets
    states.reset(3)
    assert (len(states), states.end_offset, states.first_unstable_offset()) == (0, 3, None)
