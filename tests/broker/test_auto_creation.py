"""Auto-created topics: the first Metadata response says unknown, and the topic exists a moment later."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from barnabas.broker.api.context import NO_CONTEXT
from barnabas.broker.topics.auto_creation import NAMES_MAX, AutoCreation
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.create_topics import CreateTopicsRequest
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.testing import Broker

from .conversation import Conversation

VERSION = 12
SETTINGS = {"request.timeout.ms": 1000}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def asked(*names: str, creates: bool = True) -> MetadataRequest:
    topics = [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=creates)


def codes(response: MetadataResponse) -> dict[str | None, int]:
    return {topic.name: topic.error_code for topic in response.topics}


def wait_for(talk: Conversation, *names: str) -> None:
    deadline = time.monotonic() + 20
    while set(codes(talk.ask(asked(*names, creates=False), VERSION)).values()) != {ErrorCode.NONE}:
        assert time.monotonic() < deadline, names


def test_a_topic_that_was_just_deleted_does_not_look_like_a_new_one(broker: Broker) -> None:
    with Conversation(broker) as talk:
        assert codes(talk.ask(asked("t"), VERSION)) == {"t": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        wait_for(talk, "t")
        talk.ask(DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name="t")]), 6)
        assert codes(talk.ask(asked("t"), VERSION)) == {"t": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_concurrent_requests_for_a_topic_create_it_once() -> None:
    async def scenario() -> None:
        controller = SlowController()
        loop = asyncio.get_running_loop()
        creation = AutoCreation(SimpleNamespace(loop=loop, settings=SETTINGS, controller=controller))  # type: ignore[arg-type]
        creation.begin(creation.missing(["a", "b", "a"]), NO_CONTEXT)
        assert creation.missing(["b", "c"]) == ["c"]
        await asyncio.sleep(0)
        assert [[topic.name for topic in request.topics] for request in controller.asked] == [["a", "b"]]
        controller.answer.set_exception(KafkaError(ErrorCode.NOT_CONTROLLER, "no controller"))
        while creation.missing(["b"]) == []:
            await asyncio.sleep(0)  # refused: the next client may retry

    asyncio.run(scenario())


def test_the_number_of_topics_being_created_is_bounded() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        creation = AutoCreation(SimpleNamespace(loop=loop, settings=SETTINGS, controller=SlowController()))  # type: ignore[arg-type]
        creation.begin(creation.missing([str(number) for number in range(NAMES_MAX + 5)]), NO_CONTEXT)
        assert creation.missing(["one more"]) == []
        creation.close()

    asyncio.run(scenario())


class SlowController:
    def __init__(self) -> None:
        self.asked: list[CreateTopicsRequest] = []
        self.answer = asyncio.get_running_loop().create_future()

    async def handle(self, request: CreateTopicsRequest, version: int, *, context: object) -> object:
        self.asked.append(request)
        return await self.answer


def test_invalid_names_are_refused_and_the_others_created(broker: Broker) -> None:
    with Conversation(broker) as talk:
        found = codes(talk.ask(asked("not a name", "good"), VERSION))
        assert found == {
            "not a name": ErrorCode.INVALID_TOPIC_EXCEPTION,
            "good": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        wait_for(talk, "good")
