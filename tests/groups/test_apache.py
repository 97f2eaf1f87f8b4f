"""Marked transcripts get the same responses from Apache Kafka, and both write the same records."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.groups.basics.records import decode
from barnabas.protocol.log_records.consumer_offsets import GroupMetadataValue
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.records.batch import headers
from barnabas.records.record import read_records
from barnabas.testing.apache import ApacheKafka
from barnabas.testing.waiting import wait_until
from replication.transcript import SEPARATOR

from .apache_side import ApacheSide
from .conversation import Conversation
from .test_transcripts import TOPICS, TRANSCRIPTS, ShardTranscript

pytestmark = [pytest.mark.java, pytest.mark.slow]

COMPARED = [path for path in TRANSCRIPTS if "Apache Kafka 4.3.1 gave the same answers" in path.read_text()]
COORDINATOR_TIMEOUT_S = 30.0
TOPIC = "__consumer_offsets-0"


@pytest.fixture(scope="module")
def kafka(java: None) -> Iterator[ApacheKafka]:
    with ApacheKafka() as node:
        admin = AdminClient({"bootstrap.servers": node.bootstrap})
        for made in admin.create_topics([NewTopic(*topic) for topic in TOPICS.items()]).values():
            made.result()
        yield node


@pytest.fixture
def side(kafka: ApacheKafka) -> Iterator[ApacheSide]:
    ids: dict[str, bytes] = {}
    found = ApacheSide(kafka.port, ids)
    wait_for_coordinator(found)
    described = found.ask("setup", MetadataRequest(topics=None), 12)
    assert isinstance(described, MetadataResponse)
    ids.update({topic.name: topic.topic_id for topic in described.topics if topic.name})
    yield found
    found.close()


def wait_for_coordinator(side: ApacheSide) -> None:
    conversation = Conversation(side)

    def is_there() -> bool:
        found = side.ask("setup", FindCoordinatorRequest(coordinator_keys=["g"]), 4)
        assert isinstance(found, FindCoordinatorResponse)
        # Partitions are loaded a moment after they have a leader.
        return not found.coordinators[0].error_code and " Dead " in conversation.answer("describe", {})

    wait_until(is_there, COORDINATOR_TIMEOUT_S, "a coordinator")


def commands(path: Path) -> list[str]:
    blocks = path.read_text().strip().split("\n\n")
    heads = [block.partition(SEPARATOR)[0].strip().split("\n") for block in blocks]
    return [line for head in heads for line in head if not line.startswith("#")]


@pytest.mark.recorded()
@pytest.mark.parametrize("path", COMPARED, ids=lambda path: path.stem)
def test_apache_kafka_responds_alike_and_writes_the_same_records(
    path: Path, kafka: ApacheKafka, side: ApacheSide
) -> None:
    records_before = len(shown_log(kafka.data / TOPIC))
    ours = ShardTranscript()
    theirs = Conversation(side)
    for command in commands(path):
        verb, *pairs = command.split()
        words = dict(pair.split("=", 1) for pair in pairs)
        said = [line for line in ours.answer(verb, words).split("\n") if not line.startswith("  ")]
        side.waits = said[0].endswith(" waits")
        side.hear = [line.partition(":")[0] for line in said[1:]]
        assert theirs.answer(verb, words).split("\n") == said, command
    side.waits, side.hear = False, []
    written = shown_log(kafka.data / TOPIC)[records_before:]
    # they are empty: the next transcript starts afresh
    theirs.answer("delete", {"groups": "g,simple,workers"})
    assert sorted(written) == sorted(shown(*entry) for entry in ours.side.host.log)


def shown_log(folder: Path) -> list[str]:
    data = (folder / "00000000000000000000.log").read_bytes()
    return [
        shown(record.key, record.value)
        for position, header in headers(data)
        for record in read_records(data[position : position + header.size])
        if record.key is not None
    ]


def shown(key: bytes, value: bytes | None) -> str:
    """A record without times and ids, which differ between brokers; the order of members in Kafka is
    arbitrary."""
    entry = decode(key, value)
    assert entry is not None
    if isinstance(entry.value, GroupMetadataValue):
        entry.value.members.sort(key=lambda member: member.client_id)
    text = re.sub(r"timestamp=\d+|topic_id=b(['\"]).*?\1(?=[,)])", "", repr(entry))
    return re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<id>", text)
