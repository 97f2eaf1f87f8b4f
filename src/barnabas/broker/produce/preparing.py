"""The validation of large batches in threads: read record by record, decompressed, compressed again.

In: produce requests that take too long for the event loop (see `validate_produce`). Out: the batches to
append, or errors. The loop appends them afterwards and checks sequence numbers. The connection handles no
other request meanwhile, so that its requests stay in order; other connections go on. Waiting requests are
limited in bytes, running ones in number. Does not know: responses, transactions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.records.validation import AppendRules, NeedsSchemas, NeedsThread, validate_produce

if TYPE_CHECKING:
    from barnabas.broker.api.context import RequestContext
    from barnabas.broker.partitions.partitions import Partitions
    from barnabas.protocol.messages.produce import ProduceRequest
    from barnabas.records.batch import BatchHeader
    from barnabas.records.schema_ids import SchemaIds
    from barnabas.runtime.threads import Threads

RUNNING_MAX = 2  # at once: as many as the pool has threads
WAITING_BYTES_MAX = 128 * 1024 * 1024
LOOP_TOGETHER_BYTES_MAX = 16 * 1024  # of the batches in one request that are read on the loop
TOPIC_IDS_SINCE = 13

Prepared = tuple[memoryview, "BatchHeader"]
PreparedBatches = dict[int, "Prepared | KafkaError"]
"""By the `id` of the request's partition data. A batch has no entry if this broker does not lead its
partition."""
Job = tuple[int, memoryview, AppendRules, object]


class Preparing:
    """Requests whose batches are validated in threads."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._turns = asyncio.Semaphore(RUNNING_MAX)
        self.bytes_waiting = 0

    def prepare(
        self, request: ProduceRequest, version: int, partitions: Partitions, now_ms: int
    ) -> Awaitable[PreparedBatches]:
        """Validate every batch of a request, which must not refer to the arena any more."""
        jobs = jobs_of(request, version, partitions)
        size = sum(len(records) for _, records, _, _ in jobs)
        if self.bytes_waiting and self.bytes_waiting + size > WAITING_BYTES_MAX:
            return self._refuse(jobs)
        self.bytes_waiting += size
        return self._run(jobs, version, now_ms, size)

    async def _refuse(self, jobs: list[Job]) -> PreparedBatches:
        message = f"{self.bytes_waiting} bytes of batches wait for their validation: try again"
        return {key: KafkaError(ErrorCode.REQUEST_TIMED_OUT, message) for key, _, _, _ in jobs}

    async def _run(self, jobs: list[Job], version: int, now_ms: int, size: int) -> PreparedBatches:
        try:
            await self._turns.acquire()
        except asyncio.CancelledError:
            self.bytes_waiting -= size
            raise
        work = self._threads.run(validate_all, jobs, version, now_ms, self._threads.pause)

        def finished(_: object) -> None:
            self.bytes_waiting -= size
            self._turns.release()

        work.add_done_callback(finished)
        # A thread cannot be cancelled: its turn ends with its work, not with the connection.
        return await asyncio.shield(work)


def validate_at_once(request: ProduceRequest, context: RequestContext) -> PreparedBatches:
    """Validate the batches of several partitions on the loop, before any of them is appended. `NeedsThread`:
    they have to be prepared in a thread. `NeedsSchemas`: a registry has to be asked first."""
    broker = context.broker
    jobs = jobs_of(request, context.version, broker.partitions)
    if (
        sum(len(records) for _, records, rules, _ in jobs if not rules.header_suffices)
        > LOOP_TOGETHER_BYTES_MAX
    ):
        raise NeedsThread
    prepared = validate_all(jobs, context.version, broker.clock.now_ms(), None)
    check_schemas_known(prepared)
    return prepared


def check_schemas_known(prepared: PreparedBatches) -> None:
    """Raise `NeedsSchemas` if some batch cannot be judged before a registry is asked."""
    unknown: dict[SchemaIds, set[bytes]] = {}
    for found in prepared.values():
        if isinstance(found, NeedsSchemas):
            for ids, prefixes in found.unknown.items():
                unknown[ids] = unknown.get(ids, set()) | prefixes
    if unknown:
        raise NeedsSchemas(unknown)


def jobs_of(request: ProduceRequest, version: int, partitions: Partitions) -> list[Job]:
    jobs: list[Job] = []
    for data in request.topic_data:
        for given in data.partition_data:
            try:
                if version < TOPIC_IDS_SINCE:
                    partition = partitions.leader(data.name, given.index)
                else:
                    partition = partitions.leader_by_id(data.topic_id, given.index)
            except KafkaError:
                continue  # the append reports the error
            if given.records is not None:
                jobs.append((id(given), given.records, partition.rules, partition))
    return jobs


def validate_all(
    jobs: list[Job], version: int, now_ms: int, pause: Callable[[], None] | None
) -> PreparedBatches:
    """Prepare each batch, or say why it is refused. Raises `NeedsThread` where there is no `pause`."""
    prepared: PreparedBatches = {}
    for key, records, rules, where in jobs:
        try:
            prepared[key] = validate_produce(records, rules, version, now_ms, where, pause)
        except NeedsThread:
            raise
        except KafkaError as error:
            prepared[key] = error
    return prepared
