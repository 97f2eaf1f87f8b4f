"""What a channel remembers of its requests, for those that come again but for a few numbers.

In: requests that were handled the long way. Out: the next of their kind handled by a shortcut, a producer's
batch (`Shortcut`) or a follower's fetch (`FollowedTail`); False where one has to be decoded after all. A part
of `Channel`. Does not know: how requests are read, how answers leave.
"""

from __future__ import annotations

from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from barnabas.broker.fetch.followed_tail import FollowedTail
from barnabas.broker.fetch.follower_fetch import FollowerFetch

if TYPE_CHECKING:
    from barnabas.broker.api.context import RequestContext
    from barnabas.broker.api.routes import Route
    from barnabas.broker.wire.server import Listener
    from barnabas.protocol.messages.fetch import FetchRequest
    from barnabas.replication.fetch_sessions import FetchContext, SessionPartition

ENVELOPE_AT = 8  # behind api key, version and correlation id


class Remembering:
    __slots__ = ("_named_last", "_tail")

    _named_last: SessionPartition | None  # by a follower, alone
    _tail: FollowedTail | None

    if TYPE_CHECKING:  # the channel's
        _body_at: int
        _frame: memoryview
        _route: Route
        context: RequestContext
        listener: Listener

        def _handled(self, route: Route, correlation_id: int, answer: Any, started: int) -> None: ...

    def _follow_again(self, frame: memoryview, version: int, correlation_id: int) -> bool:
        """Take a follower's fetch like its last. False: decode it instead."""
        tail = self._tail
        assert tail is not None
        if version != tail.route.version:
            return False
        started = perf_counter_ns()
        session = tail.fetch(frame[ENVELOPE_AT:])
        if session is None:
            return False
        self.context.version = version
        attempt = FollowerFetch(tail.request, session, self.context, tail.follower, tail)
        answer = attempt.serve() if tail.has_news else attempt.wait()
        self._handled(tail.route, correlation_id, answer, started)
        return True

    def learn_tail(self, request: FetchRequest, session: FetchContext, follower: int) -> None:
        """Remember a follower's fetch that names the same one partition for the second time in a row."""
        named = session.named
        asked = named[0] if len(named) == 1 and not session.full else None
        before, self._named_last = self._named_last, asked
        if (
            asked is None
            or asked is not before
            or asked.attachment is None
            or asked.session is None  # named, and forgotten at once
            or self.listener.router.is_guarded
        ):
            return
        frame, route = self._frame[ENVELOPE_AT:], self._route
        head = bytes(self._frame[ENVELOPE_AT : self._body_at])
        tail = FollowedTail(self.context.broker, route, follower, request, asked, head)
        self._tail = tail if tail.stands_for(frame) else None

    def forget_shortcuts(self) -> None:
        """Every request is counted from now on."""
        self._tail = None
