"""A registry whose brokers are gone for a while: reads go on, writes fail in time, and both come back."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx

from barnabas.registry.service import service
from barnabas.services.app import ServiceApp
from barnabas.services.settings.loading import load_settings
from barnabas.testing import Broker
from barnabas.testing.waiting import until

from .running import is_ready

OF_THE_STORE = (50001, 50002, 50004)
TIMEOUT_MS = 1_000


async def registered(client: httpx.AsyncClient, name: str) -> Any:
    body = {"schema": f'{{"type":"fixed","name":"{name}","size":1}}'}
    response = await client.post(f"/subjects/{name}/versions", json=body)
    return response.json()


def test_reads_go_on_without_brokers_and_writes_come_back_with_them() -> None:
    async def main(broker: Broker) -> None:
        found = service(
            load_settings(
                "registry",
                overrides={
                    "kafkastore.bootstrap.servers": broker.bootstrap,
                    "kafkastore.timeout.ms": str(TIMEOUT_MS),
                    "kafkagroup.session.timeout.ms": "6000",
                    "kafkagroup.heartbeat.interval.ms": "100",
                    "listeners": "http://127.0.0.1:8081",
                },
            )
        )
        await found.start()
        transport = httpx.ASGITransport(ServiceApp(found))
        async with httpx.AsyncClient(transport=transport, base_url="http://me") as client:
            await until(lambda: is_ready(client), 30)
            assert (await registered(client, "a"))["id"] == 1
            await asyncio.to_thread(broker.stop)
            answers = await asyncio.gather(*(registered(client, f"lost{each}") for each in range(5)))
            assert all(answer["error_code"] in OF_THE_STORE for answer in answers), answers
            assert (await client.get("/schemas/ids/1")).status_code == 200
            assert (await registered(client, "a"))["id"] == 1, "what is known needs no write"
            await asyncio.to_thread(broker.start)
            async with asyncio.timeout(40):
                while "id" not in (answer := await registered(client, "b")):
                    assert answer["error_code"] in OF_THE_STORE, answer
                    await asyncio.sleep(0.05)
            assert (await client.get("/health/ready")).status_code == 200
            assert (await client.get(f"/schemas/ids/{answer['id']}")).status_code == 200
        await found.stop()

    with Broker() as broker:
        asyncio.run(main(broker))
