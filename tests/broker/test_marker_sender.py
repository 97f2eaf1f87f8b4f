"""Markers for other brokers: the queue is bounded, and each marker gets its result."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from barnabas.broker.coordinators import marker_sender
from barnabas.broker.coordinators.marker_sender import MarkerSender
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from barnabas.runtime.unexpected import UnexpectedErrors
from barnabas.transactions.outcome import Markers, TopicPartition

LEADER = 2


class Brokers:
    """Other brokers, whose responses the test triggers."""

    def __init__(self) -> None:
        self.asked: list[tuple[WriteTxnMarkersRequest, asyncio.Future[Any]]] = []

    async def send_request(self, broker_id: int, request: WriteTxnMarkersRequest, lane: str) -> Any:
        future = asyncio.get_running_loop().create_future()
        self.asked.append((request, future))
        return await future

    def answer(self, number: int) -> None:
        request, future = self.asked[number]
        result = WriteTxnMarkersResponse.WritableTxnMarkerResult
        topic = result.WritableTxnMarkerTopicResult
        future.set_result(
            WriteTxnMarkersResponse(
                markers=[
                    result(
                        producer_id=marker.producer_id,
                        topics=[
                            topic(
                                name=each.name,
                                partitions=[
                                    topic.WritableTxnMarkerPartitionResult(partition_index=index)
                                    for index in each.partition_indexes
                                ],
                            )
                            for each in marker.topics
                        ],
                    )
                    for marker in request.markers
                ]
            )
        )


class Scene:
    def __init__(self) -> None:
        self.brokers = Brokers()
        self.unexpected = UnexpectedErrors()
        loop = asyncio.get_running_loop()
        self.sending = MarkerSender(self.brokers, loop, self.unexpected)  # type: ignore[arg-type]
        self.told: list[tuple[int, ErrorCode | None]] = []

    def send(self, index: int, told: Callable[[KafkaError | None], None] | None = None) -> None:
        where = TopicPartition("t", index)
        markers = Markers("id", 7, 0, 0, True, (where,), 2)
        default = lambda error: self.told.append((index, error.code if error is not None else None))  # noqa: E731
        self.sending.send(LEADER, markers, where, told or default)


def test_markers_that_wait_for_a_broker_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marker_sender, "UNSENT_MAX", 3)

    async def play() -> None:
        scene = Scene()
        scene.send(0)
        await asyncio.sleep(0)  # now in flight
        for index in (1, 2, 3):
            scene.send(index)
        with pytest.raises(KafkaError):
            scene.send(4)
        scene.brokers.answer(0)
        await asyncio.sleep(0.01)
        assert scene.told == [(0, None)]
        scene.send(4)  # the queue has space again
        scene.brokers.answer(1)
        await asyncio.sleep(0.01)
        scene.brokers.answer(2)
        await asyncio.sleep(0.01)
        assert scene.told == [(index, None) for index in range(5)]
        await scene.sending.close()

    asyncio.run(play())


def test_an_unreachable_broker_fails_all_of_its_markers_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(marker_sender, "MARKERS_MAX", 2)

    async def play() -> None:
        scene = Scene()
        for index in range(10):
            scene.send(index)
        await asyncio.sleep(0)
        scene.brokers.asked[0][1].set_exception(KafkaError(ErrorCode.NETWORK_EXCEPTION, "gone"))
        await asyncio.sleep(0.01)
        assert scene.told == [(index, ErrorCode.NETWORK_EXCEPTION) for index in range(10)]
        assert len(scene.brokers.asked) == 1
        await scene.sending.close()

    asyncio.run(play())


def test_a_failing_callback_does_not_keep_results_from_others() -> None:
    async def play() -> None:
        scene = Scene()
        scene.send(0, lambda error: [][1])  # type: ignore[arg-type, return-value]
        scene.send(1)
        await asyncio.sleep(0)
        scene.brokers.answer(0)
        await asyncio.sleep(0.01)
        assert scene.told == [(1, None)]
        assert scene.unexpected.count == 1
        scene.send(2)
        await asyncio.sleep(0)
        scene.brokers.answer(1)
        await asyncio.sleep(0.01)
        assert scene.told == [(1, None), (2, None)]
        await scene.sending.close()

    asyncio.run(play())
