"""URLs and resource names of v3."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

from starlette.responses import StreamingResponse

from barnabas.rest.v3 import lists
from barnabas.rest.v3.resources import Links, Resource


def test_urls_and_names_are_escaped() -> None:
    links = Links("http://proxy:8082/", "c-1")
    assert links.url("consumer-groups", "a/b c", "lags") == (
        "http://proxy:8082/v3/clusters/c-1/consumer-groups/a%2Fb%20c/lags"
    )
    assert links.name(("topic", "t"), ("partition", 3), "reassignment") == (
        "crn:///kafka=c-1/topic=t/partition=3/reassignment"
    )
    assert Links("http://p", "c", "confluent.io").name() == "crn://confluent.io/kafka=c"


def test_resources_have_kind_metadata_and_cluster() -> None:
    links = Links("http://proxy", "c")
    assert links.resource("KafkaTopic", links.url("topics", "t"), None, {"topic_name": "t"}) == {
        "kind": "KafkaTopic",
        "metadata": {"self": "http://proxy/v3/clusters/c/topics/t", "resource_name": None},
        "cluster_id": "c",
        "topic_name": "t",
    }


async def pages(count: int) -> AsyncIterator[list[Resource]]:
    for start in range(0, count, 150):
        yield [{"number": number, "text": "x" * 100} for number in range(start, min(start + 150, count))]


def body_of(count: int) -> tuple[bool, bytes]:
    async def run() -> tuple[bool, bytes]:
        response = await lists.listed("KafkaTopicList", "http://proxy/v3/clusters/c/topics", pages(count))
        if isinstance(response, StreamingResponse):
            return True, b"".join([bytes(piece) async for piece in response.body_iterator])  # type: ignore[arg-type]
        return False, bytes(response.body)

    return asyncio.run(run())


def test_short_lists_are_whole_and_long_ones_streamed() -> None:
    for count, streamed in ((0, False), (1, False), (100, False), (5_000, True)):
        was_streamed, body = body_of(count)
        found = json.loads(body)
        assert was_streamed is streamed
        assert [each["number"] for each in found["data"]] == list(range(count))
        assert found["kind"] == "KafkaTopicList"
        assert found["metadata"] == {"self": "http://proxy/v3/clusters/c/topics", "next": None}


def test_a_long_list_lets_others_run() -> None:
    async def run() -> int:
        turns = 0

        async def count_turns() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        other = asyncio.create_task(count_turns())
        response = await lists.listed("KafkaTopicList", "u", pages(10_000))
        assert isinstance(response, StreamingResponse)
        async for _ in response.body_iterator:
            pass
        other.cancel()
        return turns

    assert asyncio.run(run()) >= 90  # a turn for each hundred of resources


def test_portions_are_asked_in_order_and_a_few_at_once() -> None:
    async def run() -> tuple[list[list[int]], int]:
        running = most = 0

        async def ask(items: object) -> list[int]:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0)
            running -= 1
            return list(items)  # type: ignore[call-overload, no-any-return]

        found = [each async for each in lists.in_portions(range(25), 4, ask, at_once=3)]
        return found, most

    found, most = asyncio.run(run())
    assert [number for portion in found for number in portion] == list(range(25))
    assert most == 3
