"""The copy of a run beside the data: kept by the host that works, read by the next one and by readers.

    another host's run ──> begin: timeline, states and files come here ──> push, every ten seconds ──> close

In: the folder of a run on this machine, a place that all hosts see. Out: the folder has what the last run
had, and the place gets what changes. A failure is tried again at the next push, and the run goes on. Changes
that were not copied yet when a host died are lost to the others: a job may be done twice, which is harmless.
Does not know: leases; `may_write` says whether this host still has it.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from barnabas.engine.handover import pages
from barnabas.engine.handover.ledger import Ledger
from barnabas.engine.places.place import Place, PlaceUnavailable
from barnabas.engine.timeline import ENTRIES_MAX, CurrentState, Entry, Timeline, TimelineError

PUSH_S = 10.0
SMALL_PAGES_MAX = 32  # pages of few entries that runs leave behind, before they are put together
SMALL_ENTRIES = pages.PAGE_ENTRIES // 2
PAGES_MAX = ENTRIES_MAX // pages.PAGE_ENTRIES + 2 * SMALL_PAGES_MAX  # older pages are deleted
FAILURES = (PlaceUnavailable, TimelineError, OSError, ValueError)
LOG = logging.getLogger(__name__)


class RunCopy:
    """`files` are names in the folder, which are copied when they change."""

    def __init__(
        self,
        place: Place,
        folder: Path,
        files: Sequence[str] = (),
        may_write: Callable[[], bool] = lambda: True,
    ) -> None:
        self._place = place
        self._folder = folder
        self._files = tuple(files)
        self._may_write = may_write
        self._timeline = Timeline(folder)
        self._run = 0  # the number of our run; 0 until it has begun
        self._mark = ""
        self._is_begun = False  # the place knows of our run
        self._page = 1
        self._of_page: list[Entry] = []
        self._names: list[str] = []  # pages of all runs
        self._obsolete: list[str] = []  # deleted when everything of them is copied anew
        self._written: dict[str, bytes] = {}
        self._states: list[CurrentState] | None = None
        self._has_failed = False
        self.took_over = False  # the last run was another machine's

    # -- reading -----------------------------------------------------------------------------------

    def fetch(self) -> None:
        """Bring the timeline here up to date, for a reader. PlaceUnavailable, TimelineError, ValueError."""
        names = self._place.names(f"{pages.FOLDER}/")
        newest = pages.newest_run(names)
        if newest:
            self._pull(Ledger(self._timeline), names, newest, grows=pages.file_name(newest, ""))

    def _pull(self, ledger: Ledger, names: Sequence[str], newest: int, grows: str) -> bool:
        """Read pages that are not here, and the states of the newest run; whether that was another host's.
        Pages whose names begin with `grows` are not complete yet."""
        if self._place.read(pages.file_name(newest, pages.OWNER)) == ledger.owner.encode():
            return False
        held = ledger.held_pages()
        there = pages.pages_of(names)
        for name in there:
            data = None if name in held else self._place.read(name)
            if data is not None:
                is_complete = not grows or not name.startswith(grows)
                ledger.add_page(name, pages.decode_page(data), is_complete=is_complete)
        ledger.forget_pages(held.keys() - set(there))
        states = self._place.read(pages.file_name(newest, pages.STATES))
        if states is not None:
            ledger.replace_states(pages.decode_states(states))
        return True

    # -- a run of this host ------------------------------------------------------------------------

    def begin(self) -> None:
        """Take over what the last run left, and begin a run of our own. Failures are logged."""
        with self._tried("what the last run left cannot be read"):
            names = self._place.names(f"{pages.FOLDER}/")
            newest = pages.newest_run(names)
            ledger = Ledger(self._timeline)
            self.took_over = bool(newest) and self._pull(ledger, names, newest, grows="")
            if self.took_over:
                for each in self._files:
                    data = self._place.read(pages.file_name(newest, each))
                    if data is not None:
                        replace(self._folder / each, data)
            self._begin_run(ledger, names, newest + 1)

    def _begin_run(self, ledger: Ledger, names: Sequence[str], run: int) -> None:
        self._names = pages.pages_of(names)
        self._obsolete = pages.files_before(names, run)
        held = ledger.held_pages()
        small = [name for name in self._names if held.get(name, pages.PAGE_ENTRIES) < SMALL_ENTRIES]
        if len(small) > SMALL_PAGES_MAX:
            for name in small:
                data = self._place.read(name)
                ledger.send_again(pages.decode_page(data) if data is not None else ())
            self._names = [name for name in self._names if name not in set(small)]
            self._obsolete += small
        self._mark = uuid.uuid4().hex
        ledger.owner = self._mark
        self._run = run

    def push(self) -> bool:
        """Copy what changed; whether everything is copied."""
        with self._tried("the run cannot be copied beside the data"):
            if not self._may_write():
                return False
            ledger = Ledger(self._timeline)
            if not self._run:
                names = self._place.names(f"{pages.FOLDER}/")
                self._begin_run(ledger, names, pages.newest_run(names) + 1)
            if not self._is_begun:
                self._place.write(pages.file_name(self._run, pages.OWNER), self._mark.encode())
                self._is_begun = True
            self._push_files()
            self._push_entries(ledger)
            self._push_states()
            for name in self._obsolete:
                self._place.delete(name)
            ledger.forget_pages(self._obsolete)
            self._obsolete = []
            self._has_failed = False
            return True
        return False

    def _push_files(self) -> None:
        for each in self._files:
            try:
                data = (self._folder / each).read_bytes()
            except FileNotFoundError:
                continue
            if self._written.get(each) != data:
                self._place.write(pages.file_name(self._run, each), data)
                self._written[each] = data

    def _push_entries(self, ledger: Ledger) -> None:
        while True:
            found = ledger.unsent(pages.PAGE_ENTRIES - len(self._of_page))
            if not found.place:
                return
            name = pages.page_name(self._run, self._page)
            of_page = [*self._of_page, *found.entries]
            if found.entries:
                self._place.write(name, pages.encode_page(of_page))
                ledger.note_page(name, len(of_page))
            ledger.note_sent(found.place)
            self._of_page = of_page
            if of_page and name not in self._names[-1:]:
                self._names.append(name)
                self._delete_oldest(ledger)
            if len(of_page) >= pages.PAGE_ENTRIES:
                self._page, self._of_page = self._page + 1, []

    def _delete_oldest(self, ledger: Ledger) -> None:
        old = self._names[: max(0, len(self._names) - PAGES_MAX)]
        for name in old:
            self._place.delete(name)
        ledger.forget_pages(old)
        self._names = self._names[len(old) :]

    def _push_states(self) -> None:
        states = self._timeline.states()
        if states != self._states:
            self._place.write(pages.file_name(self._run, pages.STATES), pages.encode_states(states))
            self._states = states

    @contextmanager
    def _tried(self, what: str) -> Iterator[None]:
        """Log a failure of the block, once until it succeeds."""
        try:
            yield
        except FAILURES as error:
            log = LOG.debug if self._has_failed else LOG.warning
            self._has_failed = True
            log("%s: %s. It is tried again", what, error)


def replace(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.fetched")
    beside.write_bytes(data)
    beside.replace(path)


@contextmanager
def copied(copy: RunCopy, push_s: float = PUSH_S) -> Iterator[RunCopy]:
    """Take over what the last run left; copy this one in a thread, and a last time at the end."""
    copy.begin()
    copy.push()
    ending = threading.Event()

    def work() -> None:
        while not ending.wait(push_s):
            copy.push()

    thread = threading.Thread(target=work, name="run-copy", daemon=True)
    thread.start()
    try:
        yield copy
    finally:
        ending.set()
        thread.join()
        copy.push()
