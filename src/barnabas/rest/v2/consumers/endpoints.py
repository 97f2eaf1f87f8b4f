"""Endpoints of consumer instances."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from barnabas.client.admin.group_offsets import CommittedOffset
from barnabas.client.admin.offsets import OffsetSpec
from barnabas.client.consumers.group_consumer import GroupConsumer, GroupConsumerSettings
from barnabas.client.core.topology import TopicPartition
from barnabas.client.groups.membership import GroupSettings
from barnabas.expressions.chars import RegexError
from barnabas.expressions.matching import matcher
from barnabas.rest.address import base_of
from barnabas.rest.formats.embedded import Formats
from barnabas.rest.kafka import Kafka
from barnabas.rest.kafka_errors import PARTITION_NOT_FOUND
from barnabas.rest.proxy import Proxy
from barnabas.rest.v2.call import (
    BAD_REQUEST,
    LONG_MAX,
    fields,
    items,
    json_response,
    no_content,
    read_control,
    text,
    unprocessable,
    whole,
)
from barnabas.rest.v2.consumers.budget import Budget, SharedResponse
from barnabas.rest.v2.consumers.instance import Instance, Wanted
from barnabas.rest.v2.consumers.instance_settings import InstanceSettings, instance_settings
from barnabas.rest.v2.consumers.instances import Instances
from barnabas.rest.v2.media import type_of_records
from barnabas.services.caller import caller_of
from barnabas.services.errors import ApiError

SAFE = "-._~"


class ConsumerEndpoints:
    def __init__(self, proxy: Proxy, formats: Formats, instances: Instances) -> None:
        self._proxy = proxy
        self._formats = formats
        self._instances = instances
        self._budget = Budget(instances.settings.response_bytes_max)

    # -- life --------------------------------------------------------------------------------------

    async def create(self, request: Request, kafka: Kafka) -> Response:
        given = instance_settings(await read_control(request))
        group: str = request.path_params["group"]
        name = given.name or f"rest-consumer-{uuid.uuid4()}"
        owner = caller_of(request).principal
        async with AsyncExitStack() as stack:
            kafka = await stack.enter_async_context(self._proxy.kafka_of(request))
            instance = Instance(owner, self._new_consumer(kafka, group, given), given)
            self._instances.add(group, name, instance)
            instance.on_close = stack.pop_all().aclose  # an instance keeps the clients of its caller open
        base = base_of(self._proxy.settings.advertised_url, request)
        base_uri = f"{base}/consumers/{quote(group, safe=SAFE)}/instances/{quote(name, safe=SAFE)}"
        return json_response({"instance_id": name, "base_uri": base_uri})

    def _new_consumer(self, kafka: Kafka, group: str, given: InstanceSettings) -> GroupConsumer:
        settings = self._instances.settings
        member = GroupSettings(
            group,
            session_timeout_ms=settings.session_timeout_ms,
            rebalance_timeout_ms=settings.rebalance_timeout_ms,
            heartbeat_interval_ms=settings.heartbeat_interval_ms,
        )
        return GroupConsumer(
            kafka.cluster,
            GroupConsumerSettings(
                member,
                reset=given.reset or settings.reset,
                auto_commit=given.auto_commit,
                fetch=settings.fetch,
            ),
        )

    async def delete(self, request: Request, kafka: Kafka) -> Response:
        await read_control(request)
        group, name = request.path_params["group"], request.path_params["instance"]
        await self._instances.remove(group, name, caller_of(request).principal)
        return no_content()

    def _find(self, request: Request) -> Instance:
        group, name = request.path_params["group"], request.path_params["instance"]
        return self._instances.find(group, name, caller_of(request).principal)

    # -- topics and partitions ---------------------------------------------------------------------

    async def subscribe(self, request: Request, kafka: Kafka) -> Response:
        instance = self._find(request)
        given = fields(await read_control(request), ("topics", "topic_pattern"))
        if given.get("topics") is not None:
            await instance.subscribe([text(each, "a topic") for each in items(given["topics"], "topics")])
        else:
            await instance.subscribe(pattern(given.get("topic_pattern")))
        return no_content()

    async def subscription(self, request: Request, kafka: Kafka) -> Response:
        instance = self._find(request)
        await read_control(request)
        return json_response({"topics": sorted(instance.consumer.topics)})

    async def unsubscribe(self, request: Request, kafka: Kafka) -> Response:
        instance = self._find(request)
        await read_control(request)
        async with instance.in_use() as consumer:
            await consumer.unsubscribe()
        return no_content()

    async def assign(self, request: Request, kafka: Kafka) -> Response:
        instance = self._find(request)
        await instance.assign(partitions_in(await read_control(request)))
        return no_content()

    async def assignments(self, request: Request, kafka: Kafka) -> Response:
        instance = self._find(request)
        await read_control(request)
        found = [{"topic": each.topic, "partition": each.partition} for each in instance.consumer.assignment]
        return json_response({"partitions": found})

    # -- positions ---------------------------------------------------------------------------------

    async def seek(self, request: Request, kafka: Kafka) -> Response:
        instance = self._find(request)
        given = fields(await read_control(request), ("offsets", "timestamps"))
        offsets, moments = {}, {}
        for each in items(given.get("offsets") or [], "offsets"):
            topic_partition, entry = place_of(each, "offset", "metadata")
            offsets[topic_partition] = whole(entry.get("offset"), "offset", LONG_MAX)
        for each in items(given.get("timestamps") or [], "timestamps"):
            topic_partition, entry = place_of(each, "timestamp", "metadata")
            moments[topic_partition] = moment_of(entry.get("timestamp"))
        await instance.seek(offsets, moments)
        return no_content()

    async def seek_to_beginning(self, request: Request, kafka: Kafka) -> Response:
        return await self._seek_to(request, OffsetSpec.EARLIEST)

    async def seek_to_end(self, request: Request, kafka: Kafka) -> Response:
        return await self._seek_to(request, OffsetSpec.LATEST)

    async def _seek_to(self, request: Request, spec: OffsetSpec) -> Response:
        instance = self._find(request)
        wanted = partitions_in(await read_control(request))
        await instance.seek({}, dict.fromkeys(wanted, spec))
        return no_content()

    async def commit(self, request: Request, kafka: Kafka) -> Response:
        instance = self._find(request)
        body = await read_control(request)
        given = None if body is None else fields(body, ("offsets",)).get("offsets")
        if given is None:
            await instance.commit(None)
            return json_response([])
        offsets = {}
        for each in items(given, "offsets"):
            topic_partition, entry = place_of(each, "offset", "metadata")
            # The given offset is that of the last record that was handled.
            following = whole(entry.get("offset"), "offset", LONG_MAX - 1) + 1
            metadata = entry.get("metadata")
            offsets[topic_partition] = CommittedOffset(
                following, metadata="" if metadata is None else text(metadata, "metadata")
            )
        await instance.commit(offsets)
        return json_response([])

    async def committed(self, request: Request, kafka: Kafka) -> Response:
        instance = self._find(request)
        body = await read_control(request)
        if body is None:
            raise ApiError(404, PARTITION_NOT_FOUND, "The request has no body: name partitions.")
        found = await instance.committed(partitions_in(body))
        return json_response(
            {
                "offsets": [
                    {
                        "topic": topic_partition.topic,
                        "partition": topic_partition.partition,
                        "offset": each.offset,
                        "metadata": each.metadata,
                    }
                    for topic_partition, each in found.items()
                ]
            }
        )

    # -- records -----------------------------------------------------------------------------------

    async def records(self, request: Request, kafka: Kafka) -> Response:
        instance = self._find(request)
        settings, given = self._instances.settings, instance.settings
        media_type = type_of_records(request.headers.get("accept"), given.format)
        limit_ms = settings.request_timeout_ms if given.timeout_ms is None else given.timeout_ms
        timeout_ms = min(number_in(request, "timeout", limit_ms), limit_ms, settings.wait_ms_max)
        bytes_max = min(
            number_in(request, "max_bytes", settings.request_bytes_max), settings.request_bytes_max
        )
        bytes_min = settings.bytes_min if given.bytes_min is None else given.bytes_min
        wanted = Wanted(timeout_ms, bytes_max, bytes_min if bytes_min >= 0 else None)
        share = self._budget.share()
        try:
            body = f"[{','.join(await instance.read(self._formats, wanted, share))}]".encode()
        except BaseException:
            share.release()
            raise
        share.settle(len(body))
        return SharedResponse(body, media_type, share)


def pattern(value: Any) -> Callable[[str], bool]:
    """Whether the name of a topic matches, in bounded time."""
    if value is None:
        raise unprocessable("topics or topic_pattern is needed")
    try:
        return matcher(text(value, "topic_pattern")).matches
    except RegexError as error:
        raise unprocessable(f"topic_pattern is no regular expression: {error}") from None


def partitions_in(body: Any) -> list[TopicPartition]:
    given = fields(body, ("partitions",))
    return [place_of(each)[0] for each in items(given.get("partitions"), "partitions")]


def place_of(value: Any, *others: str) -> tuple[TopicPartition, dict[str, Any]]:
    entry = fields(value, ("topic", "partition", *others), "a partition")
    topic_partition = TopicPartition(
        text(entry.get("topic"), "topic"), whole(entry.get("partition"), "partition")
    )
    return topic_partition, entry


def moment_of(value: Any) -> int:
    """A moment as milliseconds since 1970: a number, or a text such as 2024-01-31T12:00:00Z."""
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
            seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
            return whole(round(seconds * 1000), "timestamp", LONG_MAX)
        except (ValueError, OverflowError):
            raise unprocessable("timestamp must be a moment such as 2024-01-31T12:00:00Z") from None
    return whole(value, "timestamp", LONG_MAX)


def number_in(request: Request, name: str, default: int) -> int:
    given = request.query_params.get(name)
    if given is None:
        return default
    if not (given.isascii() and given.isdigit() and len(given) <= 19):
        raise ApiError(400, BAD_REQUEST, f"{name} must be a whole number, not {given[:100]!r}")
    return int(given)
