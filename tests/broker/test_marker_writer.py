"""Markers that cannot be written yet are tried again, with one log line for a reason."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.broker.coordinators.transaction_markers import PARTITION_NOT_READY, MarkerWriter
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.transactions.outcome import TopicPartition

WHERE = TopicPartition("orders", 0)
MARKERS: Any = SimpleNamespace(transactional_id="mover")


@pytest.fixture
def writer() -> MarkerWriter:
    loop = SimpleNamespace(call_later=lambda seconds, call: SimpleNamespace(cancel=lambda: None))
    broker: Any = SimpleNamespace(loop=loop)
    return MarkerWriter(broker, lambda markers, partitions: None)


def fail(writer: MarkerWriter, error: KafkaError) -> None:
    writer._failed(MARKERS, WHERE, error.copy())


def test_a_partition_that_is_not_ready_is_no_warning(
    writer: MarkerWriter, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        fail(writer, PARTITION_NOT_READY)

    assert (writer.unwritten_count, caplog.messages) == (1, [])


def test_a_reason_is_logged_once(writer: MarkerWriter, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            fail(writer, KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is full"))
        fail(writer, KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "too few replicas"))

    assert [message.rpartition(": ")[2] for message in caplog.messages] == [
        "the disk is full",
        "too few replicas",
    ]
    assert writer.unwritten_count == 4
