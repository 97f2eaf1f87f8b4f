"""Several nodes on one broker: the election, writes on every node, primaries that leave or are cut off."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from barnabas.client.cluster import Cluster
from barnabas.client.core.address import parse_bootstrap
from barnabas.client.core.errors import Unreachable
from barnabas.registry.election.forwarding import Forwarder, ForwardingSettings
from barnabas.registry.election.identity import Identity
from barnabas.registry.election.primary_changes import PrimaryChanges
from barnabas.registry.election.seat import ElectionSettings, Seat
from barnabas.registry.log.schema_log import LogSettings, SchemaLog
from barnabas.registry.log.topic import TopicSettings
from barnabas.services.errors import ApiError
from barnabas.testing import waiting

from .numbers import Numbers

PATIENCE_S = 30.0
until = partial(waiting.until, seconds=PATIENCE_S)
TIMEOUT_MS = 20_000.0


class Node:
    """A node whose API has one endpoint: it adds a number and responds with it."""

    def __init__(self, broker: str, topic: str, number: int, network: Network, **identity: Any) -> None:
        self.numbers = Numbers()
        self.cluster = Cluster(parse_bootstrap(broker))
        self.log = SchemaLog(self.cluster, LogSettings(TopicSettings(topic), TIMEOUT_MS), self.numbers)
        self.seat = Seat(
            self.cluster,
            ElectionSettings(f"group-{topic}", session_timeout_ms=6_000, heartbeat_interval_ms=100),
            Identity("http", f"node-{number}", 80, **identity),
            lambda: self.changes.election_changed(),
        )
        self.changes = PrimaryChanges(self.seat, self.log, Forwarder(ForwardingSettings(), network))
        self.app = Starlette(routes=[Route("/add/{name}", self.add, methods=["POST"])])
        network.nodes[f"node-{number}"] = self
        self.asked: list[Request] = []

    async def add(self, request: Request) -> Response:
        self.asked.append(request)
        try:
            response = await self.changes.forwarded(request)
            if response is not None:
                return response
            name = request.path_params["name"].encode()
            return JSONResponse(await self.changes.change(self.numbers.adds(name)))
        except ApiError as error:
            return JSONResponse({"error_code": error.code, "message": error.message}, error.status)

    async def start(self) -> Node:
        await self.log.start()
        self.seat.start()
        return self

    async def stop(self) -> None:
        await self.seat.stop()
        await self.changes.close()
        await self.log.stop()
        await self.cluster.close()

    async def post(self, name: str = "n", **headers: str) -> httpx.Response:
        transport = httpx.ASGITransport(self.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://me") as client:
            return await client.post(f"/add/{name}?a=%2F", content=b"body", headers=headers)


class Network(httpx.AsyncBaseTransport):
    """HTTP between nodes, without sockets."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        node = self.nodes.get(request.url.host)
        if node is None:
            raise httpx.ConnectError("nobody listens there")
        return await httpx.ASGITransport(node.app).handle_async_request(request)


def with_nodes(
    broker: str, topic: str, count: int, use: Callable[[list[Node], Network], Awaitable[None]]
) -> None:
    async def main() -> None:
        network = Network()
        nodes = [await Node(broker, topic, number, network).start() for number in range(1, count + 1)]
        await until(lambda: len({node.seat.primary for node in nodes}) == len(primaries(nodes)) == 1)
        try:
            await use(nodes, network)
        finally:
            await asyncio.gather(*(node.stop() for node in nodes))

    asyncio.run(main())


def primaries(nodes: list[Node]) -> list[Node]:
    return [node for node in nodes if node.seat.is_primary]


def test_writes_on_any_node_go_to_the_primary_and_show_on_the_node_that_was_asked(
    broker: str, topic: str
) -> None:
    async def use(nodes: list[Node], network: Network) -> None:
        for number, node in enumerate([*nodes, *nodes], 1):
            answer = await node.post(authorization="Basic secret")
            assert (answer.status_code, answer.json()) == (200, number)
            assert len(node.numbers.seen) == number, "a node shows what it has answered"
        (primary,) = primaries(nodes)
        forwarded = [request for request in primary.asked if "x-forward" in request.headers]
        assert len(forwarded) == 4
        assert forwarded[0].headers["authorization"] == "Basic secret"
        assert forwarded[0].scope["query_string"] == b"a=%2F"
        answers = await asyncio.gather(*(node.post() for node in nodes for _ in range(10)))
        assert sorted(answer.json() for answer in answers) == list(range(7, 37))

    with_nodes(broker, topic, 3, use)


def test_the_primary_stays_when_a_node_with_a_smaller_url_joins(broker: str, topic: str) -> None:
    async def use(nodes: list[Node], network: Network) -> None:
        smaller = await Node(broker, topic, 0, network).start()
        await until(lambda: smaller.seat.primary is not None and nodes[0].seat.is_primary)
        assert smaller.seat.primary is not None and smaller.seat.primary.host == "node-1"
        await smaller.stop()

    with_nodes(broker, topic, 1, use)


def test_the_next_primary_has_seen_everything_when_the_first_one_leaves(broker: str, topic: str) -> None:
    async def use(nodes: list[Node], network: Network) -> None:
        for _ in range(3):
            await nodes[0].post()
        (first,) = primaries(nodes)
        (second,) = (node for node in nodes if node is not first)
        await first.seat.stop()
        await until(lambda: second.seat.is_primary)
        assert (await second.post()).json() == 4

    with_nodes(broker, topic, 2, use)


def test_a_primary_that_is_cut_off_from_the_group_steps_down_by_its_own_clock(
    broker: str, topic: str
) -> None:
    async def use(nodes: list[Node], network: Network) -> None:
        (first,) = primaries(nodes)
        (second,) = (node for node in nodes if node is not first)
        assert (await first.post()).json() == 1

        async def cut(*_: Any) -> Any:
            raise Unreachable("cut off")

        first.seat._member._ask = cut  # type: ignore[method-assign]
        await until(lambda: second.seat.is_primary)
        assert not first.seat.is_primary
        await until(lambda: first.seat.primary is None)
        assert (await second.post()).json() == 2

    with_nodes(broker, topic, 2, use)


class StubbornSeat:
    """A node that thinks that it is the primary, whatever the group says."""

    is_primary = True

    def __init__(self) -> None:
        self.doubts: list[str] = []

    def doubt(self, reason: str) -> None:
        self.doubts.append(reason)


def test_a_node_that_wrongly_thinks_that_it_is_the_primary_is_refused_and_asks_the_group(
    broker: str, topic: str
) -> None:
    async def use(nodes: list[Node], network: Network) -> None:
        (first,) = primaries(nodes)
        (second,) = (node for node in nodes if node is not first)
        assert (await first.post()).json() == 1
        seat = StubbornSeat()
        wrong = PrimaryChanges(seat, first.log, Forwarder(ForwardingSettings()))  # type: ignore[arg-type]
        await first.seat.stop()
        await until(lambda: second.seat.is_primary)
        assert (await second.post()).json() == 2
        with pytest.raises(ApiError) as caught:
            await wrong.change(first.numbers.adds(b"n"))
        assert caught.value.code == 50004 and seat.doubts
        assert (await second.post()).json() == 3

    with_nodes(broker, topic, 2, use)


def test_a_forwarded_write_is_not_forwarded_again(broker: str, topic: str) -> None:
    async def use(nodes: list[Node], network: Network) -> None:
        (follower,) = (node for node in nodes if not node.seat.is_primary)
        answer = await follower.post(**{"x-forward": "true"})
        assert (answer.status_code, answer.json()["error_code"]) == (500, 50004)

    with_nodes(broker, topic, 2, use)


def test_a_primary_that_cannot_be_reached_is_an_error_that_names_it(broker: str, topic: str) -> None:
    async def use(nodes: list[Node], network: Network) -> None:
        (follower,) = (node for node in nodes if not node.seat.is_primary)
        network.nodes.clear()
        answer = await follower.post()
        assert (answer.status_code, answer.json()["error_code"]) == (500, 50003)
        assert "http://node-1:80" in answer.json()["message"]

    with_nodes(broker, topic, 2, use)


def test_a_forwarded_write_does_not_wait_for_a_primary_that_was_replaced(broker: str, topic: str) -> None:
    async def use(nodes: list[Node], network: Network) -> None:
        (first,) = primaries(nodes)
        second, third = (node for node in nodes if node is not first)
        asked = asyncio.Event()

        async def silence(scope: Any, receive: Any, send: Any) -> None:
            asked.set()
            await asyncio.sleep(60)

        first.app = silence  # type: ignore[assignment]
        waiting = asyncio.create_task(second.post())
        await asked.wait()
        await first.seat.stop()
        assert (await waiting).json()["error_code"] == 50003
        await until(lambda: primaries([second, third]))
        assert (await third.post()).json() == 1

    with_nodes(broker, topic, 3, use)


def test_nodes_that_are_not_eligible_elect_nobody(
    broker: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.registry.election.primary_changes.SETTLE_S", 0.1)

    async def main() -> None:
        node = await Node(broker, topic, 1, Network(), is_eligible=False).start()
        await until(lambda: node.seat.problem is None)
        assert (await node.post()).json()["error_code"] == 50004
        await node.stop()

    asyncio.run(main())


def test_two_nodes_with_one_url_have_no_primary_until_one_leaves(broker: str, topic: str) -> None:
    async def main() -> None:
        network = Network()
        one, two = [await Node(broker, topic, 1, network).start() for _ in range(2)]
        await until(lambda: one.seat.problem and "same URL" in one.seat.problem and two.seat.problem)
        assert (await one.post()).json()["error_code"] == 50004
        await two.stop()
        await until(lambda: one.seat.is_primary)
        assert (await one.post()).json() == 1
        await one.stop()

    asyncio.run(main())
