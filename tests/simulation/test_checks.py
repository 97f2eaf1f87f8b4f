"""The models of groups and transactions notice what must not be."""

import pytest

from barnabas.simulation.models.group_checks import Generations, Offsets, Ownership
from barnabas.simulation.models.transaction_checks import Epochs, Inputs, Outcome, Transactions
from barnabas.simulation.world.history import Wrong

SESSION_S = 6.0


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ownership(clock: Clock) -> Ownership:
    return Ownership("g", clock, SESSION_S)


# -- offsets -----------------------------------------------------------------------------------------


def committed(offsets: Offsets, offset: int) -> None:
    offsets.sending(0, offset)
    offsets.answered(0, offset, is_committed=True)


def test_a_committed_offset_may_not_move_back() -> None:
    offsets = Offsets("g")
    committed(offsets, 7)

    offsets.fetched(offsets.expected(), 0, 7)
    with pytest.raises(Wrong, match="7 was committed for partition 0 and 5 is found"):
        offsets.fetched(offsets.expected(), 0, 5)


def test_a_commit_that_was_refused_need_not_be_found() -> None:
    offsets = Offsets("g")
    committed(offsets, 3)
    offsets.sending(0, 9)
    offsets.answered(0, 9, is_committed=False)

    offsets.fetched(offsets.expected(), 0, 3)


def test_a_commit_without_a_response_may_arrive_late() -> None:
    offsets = Offsets("g")
    offsets.sending(0, 4)
    committed(offsets, 8)

    offsets.fetched(offsets.expected(), 0, 4)


# -- ownership ---------------------------------------------------------------------------------------


def test_a_partition_may_not_be_reassigned_while_its_owner_sends_heartbeats(
    ownership: Ownership, clock: Clock
) -> None:
    one, other = ownership.join("one"), ownership.join("other")
    ownership.assigned(one, [0])
    clock.now_s = SESSION_S - 1

    with pytest.raises(Wrong, match="given to other while one owns it"):
        ownership.assigned(other, [0])


def test_a_partition_that_was_given_up_is_free(ownership: Ownership) -> None:
    one, other = ownership.join("one"), ownership.join("other")
    ownership.assigned(one, [0, 1])

    ownership.released(one, [1])
    ownership.assigned(other, [0])

    assert (one.owned, other.owned) == ({1}, {0})


def test_a_member_that_fell_silent_may_not_come_back_as_if_nothing_was(
    ownership: Ownership, clock: Clock
) -> None:
    one, other = ownership.join("one"), ownership.join("other")
    ownership.assigned(one, [0])
    clock.now_s = SESSION_S + 1
    ownership.assigned(other, [0])

    with pytest.raises(Wrong, match="still a member"):
        ownership.good_heartbeat(one, sent_s=clock.now_s + 1, sent_epoch=1, epoch=1)
    with pytest.raises(Wrong, match="a commit of one is taken"):
        ownership.good_commit(one, sent_s=clock.now_s + 1)


def test_requests_sent_before_fencing_may_be_accepted(ownership: Ownership, clock: Clock) -> None:
    one, other = ownership.join("one"), ownership.join("other")
    ownership.assigned(one, [0])
    clock.now_s = SESSION_S + 1
    ownership.assigned(other, [0])

    ownership.good_heartbeat(one, sent_s=SESSION_S, sent_epoch=1, epoch=1)
    ownership.good_commit(one, sent_s=SESSION_S)


def test_an_epoch_may_not_go_back(ownership: Ownership) -> None:
    one = ownership.join("one")
    ownership.good_heartbeat(one, 0, 0, 5)

    with pytest.raises(Wrong, match="went back from 5 to 4"):
        ownership.good_heartbeat(one, 1, 5, 4)


# -- generations -------------------------------------------------------------------------------------


def test_two_members_may_not_own_a_partition_in_one_generation() -> None:
    generations = Generations("g")
    generations.planned(1, {"a": frozenset({0}), "b": frozenset({0})})
    generations.assigned(1, "a", "a", frozenset({0}))

    with pytest.raises(Wrong, match="a and b own partition 0 in generation 1"):
        generations.assigned(1, "b", "b", frozenset({0}))


def test_only_the_leader_s_assignment_may_be_used() -> None:
    generations = Generations("g")
    generations.planned(1, {"a": frozenset({0})})

    with pytest.raises(Wrong, match="which no leader said"):
        generations.assigned(1, "a", "a", frozenset({1}))


def test_an_old_generation_is_not_listened_to() -> None:
    generations = Generations("g")
    generations.accepted(newest_before=2, generation=2, what="a commit")

    with pytest.raises(Wrong, match="a commit of generation 1 is taken after 2"):
        generations.accepted(newest_before=2, generation=1, what="a commit")
    with pytest.raises(Wrong, match="generation 1 comes after 2"):
        generations.joined(newest_before=2, generation=1)


# -- transactions ------------------------------------------------------------------------------------


@pytest.mark.parametrize("outcome", [Outcome.OPEN, Outcome.ABORTED])
def test_records_of_uncommitted_transactions_may_not_be_read(outcome: Outcome) -> None:
    transactions = Transactions()
    transaction = transactions.begin()
    value = transaction.value("x")
    transaction.outcome = outcome

    with pytest.raises(Wrong, match="is seen, of a transaction that is"):
        transactions.saw(value)
    with pytest.raises(Wrong, match="never committed"):
        transactions.compare([value])


def test_committed_records_exist_exactly_once() -> None:
    transactions = Transactions()
    transaction = transactions.begin()
    value = transaction.value("x")
    transaction.outcome = Outcome.COMMITTED

    transactions.compare([value])
    with pytest.raises(Wrong, match="was committed and is gone"):
        transactions.compare([])
    with pytest.raises(Wrong, match="twice"):
        transactions.compare([value, value])


def test_a_transaction_whose_end_is_unknown_is_there_whole_or_not_at_all() -> None:
    transactions = Transactions()
    transaction = transactions.begin()
    values = [transaction.value("x"), transaction.value("y")]
    transaction.outcome = Outcome.COMMITTING

    transactions.compare([])
    transactions.compare(values)
    with pytest.raises(Wrong, match="in part"):
        transactions.compare(values[:1])


def test_an_older_epoch_is_not_listened_to() -> None:
    epochs = Epochs()
    epochs.given("t", (-1, -1), (1, 0))
    epochs.moved("t", (1, 3))

    epochs.accepted("t", epochs.newest("t"), (1, 3), "a batch")
    with pytest.raises(Wrong, match=r"a batch of \(1, 2\) is taken after \(1, 3\)"):
        epochs.accepted("t", epochs.newest("t"), (1, 2), "a batch")
    with pytest.raises(Wrong, match="is given out after"):
        epochs.given("t", epochs.newest("t"), (1, 3))


def test_each_input_is_processed_once() -> None:
    inputs = Inputs({0: 2})

    inputs.compare([(0, 1), (0, 0)])
    with pytest.raises(Wrong, match="processed twice"):
        inputs.compare([(0, 0), (0, 1), (0, 0)])
    with pytest.raises(Wrong, match="input 1 of partition 0 is never processed"):
        inputs.compare([(0, 0)])
