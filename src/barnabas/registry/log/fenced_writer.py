"""The writer of a primary: batches that are written once, in order, and not at all after another took over.

In: a cluster, the topic's partition, the name of the fence. Out: offsets of batches, or an error that says
whether the batch may be there. The fence is a transactional id, used for its producer id and epoch alone:
`take_over` raises the epoch, and from the first batch of the new epoch on the partition's leader refuses all
older ones. No transaction begins, so the topic has no markers and every consumer reads it.
Does not know: elections, what records mean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from barnabas.client.core.cluster import ClusterCore
from barnabas.client.core.errors import ClientError, ConnectionLost, Unreachable, error_of
from barnabas.client.core.patience import Patience
from barnabas.client.core.producing import (
    TOO_LARGE,
    TOPIC_IDS_SINCE,
    PartitionResult,
    produce_request,
    produce_results,
)
from barnabas.client.core.topology import TopicPartition
from barnabas.client.core.transaction import Fenced, Transaction
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.produce import ProduceRequest, ProduceResponse
from barnabas.records.batch import increment_sequence
from barnabas.records.record import Record, build_batch
from barnabas.registry.log.changes import KeyValue

ALL = -1
WRITES = "registry writes"  # the purpose of a connection
TRANSACTION_TIMEOUT_MS = 60_000  # no transaction begins, but brokers check the value
REQUEST_TIMEOUT_MS = 30_000
FENCED = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED})


class Written(NamedTuple):
    """The place of a batch: the offset of its first record, and the time of all."""

    base_offset: int
    timestamp_ms: int


class TooLarge(Exception):
    """The topic does not take a batch of this size; nothing was written."""


class FencedWriter:
    def __init__(
        self, cluster: ClusterCore, place: TopicPartition, fence: str, clock: Callable[[], float]
    ) -> None:
        self.is_ready = False  # whether the next batch may be sent: no earlier one is in doubt
        self._cluster = cluster
        self._place = place
        self._fence = fence
        self._clock = clock
        self._identity = Transaction(cluster)
        self._sequence = 0

    async def take_over(self, patience: Patience) -> None:
        """Become the only writer; batches of earlier writers that are still on their way are refused once the
        first batch of this one is written."""
        self.is_ready = False
        identity = Transaction(
            self._cluster, self._fence, timeout_ms=TRANSACTION_TIMEOUT_MS, wait_ms=patience.left_ms
        )
        try:
            await identity.init()
        except KafkaError as error:
            if error.code is not ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
                raise
            raise KafkaError(
                error.code, f"the service needs the right Write on the transactional id {self._fence}"
            ) from None
        self._identity, self._sequence = identity, 0
        self.is_ready = True

    async def write(self, records: Sequence[KeyValue], patience: Patience) -> Written:
        """Write records as one batch. Fenced: another has taken over.

        After any error but TooLarge the batch may be there or come later, so `take_over` must come first.
        """
        assert self.is_ready, "an earlier batch is in doubt"
        now_ms = int(self._clock() * 1000)
        batch = build_batch(
            [Record(-1, now_ms, key, value, ()) for key, value in records],
            producer_id=self._identity.producer_id,
            producer_epoch=self._identity.producer_epoch,
            base_sequence=self._sequence,
        )
        self.is_ready = False
        try:
            result = await self._cluster.retrying(
                lambda: self._send(batch, patience), patience=patience, final=TOO_LARGE
            )
        except KafkaError as error:
            if error.code not in TOO_LARGE:
                raise
            self.is_ready = True
            raise TooLarge(f"the records have {len(batch)} bytes") from None
        self._sequence = increment_sequence(self._sequence, len(records))
        self.is_ready = True
        appended_ms = result.log_append_time_ms
        return Written(result.base_offset, now_ms if appended_ms < 0 else appended_ms)

    async def _send(self, batch: bytearray, patience: Patience) -> PartitionResult:
        """Send the batch to the leader once."""
        cluster, place = self._cluster, self._place
        try:
            connection = await cluster.leader_connection(place, WRITES)
            version = connection.version_for(ProduceRequest)
            if version >= TOPIC_IDS_SINCE and place.topic not in cluster.topology.topics:
                raise ConnectionLost(connection.address, "the topic is being looked up again")
            request = produce_request(
                [(place, batch)], cluster.topology.topics, version, acks=ALL, timeout_ms=REQUEST_TIMEOUT_MS
            )
            response = await connection.send(
                request, ProduceResponse, version=version, timeout_ms=max(patience.left_ms, 1.0)
            )
        except Unreachable:
            cluster.forget_leaders([place.topic])
            raise
        for _, result in produce_results(response, cluster.topology.topic_names()):
            if not result.error_code:
                return result
            if result.error_code in FENCED:
                raise Fenced(self._fence)
            error = error_of(result.error_code, result.error_message)
            if error.code.needs_metadata_refresh:
                cluster.forget_leaders([place.topic])
            raise error
        raise ClientError(f"the response to a write of {place} has no result")
