"""A follower connects to a leader while its partitions are still being taken up."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.broker.replicas import leader_fetcher
from barnabas.broker.replicas.leader_fetcher import LeaderFetcher
from barnabas.security.clients.client_security import PLAINTEXT

TOPIC_ID = b"t" * 16
LEADER_ID = 2


class SlowLink:
    """A leader's connection that completes when the test says so, and the requests sent over it."""

    made: list[SlowLink] = []

    def __init__(self, tick: Any, client_id: str, timeout_ms: int, lost: Any) -> None:
        self._lost = lost
        self.may_greet = asyncio.Event()
        self.has_greeted = self.is_closed = False
        self.asked: list[Any] = []
        SlowLink.made.append(self)

    async def greet(self, address: Any, security: Any) -> None:
        await self.may_greet.wait()
        self.has_greeted = True

    def send_request(self, request: Any, response: Any, then: Any) -> None:
        if not self.has_greeted:
            self.abort("the versions of this leader are not known")
        self.asked.append(request)

    def abort(self, reason: str) -> None:
        if not self.is_closed:
            self.is_closed = True
            self._lost(self, reason)


def followed(index: int) -> Any:
    epochs = SimpleNamespace(latest_epoch=-1)
    log = SimpleNamespace(written_offset=0, log_start_offset=0, epochs=epochs, truncation=None)
    return SimpleNamespace(topic="t", topic_id=TOPIC_ID, index=index, log=log)


def fetcher_on(loop: asyncio.AbstractEventLoop) -> LeaderFetcher:
    async def create_connection(make: Any, host: str, port: int) -> tuple[None, Any]:
        return None, make()

    settings = {
        "replica.fetch.max.bytes": 1 << 20,
        "replica.fetch.response.max.bytes": 1 << 20,
        "replica.fetch.wait.max.ms": 500,
        "replica.fetch.min.bytes": 1,
        "replica.socket.timeout.ms": 30_000,
    }
    endpoint = SimpleNamespace(host="127.0.0.1", port=1)
    brokers = {LEADER_ID: SimpleNamespace(listeners={"PLAINTEXT": endpoint})}
    broker: Any = SimpleNamespace(
        settings=Settings(settings),
        node_id=1,
        epoch=7,
        pieces=None,
        security=SimpleNamespace(to_brokers=lambda: PLAINTEXT),
        loop=SimpleNamespace(
            create_connection=create_connection,
            create_task=loop.create_task,
            call_soon=loop.call_soon,
            call_later=loop.call_later,
        ),
        image=SimpleNamespace(cluster=SimpleNamespace(brokers=brokers)),
    )
    throttle: Any = SimpleNamespace(throttled=lambda partitions: [])
    tick: Any = SimpleNamespace()
    return LeaderFetcher(broker, tick, LEADER_ID, throttle)


class Settings(dict[str, Any]):
    inter_broker_listener_name = "PLAINTEXT"


def test_a_follower_sends_no_fetch_before_it_knows_the_leaders_versions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(leader_fetcher, "LeaderLink", SlowLink)
    SlowLink.made = []

    async def run() -> None:
        fetcher = fetcher_on(asyncio.get_running_loop())
        fetcher.add(followed(0), 3)
        while not SlowLink.made:
            await asyncio.sleep(0)
        [link] = SlowLink.made
        await asyncio.sleep(0)
        fetcher.add(followed(1), 3)
        assert not link.is_closed
        link.may_greet.set()
        for _ in range(5):
            await asyncio.sleep(0)
        assert SlowLink.made == [link]
        [request] = link.asked
        assert [each.partition for each in request.topics[0].partitions] == [0, 1]
        fetcher.close()

    asyncio.run(run())


def test_a_connection_that_is_lost_right_after_the_greeting_is_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(leader_fetcher, "LeaderLink", SlowLink)
    monkeypatch.setattr(leader_fetcher, "BACKOFF_MS", 0)
    SlowLink.made = []

    async def run() -> None:
        fetcher = fetcher_on(asyncio.get_running_loop())
        fetcher.add(followed(0), 3)
        while not SlowLink.made:
            await asyncio.sleep(0)
        first = SlowLink.made[0]
        first.may_greet.set()
        first.abort("the leader closed the connection")
        while len(SlowLink.made) < 2:
            await asyncio.sleep(0)
        SlowLink.made[1].may_greet.set()
        while not SlowLink.made[1].asked:
            await asyncio.sleep(0)
        assert not first.asked
        fetcher.close()

    asyncio.run(run())


def test_a_fetcher_that_is_closed_leaves_no_connection_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leader_fetcher, "LeaderLink", SlowLink)
    SlowLink.made = []

    async def run() -> None:
        fetcher = fetcher_on(asyncio.get_running_loop())
        fetcher.add(followed(0), 3)
        while not SlowLink.made:
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        fetcher.close()
        for _ in range(5):
            await asyncio.sleep(0)
        assert [link.is_closed for link in SlowLink.made] == [True]

    asyncio.run(run())
