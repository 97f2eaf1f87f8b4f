"""The lag service over a real broker: Burrow's API, our own, and where commits come from."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from barnabas.client.consumers.share_consumer import ShareConsumer, ShareConsumerSettings
from barnabas.client.core.topology import TopicPartition

from .conftest import TIMEOUT_S, OnService, World

HOUR_MS = 3_600_000
COMMIT_S = 0.1


@asynccontextmanager
async def committing(world: World, group: str, at: TopicPartition, *offsets: int) -> AsyncIterator[None]:
    """Commits these offsets one after another, and the last of them again and again."""

    async def commit() -> None:
        for offset in offsets:
            await world.commit(group, at, offset)
            await asyncio.sleep(COMMIT_S)
        while True:
            await world.commit(group, at, offsets[-1])
            await asyncio.sleep(COMMIT_S)

    task = asyncio.create_task(commit())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def status_path(group: str) -> str:
    return f"/v3/kafka/local/consumer/{group}/lag"


def has(status: str, partition: str) -> Any:
    def is_so(body: Any) -> bool:
        found = body["status"]
        return found["status"] == status and found["partitions"][0]["status"] == partition

    return is_so


@pytest.mark.parametrize("source", ["topic", "protocol"])
def test_a_group_that_has_read_everything_is_ok(on_service: OnService, name: str, source: str) -> None:
    async def use(world: World) -> None:
        [at] = await world.topic(f"{name}-{source}", 10)
        await world.commit(f"{name}-{source}", at, 10)
        body = await world.until(status_path(f"{name}-{source}"), has("OK", "OK"))
        found = body["status"]
        assert (body["error"], body["message"]) == (False, "consumer status returned")
        assert body["request"]["url"] == status_path(f"{name}-{source}")
        assert (found["totallag"], found["partition_count"], found["maxlag"]["current_lag"]) == (0, 1, 0)
        assert found["partitions"][0]["end"]["offset"] == 10

    on_service(use, commits_source=source)


def test_a_group_that_commits_the_same_offset_is_stalled(on_service: OnService, name: str) -> None:
    async def use(world: World) -> None:
        [at] = await world.topic(name, 10)
        async with committing(world, name, at, 4):
            body = await world.until(status_path(name), has("ERR", "STALL"))
        assert body["status"]["totallag"] == 6

    on_service(use, intervals="3")


def test_a_group_that_is_silent_has_stopped(on_service: OnService, name: str) -> None:
    async def use(world: World) -> None:
        [at] = await world.topic(name, 10)
        await world.commit(name, at, 4)
        await world.commit(name, at, 5)
        await world.until(status_path(name), has("ERR", "STOP"))

    on_service(use)


def test_a_group_that_went_back_is_rewound_until_it_is_there_again(on_service: OnService, name: str) -> None:
    async def use(world: World) -> None:
        [at] = await world.topic(name, 30)
        async with committing(world, name, at, 10, 20, 5):
            await world.until(status_path(name), has("ERR", "REWIND"))

    on_service(use)


def test_a_group_whose_lag_never_shrinks_is_warned_of(on_service: OnService, name: str) -> None:
    async def use(world: World) -> None:
        [at] = await world.topic(name, 20)
        path = status_path(name)
        for offset in range(1, 5):  # each commit sees an end that moved as far as the group did
            await world.commit(name, at, offset)
            want = offset

            def seen(body: Any, want: int = want) -> bool:
                return body["status"]["partitions"][0]["end"]["offset"] == want

            await world.until(path, seen)
            await world.produce(name, 0, 2)
            await world.until(
                f"/v3/kafka/local/topic/{name}", lambda body, want=want: body["offsets"] == [20 + 2 * want]
            )
        async with committing(world, name, at, 5, 6, 7):
            await world.until(path, has("WARN", "WARN"))

    on_service(use, intervals="4")


def test_only_partitions_that_are_not_ok_are_in_a_status(on_service: OnService, name: str) -> None:
    async def use(world: World) -> None:
        first, second = await world.topic(name, 10, 10)
        await world.commit(name, first, 10)
        await world.commit(name, second, 3)
        await world.commit(name, second, 3)
        path = f"/v3/kafka/local/consumer/{name}/status"
        body = await world.until(path, lambda body: body["status"]["status"] == "ERR")
        assert [each["partition"] for each in body["status"]["partitions"]] == [1]
        assert body["status"]["partition_count"] == 2

    on_service(use)


def test_lists_and_details_have_burrows_bodies(on_service: OnService, name: str) -> None:
    async def use(world: World) -> None:
        first, _ = await world.topic(name, 10, 5)
        await world.until(f"/v3/kafka/local/topic/{name}", lambda body: body["offsets"] == [10, 5])
        await world.commit(name, first, 4)
        await world.until(status_path(name), lambda body: body["status"]["totallag"] == 6)
        base = "/v3/kafka/local"
        assert "local" in (await world.get("/v3/kafka"))["clusters"]
        assert name in (await world.get(f"{base}/topic"))["topics"]
        assert (await world.get(f"{base}/topic/{name}"))["offsets"] == [10, 5]
        assert (await world.get(f"{base}/topic/{name}/consumers"))["consumers"] == [name]
        assert name in (await world.get(f"{base}/consumer"))["consumers"]
        topics = (await world.get(f"{base}/consumer/{name}"))["topics"]
        committed, other = topics[name]
        assert committed["offsets"][:9] == [None] * 9
        assert (committed["offsets"][9]["offset"], committed["offsets"][9]["lag"]) == (4, 6)
        assert (committed["current-lag"], committed["owner"]) == (6, "")
        assert other == {"offsets": [], "owner": "", "client_id": "", "current-lag": 0}
        module = (await world.get(base))["module"]
        assert (module["class-name"], module["client-profile"]["tls"]) == ("kafka", None)

    on_service(use)


def test_unknown_things_have_burrows_errors(on_service: OnService, name: str) -> None:
    async def use(world: World) -> None:
        for path, message in (
            ("/v3/kafka/none", "cluster module not found"),
            ("/v3/kafka/none/topic", "cluster not found"),
            ("/v3/kafka/none/consumer", "cluster not found"),
            (f"/v3/kafka/local/topic/{name}", "cluster or topic not found"),
            (f"/v3/kafka/local/consumer/{name}", "cluster or consumer not found"),
            ("/v3/config/storage/none", "storage module not found"),
            ("/v3/config/notifier/none", "notifier module not found"),
        ):
            body = await world.get(path, 404)
            assert (body["error"], body["message"], body["request"]["url"]) == (True, message, path)
        body = await world.get(status_path(name), 404)
        assert (body["error"], body["status"]["status"]) == (False, "NOTFOUND")
        assert (body["status"]["maxlag"], body["status"]["partitions"]) == (None, [])
        unknown = {"error": True, "message": "invalid request type", "result": {}}
        for path in ("/v2/kafka", "/v3/config/none", "/"):
            assert await world.get(path, 404) == unknown

    on_service(use)


def test_a_group_that_is_removed_comes_back_with_its_next_commit(on_service: OnService, name: str) -> None:
    async def use(world: World) -> None:
        [at] = await world.topic(name, 10)
        await world.commit(name, at, 4)
        path = f"/v3/kafka/local/consumer/{name}"
        await world.until(path, lambda body: True)
        response = await world.http.delete(path)
        assert (response.status_code, response.json()["message"]) == (200, "consumer group removed")
        await world.get(path, 404)
        await world.commit(name, at, 7)
        body = await world.until(path, lambda body: True)
        assert [each["offset"] for each in body["topics"][name][0]["offsets"] if each] == [7]

    on_service(use, groups_refresh_seconds="600")


def test_the_level_of_the_log_is_told_and_changed(on_service: OnService) -> None:
    async def use(world: World) -> None:
        path = "/v3/admin/loglevel"
        for level, status, message in (
            ("debug", 200, "set log level"),
            ("loud", 404, "unknown log level"),
            ("warning", 200, "set log level"),
        ):
            response = await world.http.post(path, json={"level": level})
            assert (response.status_code, response.json()["message"]) == (status, message)
        assert (await world.get(path))["level"] == "warn"
        assert (await world.http.post(path, content=b"{")).status_code == 400
        await world.http.post(path, json={"level": "info"})

    on_service(use)


def test_a_service_is_ready_once_everything_is_read(on_service: OnService) -> None:
    async def use(world: World) -> None:
        assert (await world.http.get("/burrow/admin")).text == "GOOD"
        response = await world.http.get("/burrow/admin/ready")
        assert (response.status_code, response.text) in ((503, "STARTING"), (200, "READY"))
        assert (await world.until("/burrow/admin/ready", lambda body: True)) == "READY"
        assert (await world.http.get("/health/ready")).status_code == 200

    on_service(use)


@pytest.mark.parametrize("source", ["topic", "protocol"])
def test_lag_in_time_is_the_age_of_the_first_record_that_is_not_consumed(
    on_service: OnService, name: str, source: str
) -> None:
    async def use(world: World) -> None:
        now_ms = int(time.time() * 1000)
        [at] = await world.topic(f"{name}-{source}", 3, at_ms=now_ms - 5 * HOUR_MS)
        await world.produce(at.topic, 0, 2, at_ms=now_ms - HOUR_MS)
        await world.commit(at.topic, at, 3)
        body = await world.until(
            f"/v1/clusters/local/groups/{at.topic}",
            lambda body: body["partitions"] and body["partitions"][0]["lag_seconds_method"] == "exact",
        )
        assert body["partitions"][0]["lag"] == 2
        assert 3_600 <= body["lag_seconds"] < 3_600 + 120

    on_service(use, commits_source=source)


def test_forecasts_come_from_the_history(on_service: OnService, name: str) -> None:
    async def use(world: World) -> None:
        [at] = await world.topic(name, 1_000)
        await world.commit(name, at, 1)

        async def consume() -> None:
            for offset in range(10, 900, 10):
                await world.commit(name, at, offset)
                await asyncio.sleep(COMMIT_S)

        task = asyncio.create_task(consume())
        body = await world.until(
            f"/v1/clusters/local/groups/{name}/forecast",
            lambda body: body["forecast"]["outlook"] == "catching up" and body["forecast"]["trust"] == "high",
        )
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        [partition] = body["partitions"]
        assert 0 < partition["caught_up_in_seconds"] < 60
        assert partition["produced_per_second"] == 0
        assert partition["retention"] in ("none", "overtakes")
        history = await world.get(f"/v1/clusters/local/groups/{name}/history")
        [series] = history["partitions"]
        assert len(series["lag"]) == len(history["times_ms"]) >= 3
        known = [lag for lag in series["lag"] if lag is not None]
        assert known == sorted(known, reverse=True)

    on_service(use)


def test_several_clusters_are_watched_side_by_side(on_service: OnService, name: str) -> None:
    async def use(world: World) -> None:
        [at] = await world.topic(name, 10)
        await world.commit(name, at, 4)
        for cluster in ("east", "west"):
            path = f"/v3/kafka/{cluster}/consumer/{name}/lag"
            body = await world.until(path, lambda body: body["status"]["totallag"] == 6)
            assert body["status"]["cluster"] == cluster
        assert (await world.get("/v3/kafka"))["clusters"] == ["east", "west"]

    on_service(use, clusters="east,west")


def test_a_deleted_group_disappears(on_service: OnService, name: str) -> None:
    async def use(world: World) -> None:
        [at] = await world.topic(name, 10)
        await world.commit(name, at, 4)
        await world.until("/v3/kafka/local/consumer", lambda body: name in body["consumers"])
        assert await world.admin.delete_groups([name]) == {name: None}
        await world.until("/v3/kafka/local/consumer", lambda body: name not in body["consumers"])

    on_service(use)


def test_share_groups_are_behind_by_their_start_offset(on_service: OnService, name: str) -> None:
    async def use(world: World) -> None:
        [at] = await world.topic(name, 5)
        consumer = ShareConsumer(world.cluster, ShareConsumerSettings(name))
        await consumer.subscribe([name])
        try:
            async with asyncio.timeout(TIMEOUT_S):
                while at not in consumer.assignment:
                    await consumer.poll(100)
        finally:
            await consumer.close()
        assert await world.admin.alter_share_group_offsets(name, {at: 2}) == {at: None}
        body = await world.until(f"/v1/clusters/local/groups/{name}", lambda body: body["lag"] == 3)
        assert (body["type"], body["partitions"][0]["committed"]) == ("Share", 2)

    on_service(use)
