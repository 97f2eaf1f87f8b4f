"""Reports to the controller of the log dirs that hold this broker's replicas (KIP-858).

In: partitions with the ids of their log dirs. Out: AssignReplicasToDirs requests, one after the other, each
with everything of one turn of the loop; sent again if they fail.
Does not know: which dir a partition should be in.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest

log = logging.getLogger("barnabas.directories")
Directory = AssignReplicasToDirsRequest.DirectoryData
Topic = Directory.TopicData
RETRY_MS = 500
PARTITIONS_MAX = 2_000  # in one request, which is one batch of the metadata log


class Replica(NamedTuple):
    topic_id: bytes
    partition: int


class DirectoryAssignments:
    def __init__(
        self, node_id: int, epoch: Callable[[], int], send: Callable[[Message], Awaitable[Any]]
    ) -> None:
        self._node_id = node_id
        self._epoch = epoch
        self._send = send
        self._pending: dict[Replica, bytes] = {}
        self._waiting: dict[Replica, list[asyncio.Future[None]]] = {}
        self._sending: asyncio.Task[None] | None = None

    def note(self, topic_id: bytes, partition: int, directory_id: bytes) -> None:
        """Report the log dir of a replica to the controller."""
        self._pending[Replica(topic_id, partition)] = directory_id
        if self._sending is None:
            self._sending = asyncio.get_running_loop().create_task(self._send_all())

    async def assign(self, topic_id: bytes, partition: int, directory_id: bytes) -> None:
        """Report a log dir and wait until the controller has committed it. KafkaError: it refused."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(Replica(topic_id, partition), []).append(future)
        self.note(topic_id, partition, directory_id)
        await future

    @property
    def pending(self) -> int:
        """Replicas whose log dir the controller has not committed."""
        return len(self._pending)

    async def close(self) -> None:
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.wait([self._sending])

    async def _send_all(self) -> None:
        try:
            await asyncio.sleep(0)  # more may come up in this turn of the loop
            while self._pending:
                some = dict(list(self._pending.items())[:PARTITIONS_MAX])
                try:
                    response = await self._send(self._request(some))
                    if response.error_code:
                        raise KafkaError(
                            ErrorCode(response.error_code), "replicas were not assigned to log dirs"
                        )
                except KafkaError as error:
                    log.warning("AssignReplicasToDirs failed, retrying: %s", error)
                    await asyncio.sleep(RETRY_MS / 1000)
                    continue
                for replica, directory_id in some.items():
                    if self._pending.get(replica) == directory_id:
                        del self._pending[replica]
                self._handle_response(response)
        finally:
            self._sending = None

    def _request(self, some: dict[Replica, bytes]) -> AssignReplicasToDirsRequest:
        directories: dict[bytes, dict[bytes, Topic]] = {}
        for replica, directory_id in some.items():
            topics = directories.setdefault(directory_id, {})
            topic = topics.setdefault(replica.topic_id, Topic(topic_id=replica.topic_id, partitions=[]))
            topic.partitions.append(Topic.PartitionData(partition_index=replica.partition))
        return AssignReplicasToDirsRequest(
            broker_id=self._node_id,
            broker_epoch=self._epoch(),
            directories=[
                Directory(id=directory_id, topics=list(topics.values()))
                for directory_id, topics in directories.items()
            ],
        )

    def _handle_response(self, response: Any) -> None:
        for directory in response.directories:
            for topic in directory.topics:
                for partition in topic.partitions:
                    replica = Replica(topic.topic_id, partition.partition_index)
                    for future in self._waiting.pop(replica, ()):
                        if future.done():
                            continue
                        if partition.error_code:
                            code = ErrorCode(partition.error_code)
                            future.set_exception(KafkaError(code, "the controller refused a log dir"))
                        else:
                            future.set_result(None)
