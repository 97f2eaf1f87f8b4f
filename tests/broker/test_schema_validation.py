"""Topics whose records must name a schema: batches are refused unless their subject has it."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer

from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.produce import ProduceRequest, ProduceResponse
from barnabas.records.compression import Compression
from barnabas.records.record import Record, build_batch
from barnabas.testing import Broker
from barnabas.testing.waiting import wait_until
from broker.conversation import PRODUCE_VERSION, Conversation, end_offset, produce
from broker.small_registry import SmallRegistry

VALUES = {"confluent.value.schema.validation": "true"}
KEYS = {"confluent.key.schema.validation": "true"}
STRATEGY = "io.confluent.kafka.serializers.subject."
numbers = itertools.count(1)


@pytest.fixture(scope="module")
def registry() -> Iterator[SmallRegistry]:
    registry = SmallRegistry(login="broker:secret")
    yield registry
    registry.close()


@pytest.fixture(scope="module")
def broker(registry: SmallRegistry) -> Iterator[Broker]:
    overrides = {
        "confluent.schema.registry.url": registry.url,
        "confluent.basic.auth.credentials.source": "USER_INFO",
        "confluent.basic.auth.user.info": "broker:secret",
        "confluent.missing.id.cache.ttl.sec": "1",
    }
    with Broker(overrides=overrides) as broker:
        yield broker


@pytest.fixture
def topic(broker: Broker) -> str:
    name = f"orders-{next(numbers)}"
    broker.create_topic(name, configs=VALUES)
    return name


def named(schema_id: int, payload: bytes = b"x") -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + payload


def batch(*records: Record, compression: Compression = Compression.NONE) -> bytes:
    return bytes(build_batch([one._replace(timestamp=1) for one in records], compression=compression))


def values(*found: bytes | None) -> bytes:
    return batch(*(Record(value=value) for value in found))


def send(broker: Broker, topic: str, *batches: bytes) -> list[Any]:
    with Conversation(broker) as talk:
        answer: ProduceResponse = talk.ask(*produce(topic, *batches))
    return answer.responses[0].partition_responses


def code_of(broker: Broker, topic: str, sent: bytes) -> ErrorCode:
    [found] = send(broker, topic, sent)
    return ErrorCode(found.error_code)


def test_a_batch_that_names_a_schema_of_the_subject_is_appended(
    broker: Broker, registry: SmallRegistry, topic: str
) -> None:
    registry.register(1, "other-value", f"{topic}-value")
    assert code_of(broker, topic, values(named(1), named(1))) == ErrorCode.NONE
    with Conversation(broker) as talk:
        assert end_offset(talk, topic) == 2


def test_the_broker_asks_the_registry_once_for_an_id(
    broker: Broker, registry: SmallRegistry, topic: str
) -> None:
    registry.register(2, f"{topic}-value")
    before = len(registry.asked)
    for _ in range(5):
        assert code_of(broker, topic, values(named(2))) == ErrorCode.NONE
    assert registry.asked[before:] == ["/schemas/ids/2/subjects"]


def test_records_without_a_schema_are_listed_one_by_one(
    broker: Broker, registry: SmallRegistry, topic: str
) -> None:
    registry.register(3, f"{topic}-value")
    [found] = send(broker, topic, values(named(3), b"plain", named(3), b"\0\0\0", b""))
    assert ErrorCode(found.error_code) == ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in found.record_errors] == [1, 3, 4]
    assert "names no schema" in found.record_errors[0].batch_index_error_message
    with Conversation(broker) as talk:
        assert end_offset(talk, topic) == 0


@pytest.mark.parametrize("schema_id", [0, 999, 2**31, 2**32 - 1])
def test_ids_that_the_registry_lacks_are_refused(broker: Broker, topic: str, schema_id: int) -> None:
    [found] = send(broker, topic, values(named(schema_id)))
    assert ErrorCode(found.error_code) == ErrorCode.INVALID_RECORD
    [error] = found.record_errors
    assert error.batch_index == 0
    assert "which its subject does not have" in error.batch_index_error_message


def test_an_id_of_another_subject_is_refused(broker: Broker, registry: SmallRegistry, topic: str) -> None:
    registry.register(4, "elsewhere-value", f"{topic}-key")
    assert code_of(broker, topic, values(named(4))) == ErrorCode.INVALID_RECORD


def test_an_id_that_is_registered_later_is_accepted(
    broker: Broker, registry: SmallRegistry, topic: str
) -> None:
    assert code_of(broker, topic, values(named(5))) == ErrorCode.INVALID_RECORD
    before = len(registry.asked)
    assert code_of(broker, topic, values(named(5))) == ErrorCode.INVALID_RECORD
    assert len(registry.asked) == before, "a missing id is not asked about at once again"
    registry.register(5, f"{topic}-value")
    wait_until(lambda: code_of(broker, topic, values(named(5))) == ErrorCode.NONE, 30)


def test_null_needs_no_schema(broker: Broker, topic: str) -> None:
    sent = batch(Record(key=b"k", value=None))
    assert code_of(broker, topic, sent) == ErrorCode.NONE


def test_keys_and_values_have_their_own_subjects(broker: Broker, registry: SmallRegistry) -> None:
    broker.create_topic("both", configs={**KEYS, **VALUES})
    registry.register(6, "both-key")
    registry.register(7, "both-value")
    good = batch(Record(key=named(6), value=named(7)), Record(key=None, value=named(7)))
    assert code_of(broker, "both", good) == ErrorCode.NONE
    [found] = send(broker, "both", batch(Record(key=named(7), value=named(6))))
    assert [error.batch_index for error in found.record_errors] == [0, 0]
    broker.create_topic("keys", configs=KEYS)
    registry.register(8, "keys-key")
    assert code_of(broker, "keys", batch(Record(key=named(8), value=b"plain"))) == ErrorCode.NONE


PROTO = """syntax = "proto3"; // message No {}
package shop; enum E { A = 0; }
message Order { message Line {} oneof o { int32 a = 1; } } message Bill {}"""
ORDER = '{"type":"record","name":"Order","namespace":"shop","fields":[]}'


@pytest.mark.parametrize(
    ("strategy", "subject", "schema", "schema_type"),
    [
        (
            "RecordNameStrategy",
            "shop.Order",
            ORDER,
            "AVRO",
        ),
        ("RecordNameStrategy", "shop.Order", '{"type":"record","name":"shop.Order","fields":[]}', "AVRO"),
        ("RecordNameStrategy", "Order", '{"title":"Order","type":"object"}', "JSON"),
        ("RecordNameStrategy", "shop.Bill", PROTO, "PROTOBUF"),
        ("RecordNameStrategy", "shop.Order.Line", PROTO, "PROTOBUF"),
        (
            "TopicRecordNameStrategy",
            "{topic}-shop.Order",
            ORDER,
            "AVRO",
        ),
        ("TopicRecordNameStrategy", "{topic}-shop.Order", PROTO, "PROTOBUF"),
    ],
)
def test_subjects_are_named_by_the_strategy_of_the_topic(
    broker: Broker, registry: SmallRegistry, strategy: str, subject: str, schema: str, schema_type: str
) -> None:
    number = next(numbers)
    topic = f"strategies-{number}"
    settings = {**VALUES, "confluent.value.subject.name.strategy": STRATEGY + strategy}
    broker.create_topic(topic, configs=settings)
    good, bad = 10_000 + 2 * number, 10_001 + 2 * number
    registry.register(good, subject.format(topic=topic), schema=schema, schema_type=schema_type)
    registry.register(bad, f"{topic}-value", "shop.E", schema=schema, schema_type=schema_type)
    assert code_of(broker, topic, values(named(good))) == ErrorCode.NONE
    assert code_of(broker, topic, values(named(bad))) == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", list(Compression))
def test_large_and_compressed_batches_are_read_in_threads(
    broker: Broker, registry: SmallRegistry, topic: str, codec: Compression
) -> None:
    registry.register(20, f"{topic}-value")
    good = [Record(value=named(20, b"x" * 50)) for _ in range(3000)]
    assert code_of(broker, topic, batch(*good, compression=codec)) == ErrorCode.NONE
    good[2000] = Record(value=b"plain")
    [found] = send(broker, topic, batch(*good, compression=codec))
    assert [error.batch_index for error in found.record_errors] == [2000]
    assert ErrorCode(found.error_code) == ErrorCode.INVALID_RECORD


def test_a_guid_in_the_payload_or_in_a_header_names_a_schema(
    broker: Broker, registry: SmallRegistry, topic: str
) -> None:
    guid = uuid.uuid4()
    registry.guids[str(guid)] = 30
    registry.register(30, f"{topic}-value")
    prefix = b"\1" + guid.bytes
    in_header = Record(value=b"payload", headers=(("a", b"b"), ("__value_schema_id", prefix + b"\0")))
    assert code_of(broker, topic, batch(Record(value=prefix + b"payload"), in_header)) == ErrorCode.NONE
    wrong = Record(value=named(30), headers=(("__value_schema_id", b"\1" + uuid.uuid4().bytes),))
    assert code_of(broker, topic, batch(wrong)) == ErrorCode.INVALID_RECORD
    assert code_of(broker, topic, batch(Record(value=b"\1short"))) == ErrorCode.INVALID_RECORD


def test_a_batch_may_name_many_schemas(broker: Broker, registry: SmallRegistry, topic: str) -> None:
    for schema_id in range(100, 200):
        registry.register(schema_id, f"{topic}-value")
    assert (
        code_of(broker, topic, values(*(named(schema_id) for schema_id in range(100, 200)))) == ErrorCode.NONE
    )


def test_a_registry_that_fails_makes_producers_try_again(
    broker: Broker, registry: SmallRegistry, topic: str
) -> None:
    registry.register(40, f"{topic}-value")
    registry.is_failing = True
    try:
        [found] = send(broker, topic, values(named(40)))
        assert ErrorCode(found.error_code) == ErrorCode.REQUEST_TIMED_OUT
        assert "secret" not in found.error_message
        assert code_of(broker, topic, values(b"plain")) == ErrorCode.INVALID_RECORD, "nobody need be asked"
    finally:
        registry.is_failing = False
    assert code_of(broker, topic, values(named(40))) == ErrorCode.NONE


@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"<html>",
        b"{}",
        b"5",
        b"null",
        b'"value"',
        b"\xff",
        b"[" * 100_000,
        b"[" + b'"a",' * 2_000_000 + b'"a"]',
    ],
    ids=lambda found: repr(found[:8]),
)
def test_garbage_of_a_registry_makes_producers_try_again(
    broker: Broker, registry: SmallRegistry, topic: str, garbage: bytes
) -> None:
    registry.register(45, f"{topic}-value")
    registry.garbage = garbage
    try:
        assert code_of(broker, topic, values(named(45))) == ErrorCode.REQUEST_TIMED_OUT
        guid = Record(value=b"\1" + bytes(16))
        assert code_of(broker, topic, batch(guid)) == ErrorCode.REQUEST_TIMED_OUT
    finally:
        registry.garbage = None
    assert code_of(broker, topic, values(named(45))) == ErrorCode.NONE


def test_only_partitions_that_wait_for_the_registry_are_refused(
    broker: Broker, registry: SmallRegistry, topic: str
) -> None:
    registry.register(50, f"{topic}-value")
    broker.create_topic(f"plain-{topic}")
    data = ProduceRequest.TopicProduceData

    def both() -> list[ErrorCode]:
        topics = [
            data(name=name, partition_data=[data.PartitionProduceData(index=0, records=values(named(50)))])
            for name in (f"plain-{topic}", topic)
        ]
        with Conversation(broker) as talk:
            request = ProduceRequest(acks=1, timeout_ms=5000, topic_data=topics)
            answer = talk.ask(request, PRODUCE_VERSION)
        return [ErrorCode(found.partition_responses[0].error_code) for found in answer.responses]

    registry.is_failing = True
    try:
        assert both() == [ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT]
    finally:
        registry.is_failing = False
    assert both() == [ErrorCode.NONE, ErrorCode.NONE]


def test_other_requests_are_served_while_the_registry_is_slow(
    broker: Broker, registry: SmallRegistry, topic: str
) -> None:
    registry.register(60, f"{topic}-value")
    registry.register(61, f"{topic}-value")
    assert code_of(broker, topic, values(named(60))) == ErrorCode.NONE
    while registry.is_asked.acquire(blocking=False):
        pass
    registry.may_respond.clear()
    try:
        with Conversation(broker) as slow, Conversation(broker) as quick:
            slow.send(produce(topic, values(named(61))), produce(topic, values(named(60))))
            assert registry.is_asked.acquire(timeout=30)
            assert (
                quick.ask(*produce(topic, values(named(60)))).responses[0].partition_responses[0].base_offset
                == 1
            )
            assert not slow.has_answer()
            registry.may_respond.set()
            offsets = [slow.receive().responses[0].partition_responses[0].base_offset for _ in range(2)]
            assert offsets == [2, 3], "the requests of a connection stay in order"
    finally:
        registry.may_respond.set()


def test_validation_is_turned_on_and_off_while_running(broker: Broker, registry: SmallRegistry) -> None:
    from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

    broker.create_topic("switched")
    assert code_of(broker, "switched", values(b"plain")) == ErrorCode.NONE
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for value, expected in (("true", ErrorCode.INVALID_RECORD), ("false", ErrorCode.NONE)):
        name = "confluent.value.schema.validation"
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.TOPIC, "switched", incremental_configs=[entry])
        for done in admin.incremental_alter_configs([resource]).values():
            done.result(30)
        wait_until(lambda expected=expected: code_of(broker, "switched", values(b"plain")) == expected, 30)


def test_unknown_strategies_are_refused(broker: Broker) -> None:
    with pytest.raises(Exception, match=r"INVALID_CONFIG|Invalid value|must be one of"):
        broker.create_topic("strange", configs={"confluent.value.subject.name.strategy": "a.Strategy"})


def test_a_client_learns_of_refused_records_and_waits_for_the_registry(
    broker: Broker, registry: SmallRegistry, topic: str
) -> None:
    registry.register(70, f"{topic}-value")
    outcomes: list[Any] = []
    producer = Producer({"bootstrap.servers": broker.bootstrap, "retry.backoff.ms": 20, "linger.ms": 0})

    def sent(value: bytes) -> Any:
        producer.produce(topic, value, on_delivery=lambda error, _: outcomes.append(error))
        assert producer.flush(30) == 0
        return outcomes.pop()

    assert sent(b"plain").name() == "INVALID_RECORD"
    while registry.is_asked.acquire(blocking=False):
        pass
    registry.is_failing = True
    producer.produce(topic, named(70), on_delivery=lambda error, _: outcomes.append(error))
    producer.poll(0)
    assert registry.is_asked.acquire(timeout=30)
    registry.is_failing = False
    assert producer.flush(60) == 0
    assert outcomes == [None], "the producer sent the batch again"


def test_a_request_for_many_partitions_is_checked_in_parts(broker: Broker, registry: SmallRegistry) -> None:
    broker.create_topic("wide", partitions=70, configs=VALUES)
    registry.register(80, "wide-value")
    found = send(broker, "wide", *([values(named(80))] * 69), values(b"plain"))
    codes = [ErrorCode(one.error_code) for one in found]
    assert codes == [ErrorCode.NONE] * 69 + [ErrorCode.INVALID_RECORD]


def test_records_of_transactions_are_checked(broker: Broker, registry: SmallRegistry, topic: str) -> None:
    registry.register(90, f"{topic}-value")
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": f"tx-{topic}"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, named(90))
    producer.commit_transaction(30)
    producer.begin_transaction()
    producer.produce(topic, b"plain")
    with pytest.raises(KafkaException, match=r"INVALID_RECORD|must be aborted"):
        producer.commit_transaction(30)
    producer.abort_transaction(30)
    with Conversation(broker) as talk:
        assert 2 <= end_offset(talk, topic) <= 3  # a record and markers, nothing of the refused batch


def test_a_refused_batch_without_acks_ends_the_connection(broker: Broker, topic: str) -> None:
    with Conversation(broker) as talk:
        talk.send(produce(topic, values(b"plain"), acks=0), answered=False)
        assert talk.is_closed()


def test_a_new_connection_is_served_after_one_left_while_the_registry_was_asked(
    broker: Broker, registry: SmallRegistry, topic: str
) -> None:
    registry.register(95, f"{topic}-value")
    while registry.is_asked.acquire(blocking=False):
        pass
    registry.may_respond.clear()
    try:
        with Conversation(broker) as talk:
            talk.send(produce(topic, values(named(95))))
            assert registry.is_asked.acquire(timeout=30)
    finally:
        registry.may_respond.set()
    assert code_of(broker, topic, values(named(95))) == ErrorCode.NONE


def test_records_must_name_a_schema_but_no_registry_is_set() -> None:
    with Broker() as broker:
        broker.create_topic("lonely", configs=VALUES)
        [found] = send(broker, "lonely", values(named(1)))
    assert ErrorCode(found.error_code) == ErrorCode.INVALID_CONFIG
    assert "confluent.schema.registry.url is not set" in found.error_message
