"""Marked transcripts get the same responses from Apache Kafka, and both write the same records."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.protocol import ErrorCode, Message
from barnabas.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from barnabas.protocol.messages.end_txn import EndTxnRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.records.batch import headers
from barnabas.records.record import read_records
from barnabas.testing.apache import ApacheKafka
from barnabas.testing.waiting import wait_until
from barnabas.transactions.records import encode
from groups.apache_side import ApacheSide
from groups.test_apache import commands

from .conversation import Conversation
from .test_transcripts import TOPICS, TRANSCRIPTS, ShardTranscript, decoded

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(600)]

COMPARED = [path for path in TRANSCRIPTS if "Apache Kafka 4.3.1 gave the same answers" in path.read_text()]
TIMEOUT_S = 30.0
TRANSACTION, GROUP = 1, 0
LOG = Path("__transaction_state-0") / "00000000000000000000.log"


@pytest.fixture
def kafka(java: None) -> Iterator[ApacheKafka]:
    with ApacheKafka() as node:
        admin = AdminClient({"bootstrap.servers": node.bootstrap})
        for made in admin.create_topics([NewTopic(*topic) for topic in TOPICS.items()]).values():
            made.result()
        yield node


class Patient:
    """Apache Kafka responds to EndTxn before the end is complete: the next request waits for that."""

    def __init__(self, side: ApacheSide) -> None:
        self.side = side

    def ask(self, client: str, request: Message, version: int) -> Message:
        answer = self.side.ask(client, request, version)
        assert answer is not None
        is_refused = getattr(answer, "error_code", 0) == ErrorCode.CONCURRENT_TRANSACTIONS
        if isinstance(request, EndTxnRequest) or (isinstance(request, InitProducerIdRequest) and is_refused):
            self.wait_until_complete(request.transactional_id or "")
        return answer

    def wait_until_complete(self, name: str) -> None:
        def is_complete() -> bool:
            answer = self.side.ask("looking", DescribeTransactionsRequest(transactional_ids=[name]), 0)
            assert isinstance(answer, DescribeTransactionsResponse)
            return not answer.transaction_states[0].transaction_state.startswith("Prepare")

        wait_until(is_complete, TIMEOUT_S, f"the end of {name}'s transaction")


@pytest.fixture
def side(kafka: ApacheKafka) -> Iterator[ApacheSide]:
    found = ApacheSide(kafka.port, {})
    for kind, key in ((GROUP, "g"), (TRANSACTION, "tx")):
        wait_for_coordinator(found, kind, key)
    wait_for_producer_ids(found)
    yield found
    found.close()


def wait_for_coordinator(side: ApacheSide, kind: int, key: str) -> None:
    """Partitions are loaded a moment after they have a leader."""

    def is_there() -> bool:
        found = side.ask("setup", FindCoordinatorRequest(key_type=kind, coordinator_keys=[key]), 4)
        assert isinstance(found, FindCoordinatorResponse)
        described = side.ask("setup", DescribeTransactionsRequest(transactional_ids=[key]), 0)
        assert isinstance(described, DescribeTransactionsResponse)
        is_loaded = described.transaction_states[0].error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        return not found.coordinators[0].error_code and (kind == GROUP or is_loaded)

    wait_until(is_there, TIMEOUT_S, f"a coordinator of {key}")


def wait_for_producer_ids(side: ApacheSide) -> None:
    def are_there() -> bool:
        answer = side.ask("setup", InitProducerIdRequest(transactional_id=None), 4)
        assert isinstance(answer, InitProducerIdResponse)
        return not answer.error_code

    wait_until(are_there, TIMEOUT_S, "producer ids")


@pytest.mark.recorded()
@pytest.mark.parametrize("path", COMPARED, ids=lambda path: path.stem)
def test_apache_kafka_responds_alike_and_writes_the_same_records(
    path: Path, kafka: ApacheKafka, side: ApacheSide
) -> None:
    ours = ShardTranscript()
    theirs = Conversation(Patient(side))
    for command in commands(path):
        verb, *pairs = command.split()
        words = dict(pair.split("=", 1) for pair in pairs)
        said = [line for line in ours.answer(verb, words).split("\n") if not line.startswith("  ")]
        if verb == "exhaust":
            exhaust(theirs, int(words["epoch"]))
        else:
            assert theirs.answer(verb, words).split("\n") == said, command
    if "exhaust" in path.read_text():
        return  # it took thousands of records to get there
    assert shown_log((kafka.data / LOG).read_bytes(), theirs) == [
        shown(key, value, ours.talk) for key, value in ours.side.host.log
    ]


def exhaust(talk: Conversation, epoch: int) -> None:
    """Begin producers until the epochs are used up."""
    while talk.own.get("a", (-1, -1))[1] != epoch:
        talk.answer("init", {"as": "a", "id": "tx"})
    talk.name(talk.own["a"][0])


def shown_log(data: bytes, talk: Conversation) -> list[str]:
    return [
        shown(record.key, record.value, talk)
        for position, header in headers(data)
        for record in read_records(data[position : position + header.size])
        if record.key is not None
    ]


def shown(key: bytes, value: bytes | None, talk: Conversation) -> str:
    """A record without times and with names for producer ids; the order of partitions in Kafka is
    arbitrary."""
    entry = decoded((key, value))
    assert encode(entry) == (key, value), "not a byte differs"
    assert entry.value is not None
    for name in ("producer_id", "previous_producer_id", "next_producer_id"):
        setattr(entry.value, name, talk.name(getattr(entry.value, name)))
    for topic in entry.value.transaction_partitions or ():
        topic.partition_ids.sort()
    if entry.value.transaction_partitions:
        entry.value.transaction_partitions.sort(key=lambda topic: topic.topic)
    entry.value.transaction_last_update_timestamp_ms = 0
    entry.value.transaction_start_timestamp_ms = min(entry.value.transaction_start_timestamp_ms, 0)
    return repr(entry)
