"""Bulk requests side by side: their order by document, their bound, and what happens when one fails."""

from __future__ import annotations

import threading

import pytest

from barnabas.connect.connectors.search.flights import Flights

Part = tuple[str, ...]


class Server:
    """Requests wait here until the test lets them go, and note how many are under way."""

    def __init__(self) -> None:
        self.begun: list[Part] = []
        self.most = 0
        self._now = 0
        self._lock = threading.Lock()
        self.barrier: threading.Barrier | None = None
        self.broken: set[Part] = set()

    def send(self, part: Part) -> Part:
        with self._lock:
            self.begun.append(part)
            self._now += 1
            self.most = max(self.most, self._now)
        if self.barrier is not None:
            self.barrier.wait(20)
        with self._lock:
            self._now -= 1
        if part in self.broken:
            raise ValueError(f"broken: {part}")
        return part


def flights(server: Server, count: int, *, incomplete: Part = ()) -> Flights[Part, Part]:
    return Flights(
        count,
        server.send,
        lambda part: frozenset(("index", each) for each in part),
        lambda part: part != incomplete,
    )


def test_requests_are_side_by_side_up_to_the_bound() -> None:
    server, parts = Server(), [("a",), ("b",), ("c",), ("d",)]
    server.barrier = threading.Barrier(2)  # two requests wait for each other
    running = flights(server, 2)
    assert list(running.run(parts)) == parts
    assert server.most == 2
    running.close()


def test_writes_of_one_document_follow_each_other() -> None:
    server = Server()
    parts: list[Part] = [("a", "b"), ("c",), ("b", "c"), ("a",), ("b",)]
    running = flights(server, 5)
    assert list(running.run(parts)) == parts
    for one in ("a", "b", "c"):
        assert [part for part in server.begun if one in part] == [part for part in parts if one in part]
    running.close()


@pytest.mark.parametrize("count", [1, 3])
def test_nothing_is_sent_behind_a_failure_and_what_was_under_way_is_told(count: int) -> None:
    server = Server()
    server.broken = {("a",)}
    running, found = flights(server, count), []
    with pytest.raises(ValueError, match="broken"):
        for each in running.run([("a",), ("b",), ("a", "c"), ("d",)]):
            found.append(each)
    assert found == ([] if count == 1 else [("b",)])
    assert ("a", "c") not in server.begun and ("d",) not in server.begun
    running.close()


def test_nothing_is_sent_behind_a_part_that_is_left_to_do() -> None:
    server = Server()
    running = flights(server, 1, incomplete=("b",))
    assert list(running.run([("a",), ("b",), ("c",)])) == [("a",), ("b",)]
    running.close()
