"""Fetches of many partitions, served in pieces: the responses that the same fetches get at once."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from barnabas.broker.api.deferred import Deferred
from barnabas.broker.fetch.large_fetch import LargeFetch
from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.testing import Broker
from barnabas.testing.waiting import wait_until

from .conversation import Conversation, batch, fetch, produce
from .fetches_in_pieces import in_pieces

__all__ = ["in_pieces"]

MANY = 9
TOPICS = {"many": MANY, "others": 3}
BY_NAME, BY_ID = 12, 17
Topic = FetchRequest.FetchTopic
Data = FetchResponse.FetchableTopicResponse.PartitionData
Places = dict[tuple[str, int], int]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        for name, partitions in TOPICS.items():
            broker.create_topic(name, partitions=partitions)
        yield broker


class Client:
    """A consumer with a session."""

    def __init__(self, talk: Conversation, ids: dict[str, bytes], version: int) -> None:
        self.talk, self.version = talk, version
        self._names = {topic_id: name for name, topic_id in ids.items()}
        self._ids = ids if version > BY_NAME else {}
        self.session_id = self.epoch = 0

    def ask(self, places: Places, forgotten: Iterable[tuple[str, int]] = (), **fields: int) -> FetchResponse:
        response: FetchResponse = self.talk.ask(self.request(places, forgotten, **fields), self.version)
        self.session_id = response.session_id
        self.epoch = self.epoch + 1 if self.session_id else 0
        return response

    def request(
        self, places: Places, forgotten: Iterable[tuple[str, int]] = (), **fields: int
    ) -> FetchRequest:
        topics: dict[str, Topic] = {}
        for (name, index), offset in places.items():
            wanted = Topic.FetchPartition(
                partition=index,
                fetch_offset=offset,
                partition_max_bytes=fields.get("partition_bytes", 1 << 20),
            )
            topics.setdefault(name, Topic(**self._named(name), partitions=[])).partitions.append(wanted)
        return FetchRequest(
            max_wait_ms=fields.get("wait_ms", 0),
            min_bytes=fields.get("min_bytes", 1),
            max_bytes=fields.get("max_bytes", 1 << 24),
            isolation_level=fields.get("isolation", 0),
            session_id=self.session_id,
            session_epoch=fields.get("epoch", self.epoch),
            topics=list(topics.values()),
            forgotten_topics_data=[
                FetchRequest.ForgottenTopic(**self._named(name), partitions=[index])
                for name, index in forgotten
            ],
        )

    def _named(self, name: str) -> dict[str, Any]:
        if self.version <= BY_NAME:
            return {"topic": name}
        return {"topic_id": self._ids.get(name, b"?" * 16)}

    def shown(self, response: FetchResponse) -> Any:
        """What of a response does not depend on the session's id."""
        return response.error_code, [
            (topic.topic or self._names.get(topic.topic_id), [shown(data) for data in topic.partitions])
            for topic in response.responses
        ]


def shown(data: Data) -> tuple[Any, ...]:
    return (
        data.partition_index,
        data.error_code,
        data.high_watermark,
        data.last_stable_offset,
        data.log_start_offset,
        data.aborted_transactions,
        bytes(data.records or b""),
    )


def ids_of(talk: Conversation) -> dict[str, bytes]:
    names = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in TOPICS])
    return {topic.name or "": topic.topic_id for topic in talk.ask(names, 12).topics}


@pytest.mark.parametrize("version", [BY_NAME, BY_ID, 11, 7])
def test_responses_are_those_of_fetches_that_are_served_at_once(
    broker: Broker, in_pieces: Callable[[bool], None], version: int
) -> None:
    rng = random.Random(version)
    places = [(name, index) for name, count in TOPICS.items() for index in range(count)]
    named = [*places, ("many", MANY + 1), ("missing", 0)]
    fetched, encoded = 0, 0
    with Conversation(broker) as talk:
        ids = ids_of(talk)
        one, other = Client(talk, ids, version), Client(talk, ids, version)
        for round_ in range(60):
            for name, count in TOPICS.items():
                sizes = (10, 3_000, 70_000) if rng.random() < 0.1 else (10,)
                talk.ask(*produce(name, *(batch(bytes(rng.choice(sizes))) for _ in range(count))))
            if not round_ % 20:
                one.session_id = other.session_id = one.epoch = other.epoch = 0
            wanted = {place: rng.choice((0, round_, round_ + 5)) for place in named if rng.random() < 0.3}
            forgotten = [place for place in places if one.epoch and rng.random() < 0.05]
            fields = {
                "wait_ms": rng.choice((0, 0, 5)),
                "min_bytes": rng.choice((0, 1, 100_000)),
                "max_bytes": rng.choice((1, 2_000, 1 << 24)),
                "partition_bytes": rng.choice((100, 1 << 20)),
                "isolation": rng.choice((0, 1)),
            }
            in_pieces(False)
            expected = one.ask(wanted, forgotten, **fields)
            in_pieces(True)
            found = other.ask(wanted, forgotten, **fields)
            assert other.shown(found) == one.shown(expected)
            assert (one.epoch == 0) == (other.epoch == 0)
            fetched += len(found.responses)
            encoded += sum(
                len(data.records or b"") > 10_000 for topic in found.responses for data in topic.partitions
            )
    assert fetched > 50 and encoded


def test_a_request_that_takes_steps_to_decode_is_served(broker: Broker) -> None:
    wanted = {("many", index): 0 for index in range(2_000)}
    with Conversation(broker) as talk:
        client = Client(talk, ids_of(talk), BY_NAME)
        assert len(client.request(wanted).encode(BY_NAME)) > 32 * 1024
        [topic] = client.ask(wanted).responses
        assert [data.partition_index for data in topic.partitions] == list(range(2_000))
        assert [data.error_code for data in topic.partitions[:MANY]] == [0] * MANY
        unknown = {data.error_code for data in topic.partitions[MANY:]}
        assert unknown == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert len(client.ask({}).responses[0].partitions) >= 2_000 - MANY  # errors are sent each time


@pytest.fixture
def made(in_pieces: Callable[[bool], None], monkeypatch: pytest.MonkeyPatch) -> list[LargeFetch]:
    """The fetches that are served in pieces."""
    found: list[LargeFetch] = []
    start = LargeFetch.start

    def started(fetch: LargeFetch) -> Deferred:
        found.append(fetch)
        return start(fetch)

    monkeypatch.setattr(LargeFetch, "start", started)
    return found


def until_it_waits(made: list[LargeFetch]) -> None:
    wait_until(lambda: bool(made) and made[-1]._news is not None, what="the fetch waits")


def ends(talk: Conversation) -> Places:
    wanted = {(name, index): 0 for name, count in TOPICS.items() for index in range(count)}
    response = Client(talk, {}, BY_NAME).ask(wanted, epoch=-1)
    return {
        (topic.topic, data.partition_index): data.high_watermark
        for topic in response.responses
        for data in topic.partitions
    }


def test_a_fetch_that_waits_gets_the_next_record(broker: Broker, made: list[LargeFetch]) -> None:
    with Conversation(broker) as talk, Conversation(broker) as other:
        client = Client(talk, {}, BY_NAME)
        client.ask(ends(other))
        talk.send((client.request({}, wait_ms=60_000), BY_NAME))
        until_it_waits(made)
        other.ask(*produce("others", batch(b"v")))
        response = talk.receive()
        [topic] = response.responses
        assert (topic.topic, [data.partition_index for data in topic.partitions]) == ("others", [0])
        assert topic.partitions[0].records
    wait_until(lambda: not left(made), what="no partition is watched")


def left(made: list[LargeFetch]) -> int:
    """How often the partitions of the fetches have one of them as a waiter."""
    return sum(
        waiter == large.more
        for large in made
        for asked in large._session.partitions
        for waiter in (asked.attachment and asked.attachment._waiters) or ()
    )


def test_a_fetch_is_not_left_behind_when_its_connection_closes(
    broker: Broker, made: list[LargeFetch]
) -> None:
    with Conversation(broker) as other:
        with Conversation(broker) as talk:
            client = Client(talk, {}, BY_NAME)
            client.ask(ends(other))
            talk.send((client.request({}, wait_ms=60_000), BY_NAME))
            until_it_waits(made)
            assert left(made) == sum(TOPICS.values())
        wait_until(lambda: not left(made), what="no partition is watched")
        assert made[-1]._broker.fetch_stats.waiting == [0, 0]
        for _ in range(5):  # closed while it is read
            with Conversation(broker) as talk:
                talk.send((Client(talk, {}, BY_NAME).request(ends(other), wait_ms=60_000), BY_NAME))
        assert other.ask(*fetch("others", 0)).responses


def test_a_later_request_of_the_session_supersedes_one_that_waits(
    broker: Broker, made: list[LargeFetch]
) -> None:
    with Conversation(broker) as talk, Conversation(broker) as other:
        client = Client(talk, {}, BY_NAME)
        client.ask(ends(other))
        talk.send((client.request({}, wait_ms=60_000), BY_NAME))
        until_it_waits(made)
        client.talk, client.epoch = other, client.epoch + 1
        assert not client.ask({}).error_code
        other.ask(*produce("others", batch(b"v")))
        assert talk.receive().error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
        assert client.ask({}).responses


def test_partitions_that_are_deleted_while_a_fetch_waits_have_errors(
    broker: Broker, made: list[LargeFetch]
) -> None:
    with Conversation(broker) as talk, Conversation(broker) as other:
        broker.create_topic("gone", partitions=4)
        client = Client(talk, {}, BY_NAME)
        client.ask({**ends(other), **{("gone", index): 0 for index in range(4)}})
        talk.send((client.request({}, wait_ms=60_000), BY_NAME))
        until_it_waits(made)
        broker.delete_topic("gone")
        wait_until(lambda: are_removed(other, "gone", 4), what="the partitions are removed")
        other.ask(*produce("others", batch(b"v")))
        response = talk.receive()
        found = {topic.topic: [data.error_code for data in topic.partitions] for topic in response.responses}
        assert found == {"gone": [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 4, "others": [0]}


def are_removed(talk: Conversation, topic: str, count: int) -> bool:
    """Whether the broker has none of these partitions any more. It removes them one after the other, behind
    the topic's metadata."""
    response = Client(talk, {}, BY_NAME).ask({(topic, index): 0 for index in range(count)}, epoch=-1)
    return all(
        data.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        for found in response.responses
        for data in found.partitions
    )
