"""Work that waits for a disk or takes long does not block the loop of a node in this process."""

from __future__ import annotations

import asyncio
import os
import random
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.node import Node
from barnabas.client.asyncio_network import Connection, connect
from barnabas.client.core.address import Address
from barnabas.protocol.messages.create_topics import CreateTopicsRequest
from barnabas.protocol.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from barnabas.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse
from barnabas.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from barnabas.protocol.messages.produce import ProduceRequest, ProduceResponse
from barnabas.records.record import Record, build_batch
from barnabas.runtime.disk import Disk
from barnabas.settings import BrokerSettings
from barnabas.storage.logs.log import CACHED_S, Log
from barnabas.storage.segments.segment import Segment
from barnabas.testing.ports import free_ports

TOPIC = "old"
MAX_TIMESTAMP = -3
BY_NAME_MAX = 12
Use = Callable[["Talk"], Awaitable[None]]


class Talk:
    """A node, and a client's connection to it."""

    def __init__(self, node: Node, connection: Connection) -> None:
        self.node = node
        self.broker = node.broker
        self._connection = connection

    async def ask(self, request: Any, response: Any, version_max: int | None = None) -> Any:
        return await self._connection.send(request, response, version_max=version_max)

    async def create(self, partitions: int = 1) -> None:
        topic = CreateTopicsRequest.CreatableTopic(
            name=TOPIC, num_partitions=partitions, replication_factor=1
        )
        await self.broker.controller.handle(CreateTopicsRequest(topics=[topic]))

    async def produce(self, value: bytes, timestamp: int = 5) -> None:
        data = ProduceRequest.TopicProduceData
        batch = build_batch([Record(timestamp=timestamp, value=value)])
        part = data.PartitionProduceData(index=0, records=bytes(batch))
        request = ProduceRequest(
            acks=1, timeout_ms=9000, topic_data=[data(name=TOPIC, partition_data=[part])]
        )
        answer = await self.ask(request, ProduceResponse, BY_NAME_MAX)
        assert answer.responses[0].partition_responses[0].error_code == 0

    async def fetch(self, isolation_level: int = 0) -> bytes:
        part = FetchRequest.FetchTopic.FetchPartition(
            partition=0, fetch_offset=0, partition_max_bytes=1 << 20
        )
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            isolation_level=isolation_level,
            topics=[FetchRequest.FetchTopic(topic=TOPIC, partitions=[part])],
        )
        answer = await self.ask(request, FetchResponse, BY_NAME_MAX)
        return bytes(answer.responses[0].partitions[0].records)

    async def list_offsets(self, timestamp: int, partitions: int = 1) -> list[Any]:
        topic = ListOffsetsRequest.ListOffsetsTopic
        parts = [
            topic.ListOffsetsPartition(partition_index=index, timestamp=timestamp)
            for index in range(partitions)
        ]
        request = ListOffsetsRequest(replica_id=-1, topics=[topic(name=TOPIC, partitions=parts)])
        found: list[Any] = (await self.ask(request, ListOffsetsResponse)).topics[0].partitions
        return found

    @property
    def log(self) -> Log:
        found = self.broker.partitions.get(TOPIC, 0)
        assert found is not None
        return found.log


def with_node(folder: Path, use: Use) -> None:
    async def run() -> None:
        port, controller_port = free_ports(2)
        properties = {
            "node.id": "1",
            "process.roles": "broker,controller",
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
            "log.dirs": str(folder),
            "log.cleaner.enable": "false",
        }
        node = Node(BrokerSettings.load(properties), format_empty=True, rng=random.Random(1))
        await node.start()
        try:
            connection = await connect(Address("127.0.0.1", port))
            try:
                await use(Talk(node, connection))
            finally:
                await connection.close()
        finally:
            await node.stop()

    asyncio.run(run())


def evict(path: str) -> None:
    """Take a file out of the page cache."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        if Disk().is_cached(descriptor, 0):
            pytest.skip("this file system does not tell what is in the page cache")
    finally:
        os.close(descriptor)


def test_a_tail_that_was_idle_for_long_is_read_by_a_thread(tmp_path: Path) -> None:
    async def use(talk: Talk) -> None:
        await talk.create()
        await talk.produce(b"x" * 300_000)
        written = await talk.fetch()
        assert talk.broker.fetch_stats.cold_fetches == 0, "what was just written is in memory"

        talk.log.written_s -= CACHED_S
        assert await talk.fetch() == written
        assert talk.broker.fetch_stats.cold_fetches == 0, "it is still in the page cache"

        evict(talk.log.active.path)
        assert await talk.fetch() == written
        assert talk.broker.fetch_stats.cold_fetches == 1
        assert await talk.fetch() == written
        assert talk.broker.fetch_stats.cold_fetches == 1, "the thread has brought it into the page cache"

    with_node(tmp_path / "data", use)


def test_a_slice_that_is_sent_late_is_checked_in_the_page_cache_again(tmp_path: Path) -> None:
    """A slice for a reader that is slow: its pages may be gone when its turn comes."""

    async def use(talk: Talk) -> None:
        await talk.create()
        await talk.produce(b"x" * 300_000)
        found = talk.log.read(0, 1 << 20)
        assert found.likely_cached
        assert found.is_cached(0, 1 << 20)
        evict(talk.log.active.path)
        assert found.can_read_without_disk(0, 1 << 20), "very likely, as far as the slice knows"
        assert not found.is_cached(0, 1 << 20)

    with_node(tmp_path / "data", use)


@pytest.mark.parametrize("timestamp", [MAX_TIMESTAMP, 3])
def test_offsets_by_time_are_looked_up_by_a_thread(
    tmp_path: Path, timestamp: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lookers: set[bool] = set()

    def watched(name: str) -> None:
        method = getattr(Log, name)

        def look(*arguments: Any) -> Any:
            lookers.add(threading.current_thread() is threading.main_thread())
            return method(*arguments)

        monkeypatch.setattr(Log, name, look)

    async def use(talk: Talk) -> None:
        await talk.create()
        for number in range(6):
            await talk.produce(b"record", timestamp=number)
            talk.log.roll()
        watched("max_timestamp_offset")
        watched("offset_for_timestamp")
        found = (await talk.list_offsets(timestamp))[0]
        expected = 5 if timestamp == MAX_TIMESTAMP else 3
        assert (found.timestamp, found.offset, found.leader_epoch) == (expected, expected, 0)
        assert lookers == {False}

    with_node(tmp_path / "data", use)


def test_a_request_for_many_partitions_runs_in_pieces(tmp_path: Path) -> None:
    """The loop turns while one request is served."""
    count = 300

    async def use(talk: Talk) -> None:
        await talk.create(count)
        topic = DeleteRecordsRequest.DeleteRecordsTopic
        parts = [topic.DeleteRecordsPartition(partition_index=index, offset=0) for index in range(count)]
        runs = counted_runs(talk)
        found = await talk.list_offsets(-1, count)
        assert len(found) == count
        assert not any(each.error_code for each in found)
        dirs = await talk.ask(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse)
        assert len(dirs.results[0].topics[0].partitions) == count
        deleted = await talk.ask(
            DeleteRecordsRequest(topics=[topic(name=TOPIC, partitions=parts)], timeout_ms=9000),
            DeleteRecordsResponse,
        )
        assert len(deleted.topics[0].partitions) == count
        assert len(runs) == 3

    with_node(tmp_path / "data", use)


def counted_runs(talk: Talk) -> list[None]:
    """Requests that are served in pieces from now on."""
    runs: list[None] = []
    pieces = talk.broker.pieces
    run = pieces.run

    def counted(steps: Any) -> Any:
        runs.append(None)
        return run(steps)

    pieces.run = counted  # type: ignore[method-assign]
    return runs


def test_aborted_transactions_of_many_segments_are_read_by_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_committed = 1
    by_loop: list[str] = []
    read_file = Segment.read_file

    def read(segment: Segment, kind: str) -> bytes:
        if threading.current_thread() is threading.main_thread() and segment.writer is None:
            by_loop.append(segment.path_of(kind))
        return read_file(segment, kind)

    async def use(talk: Talk) -> None:
        await talk.create()
        for _ in range(4):
            await talk.produce(b"record")
            talk.log.roll()
        for segment in talk.log.segments:
            segment._transactions = None
        monkeypatch.setattr(Segment, "read_file", read)
        assert await talk.fetch(read_committed)
        assert all(segment.has_loaded_transactions for segment in talk.log.segments[:-1])
        assert by_loop == []

    with_node(tmp_path / "data", use)
