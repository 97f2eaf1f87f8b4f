"""Sends markers of transactions to partitions that other brokers lead, and reports when they are committed.

In: markers with the broker that leads their partition. Out: WriteTxnMarkers requests, one in flight to each
broker, with all markers that arrived meanwhile in the next; the result of each marker. The queue for each
broker is bounded. If a broker cannot be reached, all of its markers fail at once.
Does not know: which partitions are where, whether to retry.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from barnabas.quorum import lanes
from barnabas.runtime.unexpected import UnexpectedErrors

if TYPE_CHECKING:
    from barnabas.broker.quorum.other_brokers import OtherBrokers
    from barnabas.transactions.outcome import Markers, TopicPartition

Marker = WriteTxnMarkersRequest.WritableTxnMarker
OnResult = Callable[[KafkaError | None], None]
MARKERS_MAX = 1_000  # partitions in one request
UNSENT_MAX = 10_000  # for one broker, besides those in flight
FULL = KafkaError(ErrorCode.NETWORK_EXCEPTION, "too many markers wait for their leader")


class UnsentMarker(NamedTuple):
    markers: Markers
    where: TopicPartition
    on_result: OnResult


class MarkerSender:
    __slots__ = ("_brokers", "_loop", "_tasks", "_unexpected", "_unsent")

    def __init__(
        self, brokers: OtherBrokers, loop: asyncio.AbstractEventLoop, unexpected: UnexpectedErrors
    ) -> None:
        self._brokers = brokers
        self._unexpected = unexpected
        self._loop = loop
        self._unsent: dict[int, list[UnsentMarker]] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}

    def send(self, broker_id: int, markers: Markers, partition: TopicPartition, on_result: OnResult) -> None:
        """Send a marker, and report its result. KafkaError: too many markers wait for this broker; retry."""
        unsent = self._unsent.setdefault(broker_id, [])
        if len(unsent) >= UNSENT_MAX:
            raise FULL.copy()
        unsent.append(UnsentMarker(markers, partition, on_result))
        if broker_id not in self._tasks:
            self._tasks[broker_id] = self._loop.create_task(self._send_all(broker_id))

    async def close(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()))

    async def _send_all(self, broker_id: int) -> None:
        try:
            while unsent := self._unsent.pop(broker_id, None):
                some, rest = first_of_each(unsent)
                if rest:
                    self._unsent[broker_id] = rest
                try:
                    response = await self._brokers.send_request(broker_id, request_for(some), lanes.MARKERS)
                    results = results_of(response)
                except KafkaError as error:
                    # The broker cannot be reached. Fail all of its markers, since each attempt takes long.
                    for each in [*some, *self._unsent.pop(broker_id, ())]:
                        self._report(each, error)
                    continue
                for each in some:
                    code = results.get((each.markers.producer_id, *each.where))
                    self._report(each, error_of(code))
        finally:
            del self._tasks[broker_id]

    def _report(self, each: UnsentMarker, error: KafkaError | None) -> None:
        try:
            each.on_result(error)
        except Exception:
            self._unexpected.note("reporting a marker on", each.where)


def first_of_each(unsent: list[UnsentMarker]) -> tuple[list[UnsentMarker], list[UnsentMarker]]:
    """Split off what one request can hold. A response names producers and partitions, so a request may have
    only one marker for each pair."""
    some: dict[tuple[int, TopicPartition], UnsentMarker] = {}
    rest = []
    for each in unsent:
        key = each.markers.producer_id, each.where
        if key in some or len(some) >= MARKERS_MAX:
            rest.append(each)
        else:
            some[key] = each
    return list(some.values()), rest


def request_for(some: list[UnsentMarker]) -> WriteTxnMarkersRequest:
    by_end: dict[Markers, dict[str, list[int]]] = {}
    for each in some:
        topics = by_end.setdefault(each.markers, {})
        topics.setdefault(each.where.topic, []).append(each.where.partition)
    return WriteTxnMarkersRequest(
        markers=[
            Marker(
                producer_id=markers.producer_id,
                producer_epoch=markers.producer_epoch,
                transaction_result=markers.is_commit,
                coordinator_epoch=markers.coordinator_epoch,
                transaction_version=markers.transaction_version,
                topics=[
                    Marker.WritableTxnMarkerTopic(name=name, partition_indexes=indexes)
                    for name, indexes in topics.items()
                ],
            )
            for markers, topics in by_end.items()
        ]
    )


def results_of(response: WriteTxnMarkersResponse) -> dict[tuple[int, str, int], int]:
    return {
        (result.producer_id, topic.name, partition.partition_index): partition.error_code
        for result in response.markers
        for topic in result.topics
        for partition in topic.partitions
    }


def error_of(code: int | None) -> KafkaError | None:
    if code is None:
        return KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR, "the response of the leader does not name the marker"
        )
    return KafkaError(ErrorCode(code), ErrorCode(code).name) if code else None
