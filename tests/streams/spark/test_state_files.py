"""The state of a task stands at the version that the brokers committed, whatever died."""

import random
import sqlite3
from pathlib import Path

import pytest

from barnabas.streams.spark import kept_pages, state_files
from barnabas.streams.spark.state_files import NEW, STEPS_MAX, StateFile, StateLost


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "application" / "0_1.sqlite"


def committed(path: Path, version: str = "one") -> StateFile:
    state = StateFile(path)
    state.settle(NEW)
    state.put("counts", b"a", b"1")
    state.put("counts", b"b", b"2")
    state.prepare(version)
    state.commit(version)
    return state


def test_a_committed_batch_is_there_after_a_restart(path: Path) -> None:
    committed(path).close()
    again = StateFile(path)
    again.settle("one")
    assert (again.get("counts", b"a"), again.get("counts", b"z")) == (b"1", None)


def test_changes_of_a_batch_that_was_not_committed_are_gone(path: Path) -> None:
    state = committed(path)
    state.put("counts", b"a", b"7")
    state.prepare("two")
    state.close()
    again = StateFile(path)
    again.settle("one")
    assert again.get("counts", b"a") == b"1"


def test_a_batch_that_died_after_its_commit_is_applied(path: Path) -> None:
    state = committed(path)
    state.put("counts", b"a", b"7")
    state.delete("counts", b"b")
    state.prepare("two")
    state.close()
    again = StateFile(path)
    again.settle("two")
    assert list(again.range("counts", None, None)) == [(b"a", b"7")]
    again.settle("two")


def test_of_two_attempts_the_committed_one_counts(path: Path) -> None:
    first, second = committed(path), StateFile(path)
    second.settle("one")
    first.put("counts", b"a", b"first")
    first.prepare("two-first")
    second.put("counts", b"a", b"second")
    second.prepare("two-second")
    third = StateFile(path)
    third.settle("two-first")
    assert third.get("counts", b"a") == b"first"


def test_memory_of_an_older_version_is_not_used(path: Path) -> None:
    here, there = committed(path), StateFile(path)
    assert here.get("counts", b"a") == b"1"
    there.settle("one")
    there.put("counts", b"a", b"9")
    there.prepare("two")
    there.commit("two")
    here.settle("two")
    assert here.get("counts", b"a") == b"9"


def test_a_version_that_cannot_be_reached_is_an_error(path: Path) -> None:
    state = committed(path)
    with pytest.raises(StateLost, match="stands at version one, committed is nine"):
        state.settle("nine")
    state.clear("nine")
    state.settle("nine")
    assert list(state.range("counts", None, None)) == []


def test_a_range_shows_the_batchs_own_changes_in_order(path: Path) -> None:
    state = committed(path)
    state.put("counts", b"aa", b"new")
    state.delete("counts", b"b")
    state.put("other", b"ab", b"not here")
    assert list(state.range("counts", None, None)) == [(b"a", b"1"), (b"aa", b"new")]
    assert list(state.range("counts", b"aa", b"b")) == [(b"aa", b"new")]


def test_only_steps_of_batches_that_read_ranges_go_to_the_table_at_once(path: Path) -> None:
    state = committed(path)

    def batch(number: int) -> int:
        state.put("counts", b"n", b"%d" % number)
        state.prepare(str(number))
        state.commit(str(number))
        return len(state._db.execute("SELECT 1 FROM steps").fetchall())

    assert batch(1) == 2
    assert list(state.range("counts", None, b"b")) == [(b"a", b"1")]
    assert [batch(2), batch(3), batch(4)] == [0, 1, 2]


def test_two_processes_that_take_turns_see_each_others_batches(path: Path) -> None:
    turns = [committed(path), StateFile(path)]
    for number in range(2, 50):  # longer than steps wait
        state = turns[number % 2]
        state.settle("one" if number == 2 else str(number - 1))
        assert state.get("counts", b"n") == (None if number == 2 else str(number - 1).encode())
        assert state.get("counts", b"a") == b"1"
        state.put("counts", b"n", str(number).encode())
        state.prepare(str(number))
        state.commit(str(number))
    for state in (*turns, StateFile(path)):
        state.settle("49")
        assert list(state.range("counts", None, None)) == [(b"a", b"1"), (b"b", b"2"), (b"n", b"49")]


def test_steps_that_another_process_wrote_are_not_written_again(path: Path) -> None:
    here, there = committed(path), StateFile(path)

    def batch(state: StateFile, version: str, number: int) -> str:
        state.settle(version)
        state.put("counts", b"n", b"%d" % number)
        state.prepare(str(number))
        state.commit(str(number))
        return str(number)

    version = "one"
    for number in range(STEPS_MAX - 1):  # here keeps as many steps as it may
        version = batch(here, version, number)
    there.settle(version)
    assert dict(there.range("counts", None, None))[b"n"] == version.encode()
    there.drop_changes()  # its batch failed
    for number in range(STEPS_MAX, 3 * STEPS_MAX):
        version = batch(here, version, number)
        fresh = StateFile(path)
        fresh.settle(version)
        assert fresh.get("counts", b"n") == version.encode()
        table = sqlite3.connect(path).execute("SELECT page FROM pages WHERE key = ?", (b"n",)).fetchone()
        assert int(table[0]) >= STEPS_MAX - 2, "an older page has replaced a newer one"
        fresh.close()


class FullDisk:
    """The connection of a state file whose next COMMIT fails."""

    def __init__(self, db: sqlite3.Connection, *, rolls_back: bool) -> None:
        self._db, self._rolls_back = db, rolls_back
        self.is_full = True

    def __getattr__(self, name: str) -> object:
        return getattr(self._db, name)

    def execute(self, sql: str, *values: object) -> object:
        if sql == "COMMIT" and self.is_full:
            self.is_full = False
            if self._rolls_back:
                self._db.execute("ROLLBACK")
            raise sqlite3.OperationalError("database or disk is full")
        return self._db.execute(sql, *values)


@pytest.mark.parametrize("rolls_back", [False, True])
def test_a_disk_that_is_full_at_the_commit_loses_no_step(path: Path, rolls_back: bool) -> None:
    state = committed(path)
    version = "one"
    for number in range(3 * STEPS_MAX):
        state.settle(version)
        state.put("counts", b"n", b"%d" % number)
        state.put("counts", b"only %d" % number, b"1")
        version = str(number)
        state.prepare(version)
        if number == 2 * STEPS_MAX:
            db = state._db
            state._db = FullDisk(db, rolls_back=rolls_back)  # type: ignore[assignment]
            with pytest.raises(sqlite3.OperationalError, match="full"):
                state.commit(version)
            state._db = db
        else:
            state.commit(version)
    again = StateFile(path)
    again.settle(version)
    found = dict(again.range("counts", None, None))
    assert found[b"n"] == version.encode()
    assert [key for key in found if key.startswith(b"only")] == sorted(
        b"only %d" % each for each in range(3 * STEPS_MAX)
    )


def test_changes_of_a_batch_are_kept_in_parts(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_files, "PART_BYTES", 1_000)
    state = committed(path)
    expected: dict[bytes, bytes | None] = {b"a": b"1", b"b": b"2"}
    for at in range(100):
        page = None if at % 7 == 0 else b"x" * 100
        expected[b"%d" % at] = page
        state.put("counts", b"%d" % at, page) if page else state.delete("counts", b"%d" % at)
    state.prepare("two")
    sizes = state._db.execute("SELECT length(changes) FROM parts WHERE version = 'two'").fetchall()
    assert len(sizes) > 5
    assert max(size for (size,) in sizes) < 2_000
    state.prepare("two")  # again, as after a commit whose response was lost
    for opened in (StateFile(path), StateFile(path)):
        opened.settle("two")
        assert opened.get_many("counts", list(expected)) == list(expected.values())


def test_memory_is_bounded_by_bytes_and_what_a_batch_uses_stays(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_pages, "PAGES_BYTES_MAX", 1_000_000)
    monkeypatch.setattr(state_files, "BYTES_WAITING_MAX", 100_000)
    state = committed(path)
    version, hot = "one", [b"hot %d" % each for each in range(20)]
    for number in range(300):
        state.settle(version)
        if number > 1:  # no page that each batch uses is read again
            assert state._memory.missing("counts", hot) == []
            assert state._memory.weight < 1_300_000
        for key in hot:
            state.put("counts", key, b"%d" % number)
        state.put("counts", b"cold %d" % number, b"x" * 20_000)
        state.get("counts", b"not there %d" % number)
        version = str(number)
        state.prepare(version)
        state.commit(version)
    assert state._db.execute("SELECT sum(length(changes)) FROM parts").fetchone()[0] < 150_000
    for opened in (state, StateFile(path)):
        opened.settle(version)
        assert opened.get_many("counts", hot) == [b"299"] * len(hot)
        assert opened.get("counts", b"cold 0") == b"x" * 20_000


def test_pages_that_no_batch_uses_are_dropped(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_pages, "BATCHES_A_GENERATION", 5)
    state = committed(path)
    version = "one"
    for number in range(STEPS_MAX + 20):
        state.settle(version)
        state.put("counts", b"used", b"%d" % number)
        version = str(number)
        state.prepare(version)
        state.commit(version)
    assert state._memory.missing("counts", [b"a", b"used"]) == [b"a"]
    assert state.get("counts", b"a") == b"1"


def test_a_file_of_an_earlier_version_is_read(path: Path) -> None:
    state = committed(path)
    state.put("counts", b"a", b"7")
    state.prepare("two")
    state.close()
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("CREATE TABLE prepared (version TEXT PRIMARY KEY, changes BLOB NOT NULL)")
    db.execute("INSERT INTO prepared SELECT version, changes FROM parts")
    db.execute("DROP TABLE parts")
    db.close()
    for _ in range(2):
        again = StateFile(path)
        again.settle("two")
        assert again.get_many("counts", [b"a", b"b"]) == [b"7", b"2"]
        again.close()


@pytest.mark.parametrize("bytes_max", [None, 1_500])
def test_random_batches_of_several_processes_give_what_one_dict_gives(
    path: Path, bytes_max: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if bytes_max is not None:  # generations come and go with each few pages
        monkeypatch.setattr(kept_pages, "PAGES_BYTES_MAX", bytes_max)
        monkeypatch.setattr(state_files, "BYTES_WAITING_MAX", 2 * bytes_max)
        monkeypatch.setattr(state_files, "PART_BYTES", 3)
    for seed in range(5):
        rng = random.Random(seed)
        file = path.with_name(f"{seed}.sqlite")
        states = [StateFile(file) for _ in range(3)]
        model: dict[bytes, bytes] = {}
        version = NEW
        for number in range(150):
            at = rng.randrange(3)
            if rng.random() < 0.1:
                states[at].close()
                states[at] = StateFile(file)  # its process began anew
            state = states[at]
            state.settle(version)
            keys = [b"%d" % rng.randrange(12) for _ in range(4)]
            assert state.get_many("s", keys) == [model.get(key) for key in keys]
            changes = {key: None if rng.random() < 0.3 else b"%d" % number for key in keys}
            for key, page in changes.items():
                if page is None:
                    state.delete("s", key)
                else:
                    state.put("s", key, page)
            if rng.random() < 0.2:
                state.drop_changes()
                continue
            version = str(number)
            state.prepare(version)
            if rng.random() < 0.8:  # else its process dies after the commit of the brokers
                state.commit(version)
            model = {key: page for key, page in (model | changes).items() if page is not None}
            if rng.random() < 0.05:
                other = states[rng.randrange(3)]  # reads a range without a commit behind it
                other.settle(version)
                assert dict(other.range("s", None, None)) == model
                other.drop_changes()
        state = StateFile(file)
        state.settle(version)
        assert dict(state.range("s", None, None)) == model


def test_only_the_last_page_of_a_key_goes_to_the_table(path: Path) -> None:
    state = StateFile(path)
    version = NEW
    for number in range(3 * STEPS_MAX):
        state.settle(version)
        state.put("counts", b"often", b"%d" % number)
        state.put("counts", b"once %03d" % number, b"1")
        version = str(number)
        state.prepare(version)
        state.commit(version)
    table = sqlite3.connect(path)
    keys = [key for (key,) in table.execute("SELECT key FROM pages ORDER BY key")]
    assert keys == [b"once %03d" % number for number in range(2 * STEPS_MAX)]
    assert table.execute("SELECT count(DISTINCT version) FROM parts").fetchone() == (STEPS_MAX,)
