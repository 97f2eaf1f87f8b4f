"""Writes forwarded between real listeners: over HTTPS, with the caller's password, errors passed through."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from barnabas.registry.service import service
from barnabas.services.hosting.binding import bind, listener_tls
from barnabas.services.hosting.process import host_of
from barnabas.services.settings.loading import load_settings
from barnabas.testing.waiting import until
from security.tls_world import certificates

from .running import is_ready


@asynccontextmanager
async def hosted(broker: str, topic: str, users: Path) -> AsyncIterator[str]:
    """A node of the registry on a listener with HTTPS; its URL."""
    world = certificates()
    settings = load_settings(
        "registry",
        overrides={
            "kafkastore.bootstrap.servers": broker,
            "kafkastore.topic": topic,
            "kafkastore.timeout.ms": "20000",
            "schema.registry.group.id": topic,
            "kafkagroup.heartbeat.interval.ms": "100",
            "listeners": "https://127.0.0.1:0",
            "inter.instance.protocol": "https",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(world.broker_file),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(world.ca_file),
            "authentication.method": "BASIC",
            "barnabas.authentication.users.file": str(users),
            "shutdown.graceful.ms": "500",
        },
    )
    bound = bind(settings.listeners, listener_tls(settings))
    host = host_of(settings.listening_on(tuple(each.listener for each in bound)), service, bound)
    ready = asyncio.Event()
    running = asyncio.create_task(host.run(ready.set))
    waiting = asyncio.create_task(ready.wait())
    await asyncio.wait((running, waiting), return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    try:
        if running.done():
            running.result()
        yield str(bound[0].listener)
    finally:
        host.stop()
        await running


def test_a_write_on_any_node_carries_the_callers_password_to_the_primary(
    broker: str, topic: str, tmp_path: Path
) -> None:
    users = tmp_path / "users"
    users.write_text("alice: secret,admin\n")
    context = ssl.create_default_context(cafile=certificates().ca_file)

    async def main() -> None:
        async with (
            hosted(broker, topic, users) as one,
            hosted(broker, topic, users) as two,
            httpx.AsyncClient(verify=context, auth=("alice", "secret"), timeout=20) as client,
        ):
            for place in (one, two):
                await until(lambda place=place: is_ready(client, place), 30)

            async def register(place: str, schema: str, **others: Any) -> httpx.Response:
                path = "/subjects/with%2Fa%20slash/versions"
                return await client.post(f"{place}{path}", json={"schema": schema, **others})

            old = '{"type":"record","name":"R","fields":[]}'
            ids = [(await register(place, old)).json()["id"] for place in (one, two)]
            assert ids == [1, 1]
            wrong = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
            refusals = [await register(place, wrong) for place in (one, two)]
            assert [each.status_code for each in refusals] == [409, 409]
            assert refusals[0].json() == refusals[1].json()
            assert refusals[0].headers["content-type"] == refusals[1].headers["content-type"]
            new = '{"type":"record","name":"R","fields":[{"name":"a","type":"int","default":0}]}'
            assert (await register(two, new)).json()["id"] == 2
            for place in (one, two):
                assert (await client.get(f"{place}/subjects")).json() == ["with/a slash"]
            stranger = await client.post(
                f"{two}/subjects/s/versions", json={"schema": old}, auth=("bob", "x")
            )
            assert stranger.status_code == 401

    asyncio.run(main())
