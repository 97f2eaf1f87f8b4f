"""A broker, and lag services over it: ours, and Apache Kafka too with --apache."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.topics import NewTopic
from barnabas.client.cluster import Cluster
from barnabas.client.core.address import parse_bootstrap
from barnabas.client.core.topology import TopicPartition
from barnabas.client.producer import NewRecord, Producer
from barnabas.monitor.lag_service.from_settings import service
from barnabas.services.app import ServiceApp
from barnabas.services.settings.loading import load_settings
from both_brokers import KEEPS_ALL, SHARES_SOON, parametrize_broker

TIMEOUT_S = 30.0
PAUSE_S = 0.05
QUICK = {
    "offset.refresh.seconds": "0.2",
    "groups.refresh.seconds": "0.5",
    "topic.refresh.seconds": "0.5",
    "commits.poll.seconds": "0.2",
    "history.interval.seconds": "0.2",
    "start.refresh.seconds": "0.5",
}
_numbers = itertools.count(1)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    parametrize_broker(metafunc)


@pytest.fixture(scope="module")
def broker(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "apache":
        yield request.getfixturevalue("apache_kafka").bootstrap
        return
    from barnabas.testing import Broker

    with Broker(in_process=False, overrides={**KEEPS_ALL, **SHARES_SOON}) as ours:
        yield ours.bootstrap


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A name that nobody used."""
    stem = re.sub(r"[^A-Za-z0-9-]+", "-", request.node.originalname)[5:45]
    return f"{stem}-{next(_numbers)}"


class World:
    """A service, what is asked of it, and the cluster that it watches."""

    def __init__(self, http: httpx.AsyncClient, cluster: Cluster) -> None:
        self.http = http
        self.cluster = cluster
        self.admin = Admin(cluster)

    async def get(self, path: str, status: int = 200) -> Any:
        response = await self.http.get(path)
        assert response.status_code == status, response.text
        return response.json()

    async def until(self, path: str, is_so: Callable[[Any], bool]) -> Any:
        """The body of a response once it is as it should be."""
        body: Any = None
        try:
            async with asyncio.timeout(TIMEOUT_S):
                while True:
                    response = await self.http.get(path)
                    body = response.json() if "json" in response.headers["content-type"] else response.text
                    if response.status_code == 200 and is_so(body):
                        return body
                    await asyncio.sleep(PAUSE_S)
        except TimeoutError:
            raise AssertionError(f"{path} did not become as expected: {body}") from None

    async def topic(self, name: str, *counts: int, at_ms: int | None = None) -> list[TopicPartition]:
        """A topic with so many records in each of its partitions."""
        await self.admin.create_topic(NewTopic(name, partitions=len(counts)))
        await self.cluster.partitions_of(name, auto_create=True)
        for partition, count in enumerate(counts):
            await self.produce(name, partition, count, at_ms=at_ms)
        return [TopicPartition(name, index) for index in range(len(counts))]

    async def produce(self, topic: str, partition: int, count: int, *, at_ms: int | None = None) -> None:
        async with Producer(self.cluster) as producer:
            records = [NewRecord(partition, None, b"x", timestamp_ms=at_ms) for _ in range(count)]
            for sent in await producer.send_all(topic, records):
                await sent  # type: ignore[misc]

    async def commit(self, group: str, at: TopicPartition, offset: int) -> None:
        assert await self.admin.alter_offsets(group, {at: offset}) == {at: None}


Use = Callable[[World], Coroutine[Any, Any, None]]
OnService = Callable[..., None]


@asynccontextmanager
async def running(settings: dict[str, str], bootstrap: str) -> AsyncIterator[World]:
    found = service(load_settings("lag", None, {**QUICK, **settings}))
    transport = httpx.ASGITransport(ServiceApp(found))
    async with Cluster(parse_bootstrap(bootstrap)) as cluster:
        await found.start()
        try:
            async with httpx.AsyncClient(transport=transport, base_url="http://lag") as http:
                yield World(http, cluster)
        finally:
            await found.stop()


@pytest.fixture
def on_service(broker: str) -> OnService:
    """Runs something with a lag service over the broker, which is the cluster `local`."""

    def run(use: Use, **settings: str) -> None:
        async def main() -> None:
            given = {name.replace("_", "."): value for name, value in settings.items()}
            if "clusters" in given:
                names = given.pop("clusters").split(",")
                given |= {f"cluster.{each}.bootstrap.servers": broker for each in names}
            else:
                given["bootstrap.servers"] = broker
            async with running(given, broker) as world:
                await use(world)

        asyncio.run(main())

    return run
