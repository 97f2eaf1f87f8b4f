"""A proxy with schemas in memory, and short times of groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from barnabas.client.consumers.group_consumer import OffsetReset
from barnabas.rest.application.service import RestOptions
from barnabas.rest.v2.consumers.instances import ConsumerSettings
from rest.serving import Served, serving
from rest.sources import MemorySource
from rest.v2.calling import Api

SETTINGS = ConsumerSettings(
    instances_max=8, instances_per_owner_max=8, heartbeat_interval_ms=100, reset=OffsetReset.LATEST
)


@pytest.fixture(scope="module")
def source() -> MemorySource:
    return MemorySource()


@pytest.fixture(scope="module")
def proxy(broker: str, source: MemorySource) -> Iterator[Served]:
    with serving(broker, schemas=source, options=RestOptions(SETTINGS)) as served:
        yield served


@pytest.fixture
def api(proxy: Served) -> Api:
    return Api(proxy.url)


@pytest.fixture
def consumer(api: Api, fresh_name: Callable[[], str]) -> Iterator[Callable[..., Api]]:
    """Makes consumer instances, which are deleted behind the test."""
    made: list[Api] = []

    def make(group: str | None = None, **settings: object) -> Api:
        response = api.post(f"/consumers/{group or fresh_name()}", settings)
        assert response.status_code == 200, response.text
        made.append(Api(response.json()["base_uri"]))
        return made[-1]

    yield make
    for each in made:
        each.delete("")
