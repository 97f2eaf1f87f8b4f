"""A host that takes over has the timeline, the schedule and the files of the one before."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

pytest.importorskip("cronsim", reason="needs the extra `pipeline`")

from barnabas.engine.handover import pages
from barnabas.engine.handover.run_copy import SMALL_PAGES_MAX, RunCopy, copied
from barnabas.engine.places.place import FolderPlace, Place, PlaceUnavailable, place_at
from barnabas.engine.schedule import Job, Schedule
from barnabas.engine.timeline import CurrentState, Entry, Kind, State, Timeline
from barnabas.testing.waiting import wait_until
from s3_server import s3_server

FILES = ("schedule.json", "applied.json")
NIGHTLY = Job(Kind.VIEW_BATCH, "revenue", "0 3 * * *")


@pytest.fixture(scope="module")
def object_store() -> Iterator[tuple[str, dict[str, str]]]:
    with s3_server() as found:
        yield found


@pytest.fixture(params=["folder", "object store"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "folder":
        return place_at(f"file://{tmp_path}/lake")
    url, settings = request.getfixturevalue("object_store")
    return place_at(f"{url}/{tmp_path.name}", settings)


def entry(number: int, **changes: object) -> Entry:
    made = Entry(
        Kind.SOURCE, "orders", str(number), float(number), number + 0.5, rows_in=number, delay_s=0.25
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def test_a_host_that_takes_over_has_what_the_one_before_had(place: Place, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    ran = datetime(2026, 11, 19, 3, 0, tzinfo=UTC)
    with copied(RunCopy(place, one, FILES)) as first:
        assert not first.took_over
        timeline = Timeline(one)
        for number in range(5):
            timeline.record(entry(number))
        timeline.record(entry(3, error="again"))
        timeline.set_state(Kind.SOURCE, "orders", State.WAITING, "the broker is away", 7)
        Schedule(one, [NIGHTLY]).done(NIGHTLY, ran)
        (one / "applied.json").write_text("{}")
    with copied(RunCopy(place, two, FILES)) as second:
        assert second.took_over
        assert Timeline(two).entries() == Timeline(one).entries()
        assert Timeline(two).states() == Timeline(one).states()
        assert Schedule(two, [NIGHTLY]).ran(NIGHTLY) == ran
        assert (two / "applied.json").read_text() == "{}"
        Timeline(two).record(entry(9))
        Timeline(two).forget(Kind.SOURCE, "orders")
        (two / "applied.json").write_text("[]")
    with copied(RunCopy(place, one, FILES)) as third:
        assert third.took_over
        assert [each.run for each in Timeline(one).entries()] == ["0", "1", "2", "3", "4", "9"]
        assert Timeline(one).states() == []
        assert (one / "applied.json").read_text() == "[]"


def test_a_machine_that_runs_again_keeps_what_it_has(place: Place, tmp_path: Path) -> None:
    """It was killed before its last changes were copied."""
    one, two = tmp_path / "one", tmp_path / "two"
    killed = RunCopy(place, one, FILES)
    killed.begin()
    (one / "applied.json").write_text("old")
    assert killed.push()
    (one / "applied.json").write_text("new")
    Timeline(one).record(entry(1))
    with copied(RunCopy(place, one, FILES)) as again:
        assert not again.took_over
        assert (one / "applied.json").read_text() == "new"
    RunCopy(place, two, FILES).fetch()
    assert Timeline(two).entries() == [entry(1)]
    assert not (two / "applied.json").exists()


def test_a_reader_follows_a_run_of_another_host(place: Place, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    reader = RunCopy(place, two, FILES)
    reader.fetch()
    assert not Timeline(two).path.exists()
    with copied(RunCopy(place, one, FILES), push_s=0.05):
        for number in range(3):
            Timeline(one).record(entry(number))
            Timeline(one).set_state(Kind.SOURCE, "orders", State.RUNNING, str(number))

            def is_there(number: int = number) -> bool:
                reader.fetch()
                states = [each.detail for each in Timeline(two).states()]
                return len(Timeline(two).entries()) == number + 1 and states == [str(number)]

            wait_until(is_there, 30, f"the reader sees entry {number}")


def test_entries_from_before_the_copy_and_of_many_pages_are_copied(place: Place, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    timeline = Timeline(one)
    with timeline.opened() as database:
        database.executemany(
            f"INSERT INTO timeline VALUES ({', '.join('?' * len(pages.COLUMNS))})",
            [tuple(getattr(entry(number), name) for name in pages.COLUMNS) for number in range(2500)],
        )
    copy = RunCopy(place, one)
    copy.begin()
    assert copy.push()
    timeline.record(entry(2500))
    assert copy.push() and copy.push()
    names = pages.pages_of(place.names("run/"))
    counts = [len(pages.decode_page(place.read(name) or b"")) for name in names]
    assert counts == [1000, 1000, 501]
    RunCopy(place, two).fetch()
    assert Timeline(two).entries() == timeline.entries()


def test_pages_of_many_short_runs_are_put_together(place: Place, tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    rng = random.Random(3)
    total = 2 * SMALL_PAGES_MAX + 5
    for number in range(total):
        folder = rng.choice(folders)
        with copied(RunCopy(place, folder, FILES)):
            Timeline(folder).record(entry(number))
            (folder / "applied.json").write_text(str(number))
    names = place.names("run/")
    assert len(pages.pages_of(names)) <= SMALL_PAGES_MAX + 2
    assert len(names) - len(pages.pages_of(names)) <= 4  # files of the last run
    for folder in (*folders, tmp_path / "new"):
        RunCopy(place, folder, FILES).begin()
        assert [int(each.run) for each in Timeline(folder).entries()] == list(range(total))


def test_a_host_that_lost_its_lease_writes_nothing(tmp_path: Path) -> None:
    place = FolderPlace(tmp_path / "lake")
    may_write = True
    copy = RunCopy(place, tmp_path / "one", FILES, lambda: may_write)
    copy.begin()
    assert copy.push()
    before = place.names("run/")
    may_write = False
    Timeline(tmp_path / "one").record(entry(1))
    assert not copy.push()
    assert place.names("run/") == before
    # The next run of this machine brings it.
    with copied(RunCopy(place, tmp_path / "one", FILES)):
        pass
    RunCopy(place, tmp_path / "two").fetch()
    assert Timeline(tmp_path / "two").entries() == [entry(1)]


class Failing(FolderPlace):
    """A place that does not answer for a while."""

    is_away = False

    def _check(self, name: str) -> None:
        if self.is_away:
            raise PlaceUnavailable(f"{name} cannot be used")

    def read(self, name: str) -> bytes | None:
        self._check(name)
        return super().read(name)

    def write(self, name: str, data: bytes) -> None:
        self._check(name)
        super().write(name, data)

    def names(self, folder: str) -> list[str]:
        self._check(folder)
        return super().names(folder)


def test_a_run_goes_on_while_the_lake_does_not_answer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = Failing(tmp_path / "lake")
    place.is_away = True
    with copied(RunCopy(place, tmp_path / "one", FILES)) as copy:
        Timeline(tmp_path / "one").record(entry(1))
        assert not copy.push()
        place.is_away = False
        assert copy.push()
    assert caplog.text.count("cannot be used") == 1
    RunCopy(place, tmp_path / "two").fetch()
    assert Timeline(tmp_path / "two").entries() == [entry(1)]
    place.is_away = True
    with pytest.raises(PlaceUnavailable):
        RunCopy(place, tmp_path / "two").fetch()


def test_pages_and_states_of_other_versions_and_damaged_ones() -> None:
    states = [CurrentState(Kind.SOURCE, "orders", State.IDLE, "", 1.0, 5)]
    assert pages.decode_states(pages.encode_states(states)) == states
    assert pages.decode_states(pages.encode_states(states).replace(b'"pid"', b'"later"'))[0].pid == 0
    for decode in (pages.decode_page, pages.decode_states):
        with pytest.raises(ValueError):
            decode(b"broken")
    whole = pages.encode_page([entry(1)])
    with pytest.raises(ValueError, match="no page"):
        pages.decode_page(whole[: len(whole) // 2])
    for at in range(10, len(whole) - 8):  # behind the head of the file
        damaged = whole[:at] + bytes((whole[at] ^ 0xFF,)) + whole[at + 1 :]
        with pytest.raises(ValueError):
            pages.decode_page(damaged)
