"""Lag read through requests alone, as tools read it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.topics import NewTopic
from barnabas.client.cluster import Cluster
from barnabas.client.core.address import parse_bootstrap
from barnabas.client.core.topology import TopicPartition
from barnabas.client.producer import NewRecord, Producer, ProducerSettings
from barnabas.monitor.lag.cluster_lag import ClusterLag
from barnabas.monitor.lag.group_lag import lags_of
from barnabas.monitor.lag_service.protocol_reader import ProtocolReader
from barnabas.monitor.lag_service.record_times import RecordTimes
from barnabas.protocol import KafkaError
from barnabas.records.compression import Compression

NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
Use = Callable[[Admin], Coroutine[Any, Any, None]]


@pytest.fixture
def on_broker(broker: str) -> Callable[[Use], None]:
    async def main(use: Use) -> None:
        async with Cluster(parse_bootstrap(broker)) as cluster:
            await use(Admin(cluster))

    return lambda use: asyncio.run(main(use))


async def topic_with(admin: Admin, name: str, *timestamps_ms: int, size: int = 1) -> TopicPartition:
    """A topic of one partition, a record a timestamp, each in a batch of its own."""
    await admin.create_topic(NewTopic(name, partitions=1))
    await admin.cluster.partitions_of(name, auto_create=True)
    for at_ms in timestamps_ms:
        async with Producer(admin.cluster) as producer:
            await producer.send(name, b"x" * size, timestamp_ms=at_ms)
    return TopicPartition(name, 0)


def test_lag_is_told_in_records_and_in_time(on_broker: Callable[[Use], None], name: str) -> None:
    async def use(admin: Admin) -> None:
        where = await topic_with(admin, name, *(NOW_MS - hours * HOUR_MS for hours in (5, 3, 2, 1)))
        for suffix, offset in (("behind", 1), ("further-behind", 0), ("done", 4)):
            await admin.alter_offsets(f"{name}-{suffix}", {where: offset})
        names = [f"{name}-{suffix}" for suffix in ("done", "behind", "further-behind")]
        reader = ProtocolReader(admin, lag := ClusterLag(""))
        await reader.read(names, NOW_MS)
        found = lags_of(lag, NOW_MS, names)
        assert [(each.group_id, each.lag, each.age_ms) for each in found] == [
            (f"{name}-further-behind", 4, 5 * HOUR_MS),
            (f"{name}-behind", 3, 3 * HOUR_MS),
            (f"{name}-done", 0, 0),
        ]
        [partition] = found[1].partitions
        assert (partition.where, partition.current, partition.end, partition.member) == (where, 1, 4, None)

    on_broker(use)


def test_the_age_is_that_of_the_first_record_that_retention_has_left(
    on_broker: Callable[[Use], None], name: str
) -> None:
    async def use(admin: Admin) -> None:
        where = await topic_with(admin, name, *(NOW_MS - hours * HOUR_MS for hours in (5, 3, 2, 1)))
        await admin.alter_offsets(name, {where: 1})
        await admin.delete_records({where: 2})
        await ProtocolReader(admin, lag := ClusterLag("")).read([name], NOW_MS)
        [found] = lags_of(lag, NOW_MS)
        assert (found.lag, found.age_ms) == (3, 2 * HOUR_MS)

    on_broker(use)


def test_a_second_look_reads_no_record_again(
    on_broker: Callable[[Use], None], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def use(admin: Admin) -> None:
        where = await topic_with(admin, name, NOW_MS - 1_000, NOW_MS)
        await admin.alter_offsets(name, {where: 0})
        reader = ProtocolReader(admin, lag := ClusterLag(""))
        await reader.read([name], NOW_MS)
        monkeypatch.setattr(RecordTimes, "_ask", None)
        await reader.read([name], NOW_MS + 500)
        [group] = lags_of(lag, NOW_MS + 500)
        assert (group.lag, group.age_ms) == (2, 1_500)

    on_broker(use)


def test_timestamps_of_large_and_compressed_batches_are_read(
    on_broker: Callable[[Use], None], name: str
) -> None:
    async def use(admin: Admin) -> None:
        large = [
            await topic_with(admin, f"{name}-{index}", NOW_MS - index * HOUR_MS, size=60_000)
            for index in range(1, 4)
        ]
        await admin.alter_offsets(name, dict.fromkeys(large, 0))
        squeezed = await topic_with(admin, f"{name}-squeezed")
        async with Producer(
            admin.cluster, ProducerSettings(compression=Compression.GZIP, linger_ms=50)
        ) as producer:
            records = [
                NewRecord(0, None, b"x" * 100, timestamp_ms=NOW_MS - index) for index in range(100, 0, -1)
            ]
            await producer.send_all(squeezed.topic, records)
        await admin.alter_offsets(name, {squeezed: 60})
        await ProtocolReader(admin, lag := ClusterLag("")).read([name], NOW_MS)
        ages = {each.where: each.age_ms for each in lags_of(lag, NOW_MS)[0].partitions}
        assert [ages[at] for at in large] == [HOUR_MS, 2 * HOUR_MS, 3 * HOUR_MS]
        assert ages[squeezed] == 40

    on_broker(use)


def test_lag_of_a_group_that_nobody_knows_is_an_error(on_broker: Callable[[Use], None], name: str) -> None:
    async def use(admin: Admin) -> None:
        with pytest.raises(KafkaError, match=f"Group {name} not found"):
            await ProtocolReader(admin, ClusterLag("")).read([name], NOW_MS)
        await ProtocolReader(admin, ClusterLag("")).read(None, NOW_MS)

    on_broker(use)
