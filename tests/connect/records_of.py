"""The committed records of a topic, read from its beginning to its end."""

from __future__ import annotations

import asyncio

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.offsets import OffsetSpec
from barnabas.client.cluster import Cluster
from barnabas.client.consumer import Consumer, ConsumerSettings
from barnabas.client.core.address import parse_bootstrap
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import ErrorCode, KafkaError

Record = tuple[bytes | None, int, bytes | None]  # key, offset, value


def values_of(bootstrap: str, topic: str) -> list[str]:
    return asyncio.run(_values_of(bootstrap, topic))


def records_of(bootstrap: str, topic: str) -> list[Record]:
    return asyncio.run(_records_of(bootstrap, topic))


async def _values_of(bootstrap: str, topic: str) -> list[str]:
    return [(value or b"").decode() for _, _, value in await _records_of(bootstrap, topic)]


async def _records_of(bootstrap: str, topic: str) -> list[Record]:
    cluster = Cluster(parse_bootstrap(bootstrap))
    try:
        try:
            count = await cluster.partitions_of(topic)
        except KafkaError as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            return []
        places = [TopicPartition(topic, number) for number in range(count)]
        ends = await Admin(cluster).list_offsets(
            dict.fromkeys(places, OffsetSpec.LATEST), read_committed=True
        )
        goals = {place: end.offset for place, end in ends.items() if not isinstance(end, KafkaError)}
        consumer = Consumer(cluster, ConsumerSettings(read_committed=True))
        await consumer.assign_at(places, OffsetSpec.EARLIEST)
        found: list[Record] = []
        while any(consumer.positions[place] < goal for place, goal in goals.items()):
            found += [(each.key, each.offset, each.value) for each in await consumer.poll(200.0)]
        await consumer.close()
        return found
    finally:
        await cluster.close()
