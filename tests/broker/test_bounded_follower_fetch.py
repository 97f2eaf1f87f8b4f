"""A response to a follower names a bounded number of partitions, and each partition gets its turn."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.broker.fetch import follower_fetch
from barnabas.broker.fetch.follower_fetch import FollowerFetch
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.fetch import FetchResponse
from barnabas.replication.fetch_sessions import FetchSessions
from replication.test_fetch_sessions import fetch_request

VERSION = 12
NAMES = [f"topic{number}" for number in range(5)]


class Partitions:
    """Partitions of a broker that leads none of them."""

    by_name: dict[tuple[str, int], Any] = {}

    def leader(self, topic: str, index: int) -> Any:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)


def context_of() -> Any:
    broker = SimpleNamespace(
        fetch_bytes_max=1 << 20,
        partitions=Partitions(),
        image=SimpleNamespace(topics=SimpleNamespace(by_name={})),
    )
    return SimpleNamespace(broker=broker, version=VERSION)


def fetched(sessions: FetchSessions, session_id: int, epoch: int, names: list[str]) -> FetchResponse:
    request = fetch_request(session_id, epoch, dict.fromkeys(names, 0))
    session = sessions.open(request, VERSION, 0, privileged=True)
    found = FollowerFetch(request, session, context_of(), 2).response_if_ready(final=False)
    assert found is not None, "a response that leaves partitions to the next one must not wait"
    return found


def topics(response: FetchResponse) -> list[str]:
    return [topic.topic for topic in response.responses]


def test_partitions_that_a_response_has_no_room_for_are_in_the_next_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(follower_fetch, "RESULTS_MAX", 2)
    sessions = FetchSessions(10, Random(1))
    keys = [f"{name}-0" for name in NAMES]
    first = fetched(sessions, 0, 0, keys)
    assert topics(first) == NAMES  # the first response of a session names all

    later = [topics(fetched(sessions, first.session_id, epoch, [])) for epoch in (1, 2, 3)]
    assert later == [NAMES[:2], NAMES[2:4], [NAMES[4], NAMES[0]]]  # those that fail do not keep others out
