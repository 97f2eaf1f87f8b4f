"""Streams groups are served where the protocol is switched on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from barnabas.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from barnabas.testing import Broker

from .conversation import Conversation


@pytest.fixture(scope="module")
def talk() -> Iterator[Conversation]:
    overrides = {"group.coordinator.rebalance.protocols": "classic,consumer"}
    with Broker(overrides=overrides) as broker, Conversation(broker) as conversation:
        yield conversation


def test_a_broker_without_the_protocol_refuses_heartbeats(talk: Conversation) -> None:
    answer = talk.ask(StreamsGroupHeartbeatRequest(group_id="g", member_id="m"), 0)
    assert (answer.error_code, answer.error_message) == (ErrorCode.UNSUPPORTED_VERSION, None)


def test_a_broker_without_the_protocol_describes_no_group(talk: Conversation) -> None:
    answer = talk.ask(StreamsGroupDescribeRequest(group_ids=["g", "h"]), 0)
    assert [group.error_code for group in answer.groups] == [ErrorCode.UNSUPPORTED_VERSION] * 2
