"""The shortcut of one connection for a follower that fetches the same partition again and again.

In: `learn` gets fetches that were decoded, `serve` gets the bytes of later ones. Out: `serve` serves a fetch
that differs from the last in its offsets alone, without decoding it. For any other fetch it returns False and
changes nothing. A channel creates this object when a follower sends its first fetch.
Does not know: how requests are read, how responses are sent.
"""

from __future__ import annotations

from time import perf_counter_ns
from typing import TYPE_CHECKING

from barnabas.broker.fetch.followed_tail import FollowedTail
from barnabas.broker.fetch.follower_fetch import FollowerFetch

if TYPE_CHECKING:
    from barnabas.broker.api.routes import Route
    from barnabas.broker.wire.channel import Channel
    from barnabas.protocol.messages.fetch import FetchRequest
    from barnabas.replication.fetch_sessions import FetchContext, SessionPartition

CLIENT_ID_AT = 8  # behind api key, version and correlation id


class FollowerShortcut:
    """`tail` is None while there is no fetch to repeat."""

    __slots__ = ("_channel", "_last_named", "tail")

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._last_named: SessionPartition | None = None  # the one partition that the last fetch named
        self.tail: FollowedTail | None = None

    def serve(self, frame: memoryview, version: int, correlation_id: int) -> bool:
        """Serve a fetch like the last one. Returns False if it has to be decoded."""
        tail = self.tail
        assert tail is not None
        route = tail.route
        if version != route.version:
            return False
        started = perf_counter_ns()
        session = tail.fetch(frame[CLIENT_ID_AT:])
        if session is None:
            return False
        channel = self._channel
        context = channel.context
        context.version = version
        attempt = FollowerFetch(tail.request, session, context, tail.follower, tail)
        result = attempt.serve() if tail.has_news else attempt.wait()
        channel.accept_result(route, correlation_id, result, started)
        return True

    def learn(
        self,
        request: FetchRequest,
        session: FetchContext,
        follower: int,
        route: Route,
        frame: memoryview,
        body_at: int,
    ) -> None:
        """Remember a fetch that names one partition, the same as the fetch before. `body_at` is where the
        request's body begins in the frame."""
        named = session.named
        asked = named[0] if len(named) == 1 and not session.full else None
        before, self._last_named = self._last_named, asked
        if (
            asked is None
            or asked is not before
            or asked.attachment is None
            or asked.session is None  # the request named it and removed it from the session
            or self._channel.listener.router.is_guarded
        ):
            return
        head = bytes(frame[CLIENT_ID_AT:body_at])
        tail = FollowedTail(self._channel.context.broker, route, follower, request, asked, head)
        self.tail = tail if tail.matches_request(frame[CLIENT_ID_AT:]) else None
