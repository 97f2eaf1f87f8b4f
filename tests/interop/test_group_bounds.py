"""Groups used without measure: answered, bounded, and nobody else is harmed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from barnabas.protocol import ApiKey

from .comparing import Ports
from .members import Member, group, join_body, subscription
from .scenarios.group_consumer import newcomer
from .streams_members import joining, subtopology
from .talk import Talk

MANY = 100_000


@pytest.fixture
def talk(our_ports: Ports) -> Iterator[Talk]:
    with closing(Talk(our_ports.broker, "bounds")) as made:
        yield made


def is_served(talk: Talk, name: str) -> bool:
    """Somebody else's group works."""
    with closing(Member(talk, group(talk, name), "bystander")) as other:
        other.join()
        assert other.sync(assignments={other.id: b"mine"})["assignment"] == b"mine"
        return bool(other.beat()["error_code"] == "NONE" and other.leave()["error_code"] == "NONE")


@pytest.mark.parametrize(
    "metadata", [b"", b"\0", b"garbage " * 3, b"\0\0\x7f\xff\xff\xff", b"\0\x09" + b"\xff" * 20]
)
def test_metadata_that_is_none_of_consumers_is_carried_as_it_is(talk: Talk, metadata: bytes) -> None:
    """Apache Kafka never answers some of these."""
    name = group(talk, f"garbage-{metadata.hex()}")
    with closing(Member(talk, name, "one", protocols=[{"name": "range", "metadata": metadata}])) as one:
        joined = one.join()
        assert (joined["error_code"], joined["members"][0]["metadata"]) == ("NONE", metadata)
        assert one.sync(assignments={one.id: b"x"})["error_code"] == "NONE"
        assert one.leave()["error_code"] == "NONE"
    assert is_served(talk, f"beside-{metadata.hex()}")


def test_a_subscription_to_very_many_topics(talk: Talk) -> None:
    topics = [f"topic-{n}" for n in range(MANY)]
    name = group(talk, "many")
    with closing(Member(talk, name, "one")) as one:
        answer = one.join(protocols=[{"name": "range", "metadata": subscription(*topics)}])
        assert answer["error_code"] in ("NONE", "UNKNOWN_SERVER_ERROR", "RECORD_TOO_LARGE")
    with closing(newcomer(talk, talk.name("many consumer"), "one", topics)) as new:
        fields = new.joining  # type: ignore[attr-defined]
        answer = new.heartbeat("joins", epoch=0, **fields)
        assert answer["error_code"] != "NONE" or answer["assignment"] is not None
    assert is_served(talk, "beside many topics")


def test_a_flood_of_joins_and_of_promised_ids(talk: Talk) -> None:
    name = group(talk, "flood")
    for _ in range(2_000):
        assert talk.silently(ApiKey.JOIN_GROUP, 9, **join_body(name))["error_code"] == "MEMBER_ID_REQUIRED"
    assert is_served(talk, "beside the flood")
    members = [Member(talk, talk.name("crowd"), f"{n}") for n in range(200)]
    try:
        for member in members:
            member.send_join(version=3)  # most of them wait for the first one, who never comes back
        assert is_served(talk, "beside the crowd")
    finally:
        for each in members:
            each.close()
    assert is_served(talk, "after the crowd")


def test_a_commit_of_very_many_partitions_is_answered(talk: Talk) -> None:
    topic = talk.topic(partitions=2)
    name = group(talk, "commits")
    places = [{"partition_index": n % 2, "committed_offset": n} for n in range(MANY)]
    body = {"group_id": name, "topics": [{"name": topic, "partitions": places}]}
    answer = talk.silently(ApiKey.OFFSET_COMMIT, 9, **body)
    assert len(answer["topics"][0]["partitions"]) == MANY
    words = [{"partition_index": 0, "committed_offset": 1, "committed_metadata": "x" * 4_000}] * 2_000
    answer = talk.silently(
        ApiKey.OFFSET_COMMIT, 9, group_id=name, topics=[{"name": topic, "partitions": words}]
    )
    assert len(answer["topics"][0]["partitions"]) == 2_000
    assert is_served(talk, "beside many commits")


def test_an_expression_that_takes_long_elsewhere(talk: Talk) -> None:
    talk.topic("a" * 100)
    name = group(talk, "expression")
    fields = {"subscribed_topic_names": None, "subscribed_topic_regex": "(a|a)*(a|aa)+(a+)+b" * 5}
    with closing(newcomer(talk, name, "one", [])) as one:
        joining = one.joining | fields  # type: ignore[attr-defined]
        assert one.heartbeat("joins", epoch=0, **joining)["error_code"] == "NONE"
    assert is_served(talk, "beside the expression")


def test_a_topology_with_too_many_topics_is_refused(talk: Talk) -> None:
    name = group(talk, "large")
    topology = {"epoch": 0, "subtopologies": [subtopology(0, [f"t{number}" for number in range(MANY)])]}
    answer = talk.silently(
        ApiKey.STREAMS_GROUP_HEARTBEAT, 0, group_id=name, member_id="one", **joining(topology)
    )
    assert answer["error_code"] == "STREAMS_INVALID_TOPOLOGY"
    assert is_served(talk, "beside-the-large")
