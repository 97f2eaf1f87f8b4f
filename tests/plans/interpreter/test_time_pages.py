"""A page of a key covers a span of time; state that is laid out otherwise is laid out anew."""

from __future__ import annotations

import random
import struct
from dataclasses import replace
from typing import Any

import pytest

from barnabas.plans.interpreter.state.pages import KEYED, PAGED, Chunks
from barnabas.plans.interpreter.state.windows import JoinState, SessionState, WindowState
from barnabas.plans.stores import MemoryBackend, StoreKind, StoreSpec

DAY, MINUTE = 86_400_000, 60_000
KEYS = (b"", b"a", b"a\x00", b"a\x00\x00", b"a\x00\xff", b"ab", b"b", b"\x00", bytes(8), b"\xff\xff")
TWO = struct.Struct(">qq")


class Counting(MemoryBackend):
    """Counts the bytes of pages of keys that a batch reads and writes."""

    def __init__(self) -> None:
        super().__init__()
        self.moved = 0

    def get(self, store: str, key: bytes) -> bytes | None:
        found = super().get(store, key)
        self.moved += len(found or b"") if key.startswith(PAGED) else 0
        return found

    def put(self, store: str, key: bytes, page: bytes) -> None:
        self.moved += len(page) if key.startswith(PAGED) else 0
        super().put(store, key, page)


def spec(kind: StoreKind, page_ms: int) -> StoreSpec:
    return StoreSpec("s", kind, retention_ms=DAY, page_ms=page_ms)


def windows(backend: MemoryBackend, page_ms: int = 8 * MINUTE) -> WindowState:
    return WindowState(spec(StoreKind.WINDOW, page_ms), backend, bytes, bytes)


def joined(backend: MemoryBackend, page_ms: int = 8 * MINUTE) -> JoinState:
    return JoinState(spec(StoreKind.JOIN_WINDOW, page_ms), backend, bytes, bytes)


def sessions(backend: MemoryBackend, page_ms: int = 8 * MINUTE) -> SessionState:
    return SessionState(spec(StoreKind.SESSION, page_ms), backend, bytes, bytes)


def test_a_batch_moves_the_pages_of_its_windows_however_long_a_key_is_kept() -> None:
    backend = Counting()
    for minute in range(1_440):
        state = windows(backend)
        state.put(b"key", minute * MINUTE, b"value", minute)
        state.flush()
    backend.moved = 0
    state = windows(backend)
    assert state.get(b"key", 1_439 * MINUTE) == (b"value", 1_439)
    state.put(b"key", 1_439 * MINUTE, b"other", 0)
    state.flush()
    pages = [page for (_, key), page in backend.pages.items() if key.startswith(PAGED)]
    assert len(pages) == 180
    assert backend.moved < 1_000
    assert len(windows(backend).of(b"key", 0, DAY)) == 1_440


def test_keys_are_in_the_order_of_their_bytes_with_changes_of_the_batch() -> None:
    backend = MemoryBackend()
    state = windows(backend)
    for at, key in enumerate(KEYS):
        state.put(key, at * 10 * MINUTE, b"1", 0)
        state.put(key, 500 * MINUTE, b"2", 0)
        if at % 2:
            state.flush()
            state.forget()
    assert list(state.keys()) == sorted(KEYS)
    for first in (None, *KEYS):
        for last in (None, *KEYS):
            wanted = [k for k in sorted(KEYS) if (first is None or k >= first) and (last is None or k < last)]
            assert list(state.keys(first, last)) == wanted, (first, last)
    assert all(len(state.of(key, 0, DAY)) == 2 for key in KEYS)


def old_layout(backend: MemoryBackend, state: Any, key: bytes, entries: list[tuple[int, int, bytes]]) -> None:
    """Pages as versions before wrote them: all that a key has in one."""
    backend.pages["s", KEYED + key] = Chunks.write(TWO, iter(entries))


@pytest.mark.parametrize("before", [0, 3 * MINUTE, 100 * MINUTE])
def test_pages_of_another_layout_are_laid_out_anew(before: int) -> None:
    rng = random.Random(7)
    times = rng.sample(range(DAY), 300)
    made: dict[str, Any] = {"window": windows, "join": joined, "session": sessions}
    for name, make in made.items():
        old, new = MemoryBackend(), MemoryBackend()
        for backend, page_ms in ((old, before), (new, 8 * MINUTE)):
            state = make(backend, page_ms)
            state.observe(DAY - 1)
            for time in times:
                key = KEYS[time % len(KEYS)]
                if name == "window":
                    state.put(key, time, b"%d" % time, time + 5)
                elif name == "join":
                    state.put(key, b"%d" % time, time)
                else:
                    state.put(key, max(time - 1000, 0), time, b"%d" % time)
            state.flush()
        if before == 0:  # as it was before pages had a span
            merged: dict[bytes, list[tuple[int, int, bytes]]] = {}
            for (store, key), page in list(old.pages.items()):
                if key.startswith(PAGED):
                    merged.setdefault(key, []).extend(Chunks.read(TWO, page))
                    del old.pages[store, key]
                elif key == b"l":
                    del old.pages[store, key]
            for key in KEYS:
                place = next((each for each in merged if each[1:-10].replace(b"\0\xff", b"\0") == key), None)
                if place is not None:
                    old_layout(old, state, key, merged[place])
        make(old)
        assert old.pages == new.pages, name


def test_a_store_of_a_new_task_is_not_searched() -> None:
    class Refusing(MemoryBackend):
        def range(self, store: str, first: bytes | None, last: bytes | None) -> Any:
            raise AssertionError("a batch asked for a range")

    backend = Refusing()
    for make in (windows, joined, sessions):
        make(backend)
    state = windows(backend)
    state.put(b"a", 5, b"1", 0)
    state.flush()
    windows(backend)
    other = replace(state.spec, page_ms=5)
    with pytest.raises(AssertionError, match="range"):
        WindowState(other, backend, bytes, bytes)


def test_records_of_a_join_are_found_across_pages() -> None:
    state = joined(MemoryBackend(), 10)
    for time in range(100):
        state.put(b"k", b"%d" % time, time)
    for low, high in ((0, 99), (5, 15), (19, 20), (20, 29), (95, 500)):
        found = [time for time, _, _ in state.of(b"k", low, high)]
        assert found == [time for time in range(100) if low <= time <= high]


def test_sessions_are_found_by_their_end_across_pages() -> None:
    state = sessions(MemoryBackend(), 10)
    state.put(b"k", 0, 95, b"long")
    state.put(b"k", 97, 99, b"short")
    assert state.find(b"k", 50, 60) == [(0, 95, b"long")]
    assert state.find(b"k", 96, 200) == [(97, 99, b"short")]
    assert len(state.find(b"k", 0, 200)) == 2


def test_windows_that_are_too_old_go_in_portions_and_are_never_seen() -> None:
    backend = MemoryBackend()
    keys = [b"%05d" % number for number in range(5_000)]
    state = windows(backend, MINUTE)
    for key in keys:
        state.put(key, 0, b"old", 0)
    state.flush()
    left = []
    for batch in range(4):
        state = windows(backend, MINUTE)
        state.put(b"new", DAY + batch, b"new", 0)
        state.flush()
        assert state.get(keys[-1], 0) is None
        assert state.of(keys[-1], 0, DAY) == []
        left.append(sum(page[1].startswith(PAGED) for page in backend.pages) - 1)
    assert left == [3_000, 1_000, 0, 0]


def test_old_windows_do_not_pile_up_behind_large_batches() -> None:
    backend = MemoryBackend()
    state = windows(backend, MINUTE)
    for batch in range(4):
        for number in range(5_000):
            state.put(b"%d %d" % (batch, number), batch * (DAY + MINUTE), b"x", 0)
        state.flush()
    assert sum(page[1].startswith(PAGED) for page in backend.pages) == 5_000
