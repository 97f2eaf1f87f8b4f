import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.replication.leader_epochs import EpochEntry, LeaderEpochs


def test_an_epoch_is_noted_once() -> None:
    epochs = LeaderEpochs()
    assert epochs.assign(0, 0)
    assert not epochs.assign(0, 5)
    assert epochs.assign(2, 10)
    assert epochs.entries == [EpochEntry(0, 0), EpochEntry(2, 10)]
    assert epochs.latest_epoch == 2


def test_an_epoch_ends_where_the_next_begins() -> None:
    epochs = LeaderEpochs([(2, 10), (4, 20), (5, 30)])
    assert epochs.end_offset_for(2, 99) == (2, 20)
    assert epochs.end_offset_for(3, 99) == (2, 20)
    assert epochs.end_offset_for(4, 99) == (4, 30)
    assert epochs.end_offset_for(5, 99) == (5, 99)


def test_epochs_outside_of_the_history_have_no_end_here() -> None:
    epochs = LeaderEpochs([(2, 10), (4, 20)])
    assert epochs.end_offset_for(-1, 99) == (-1, -1)
    assert epochs.end_offset_for(5, 99) == (-1, -1)
    assert epochs.end_offset_for(1, 99) == (1, 10)
    assert LeaderEpochs().end_offset_for(0, 99) == (-1, -1)


def test_an_entry_that_contradicts_later_ones_replaces_them() -> None:
    epochs = LeaderEpochs([(1, 0), (2, 10), (3, 20)])
    assert epochs.assign(4, 5)
    assert epochs.entries == [(1, 0), (4, 5)]
    assert epochs.assign(2, 8)
    assert epochs.entries == [(1, 0), (2, 8)]
    assert epochs.assign(2, 3)
    assert epochs.entries == [(1, 0), (2, 3)]


def test_truncating_the_end_forgets_epochs_that_begin_there() -> None:
    epochs = LeaderEpochs([(1, 0), (2, 10), (3, 20)])
    assert not epochs.truncate_from_end(21)
    assert epochs.truncate_from_end(20)
    assert (epochs.entries, epochs.latest_epoch) == ([(1, 0), (2, 10)], 2)
    assert not epochs.truncate_from_end(-1)
    assert epochs.truncate_from_end(0)
    assert (epochs.entries, epochs.latest_epoch) == ([], -1)


def test_truncating_the_start_moves_the_first_epoch() -> None:
    epochs = LeaderEpochs([(1, 5), (2, 10), (3, 20)])
    assert not epochs.truncate_from_start(4)
    assert not epochs.truncate_from_start(5)
    assert epochs.truncate_from_start(7)
    assert epochs.entries == [(1, 7), (2, 10), (3, 20)]
    assert epochs.truncate_from_start(10)
    assert epochs.entries == [(2, 10), (3, 20)]
    assert epochs.truncate_from_start(99)
    assert epochs.entries == [(3, 99)]


def test_an_offset_belongs_to_the_epoch_that_wrote_it() -> None:
    epochs = LeaderEpochs([(1, 5), (3, 10)])
    assert [epochs.epoch_for(offset) for offset in (0, 5, 9, 10, 99)] == [-1, 1, 1, 3, 3]
    assert [epochs.previous_epoch(epoch) for epoch in (1, 2, 3, 4)] == [-1, 1, 1, 3]


def test_clearing_forgets_everything() -> None:
    epochs = LeaderEpochs([(1, 5)])
    epochs.clear()
    assert len(epochs) == 0 and epochs.latest_epoch == -1
    assert epochs.assign(0, 0)


@pytest.mark.parametrize("entry", [(-1, 0), (0, -1)])
def test_negative_numbers_are_refused(entry: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="cannot start"):
        LeaderEpochs([entry])


class Model:
    """The same history, kept offset by offset."""

    def __init__(self) -> None:
        self.entries: dict[int, int] = {}

    def assign(self, epoch: int, start: int) -> None:
        latest = max(self.entries, default=None)
        if latest == epoch and start >= self.entries[latest]:
            return
        self.entries = {e: s for e, s in self.entries.items() if e < epoch and s < start}
        self.entries[epoch] = start

    def truncate_from_end(self, end: int) -> None:
        self.entries = {e: s for e, s in self.entries.items() if s < end}

    def truncate_from_start(self, start: int) -> None:
        gone = [e for e, s in self.entries.items() if s <= start]
        if gone:
            last = max(gone)
            self.entries = {last: start} | {e: s for e, s in self.entries.items() if s > start}


steps = st.one_of(
    st.tuples(st.just("assign"), st.integers(0, 12), st.integers(0, 40)),
    st.tuples(st.just("truncate_from_end"), st.integers(0, 40)),
    st.tuples(st.just("truncate_from_start"), st.integers(0, 40)),
)


@given(st.lists(steps, max_size=30))
def test_any_history_agrees_with_the_model(history: list[tuple]) -> None:
    epochs, model = LeaderEpochs(), Model()
    for name, *arguments in history:
        before = epochs.entries
        changed = getattr(epochs, name)(*arguments)
        getattr(model, name)(*arguments)
        assert epochs.entries == list(model.entries.items())
        assert changed == (epochs.entries != before)
        assert epochs.latest_epoch == max(model.entries, default=-1)
        starts = [entry.start_offset for entry in epochs.entries]
        assert starts == sorted(set(starts))
