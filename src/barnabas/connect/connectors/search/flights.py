"""Bulk requests that are under way side by side, with the writes of one document one after the other.

In: parts of a batch in their order, and a function that sends one. Out: each part with what became of it, in
the same order. Behind a part that failed no other is sent. Does not know: requests, retries.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

from barnabas.connect.connectors.search.documents import Action

Place = tuple[str, str]
Part = TypeVar("Part")
Result = TypeVar("Result")


class Flights(Generic[Part, Result]):
    """`count` requests at most are under way. `documents` names the documents that a part writes."""

    def __init__(
        self,
        count: int,
        send: Callable[[Part], Result],
        documents: Callable[[Part], frozenset[Place]],
        is_complete: Callable[[Result], bool],
    ) -> None:
        self._count = count
        self._send = send
        self._documents = documents
        self._is_complete = is_complete
        self._pool: ThreadPoolExecutor | None = None

    def run(self, parts: Iterable[Part]) -> Iterator[Result]:
        """Results in the order of the parts. The first error is raised behind the last request that was
        under way with it; their results come before."""
        waiting: deque[tuple[frozenset[Place], Future[Result]]] = deque()
        failure: BaseException | None = None
        is_going_on = True

        def landed() -> Iterator[Result]:
            nonlocal failure, is_going_on
            try:
                found = waiting.popleft()[1].result()
            except Exception as error:
                failure, is_going_on = failure or error, False
                return
            is_going_on = is_going_on and self._is_complete(found)
            yield found

        for part in parts:
            documents = self._documents(part)
            while waiting and (
                len(waiting) >= self._count or any(not documents.isdisjoint(other) for other, _ in waiting)
            ):
                yield from landed()
            if not is_going_on:
                break
            waiting.append((documents, self._submitted(part)))
        while waiting:
            yield from landed()
        if failure is not None:
            raise failure

    def _submitted(self, part: Part) -> Future[Result]:
        if self._count > 1:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._count, "search-sink")
            return self._pool.submit(self._send, part)
        done: Future[Result] = Future()
        try:
            done.set_result(self._send(part))
        except Exception as error:
            done.set_exception(error)
        return done

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)


def places_of(actions: Iterable[Action]) -> frozenset[Place]:
    """The documents that have an id before they are written."""
    return frozenset((each.target, each.id) for each in actions if each.id is not None)
