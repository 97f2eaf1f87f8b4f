"""Events that are counted where they happen: records without a key, logins that renew a session, throttled
clients, pushes of clients."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample
from tests.security.sasl_broker import SASL_SETTINGS, USERS, add_scram_user, client_properties

from barnabas.broker.metrics.parts.socket_gauges import DepletedTime
from barnabas.broker.quotas.client_quotas import WAITS_PRUNED_FROM, Waits
from barnabas.client.asyncio_network import connect
from barnabas.client.core.address import parse_bootstrap
from barnabas.client.core.network import ConnectionSettings
from barnabas.connection.arena import Arena
from barnabas.protocol import ApiKey
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.protocol.messages.produce import ProduceRequest, ProduceResponse
from barnabas.security.clients.client_security import client_security
from barnabas.testing import Broker
from barnabas.testing.ports import free_ports
from barnabas.testing.waiting import wait_until
from interop.requests import batch, fetch, produce
from interop.talk import Talk

from ..administration import set_quotas

SOCKETS = "kafka_server_socket_server_metrics_"


class Watched(Broker):
    def __init__(self, **overrides: str) -> None:
        [self.metrics_port] = free_ports(1)
        more = {name.replace("_", "."): value for name, value in overrides.items()}
        super().__init__(overrides={**more, "barnabas.metrics.port": self.metrics_port})

    def page(self) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=30) as answer:
            return str(answer.read().decode())

    def mbeans(self, pattern: str) -> list[str]:
        url = f"http://127.0.0.1:{self.metrics_port}/jolokia/search/{pattern}"
        with urllib.request.urlopen(url, timeout=30) as answer:
            return list(json.load(answer)["value"])

    def samples(self, name: str) -> list[Sample]:
        families = text_string_to_metric_families(self.page())
        return [sample for family in families for sample in family.samples if sample.name == name]

    def total(self, name: str) -> float:
        """The sum of all samples of a name."""
        found = self.samples(name)
        assert found, f"there is no {name}"
        return sum(sample.value for sample in found)

    def total_alone(self, name: str) -> float:
        """The value of all topics together, which must be there once."""
        [found] = [each.value for each in self.samples(name) if not each.labels.get("topic")]
        return found


@pytest.fixture(scope="module")
def watched() -> Iterator[Watched]:
    with Watched() as broker:
        yield broker


def test_records_without_a_key_that_a_compacted_topic_refuses_are_counted(watched: Watched) -> None:
    """Apache Kafka counted 10 for such a batch, too."""
    admin = AdminClient({"bootstrap.servers": watched.bootstrap})
    topic = NewTopic("compacted", 1, 1, config={"cleanup.policy": "compact"})
    admin.create_topics([topic])["compacted"].result(30)
    refused = []
    producer = Producer({"bootstrap.servers": watched.bootstrap, "linger.ms": 200})
    for _ in range(10):
        producer.produce("compacted", b"x", on_delivery=lambda error, _: refused.append(error))
    producer.produce("compacted", b"x", key=b"k")
    producer.flush(30)
    assert {error.code() for error in refused} == {KafkaError.INVALID_RECORD}
    assert watched.total("kafka_server_brokertopicmetrics_nokeycompactedtopicrecords_total") == 10


def test_a_throttled_client_waits_in_the_queue_of_its_quota(watched: Watched) -> None:
    watched.create_topic("limited")
    set_quotas(watched, {"client-id": "hasty"}, producer_byte_rate=1000.0)
    queue = "kafka_server_quota_queue_size"
    assert watched.total(queue) == 0
    producer = Producer({"bootstrap.servers": watched.bootstrap, "client.id": "hasty", "linger.ms": 0})
    for _ in range(3):
        producer.produce("limited", b"x" * 20_000)
        producer.poll(0.2)
    wait_until(lambda: watched.total(queue) > 0)
    rate = 'kafka_server_quota_byte_rate{user="",clientId="hasty",resource="Produce"}'
    assert rate in watched.page()
    assert watched.mbeans("kafka.server:type=Produce,client-id=*") == [
        "kafka.server:client-id=hasty,type=Produce"
    ]
    set_quotas(watched, {"client-id": "hasty"}, producer_byte_rate=None)
    producer.flush(30)


def test_waits_end_and_their_memory_is_bounded() -> None:
    waits = Waits()
    for number in range(10 * WAITS_PRUNED_FROM):
        waits.add(number + 10.0, float(number))
    assert waits.count(10.0 * WAITS_PRUNED_FROM - 1) == 10
    assert waits.count(1e9) == 0
    for _ in range(10 * WAITS_PRUNED_FROM):
        waits.add(1.0, 2.0)
    assert len(waits._ends_ms) <= WAITS_PRUNED_FROM


def test_the_time_in_which_large_requests_wait_for_memory_is_counted() -> None:
    arena, time = Arena(large_bytes_max=1024), DepletedTime()
    arena.on_starving = time.starving
    buffer = arena.borrow(1024)
    assert arena.is_exhausted and time.total_ns() == 0
    resumed = []
    for number in range(2):
        arena.wait_for_room(lambda number=number: resumed.append(number))  # type: ignore[misc]
    first = time.total_ns()
    assert 0 < first < time.total_ns()  # it goes on
    arena.return_buffer(buffer, referenced=False)
    after = time.total_ns()
    assert resumed == [0, 1] and after > first
    assert time.total_ns() == after


@pytest.fixture(scope="module")
def with_logins() -> Iterator[Watched]:
    """A listener with SASL whose sessions end after about a second."""
    broker = Watched(
        **SASL_SETTINGS,
        **{
            "connection.failed.authentication.delay.ms": "10",
            "listener.name.plaintext.scram-sha-256.connections.max.reauth.ms": "1300",
        },
    )
    with broker:
        add_scram_user(broker, "alice", USERS["alice"], "SCRAM-SHA-256")
        yield broker


def test_a_session_that_is_renewed_is_no_new_login(with_logins: Watched) -> None:
    broker = with_logins
    logins = broker.total(f"{SOCKETS}successful_authentication_total")
    assert broker.total(f"{SOCKETS}successful_reauthentication_total") == 0

    async def stay() -> None:
        properties = client_properties("SCRAM-SHA-256", "alice", USERS["alice"])
        settings = ConnectionSettings(security=client_security(properties))
        [address] = parse_bootstrap(broker.bootstrap)
        connection = await connect(address, settings)
        assert connection.has_session_end
        told: list[tuple[float, bool]] = []
        connection.on_renewed = lambda seconds, succeeded: told.append((seconds, succeeded))
        while len(told) < 2:
            await connection.send(MetadataRequest(topics=[]), MetadataResponse)
            await asyncio.sleep(0.1)
        assert all(succeeded and seconds > 0 for seconds, succeeded in told)
        await connection.close()

    asyncio.run(stay())
    assert broker.total(f"{SOCKETS}successful_reauthentication_total") == 2
    assert broker.total(f"{SOCKETS}successful_authentication_total") == logins + 1
    assert broker.total(f"{SOCKETS}successful_authentication_no_reauth_total") == 0
    slowest = broker.total(f"{SOCKETS}reauthentication_latency_max")
    assert slowest >= broker.total(f"{SOCKETS}reauthentication_latency_avg") >= 0
    assert broker.total(f"{SOCKETS}failed_reauthentication_total") == 0


def test_names_of_topics_that_clients_make_up_do_not_become_metrics(watched: Watched) -> None:
    """A name without a topic would stay for ever; one without letters would be the total a second time."""
    written = "kafka_server_brokertopicmetrics_totalproducerequests_total"
    before = watched.total_alone(written)

    async def ask() -> None:
        [address] = parse_bootstrap(watched.bootstrap)
        connection = await connect(address)
        asked = ProduceRequest.TopicProduceData
        data = asked.PartitionProduceData(index=0, records=b"x" * 70)
        produced = [asked(name=name, partition_data=[data]) for name in ("made-up-1", "made-up-2")]
        request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=produced)
        answer = await connection.send(request, ProduceResponse, version=9)
        assert answer.responses[0].partition_responses[0].error_code == 3
        wanted = FetchRequest.FetchTopic
        partition = wanted.FetchPartition(partition=0, partition_max_bytes=100)
        for topic, version in ((wanted(topic="made-up-3", partitions=[partition]), 12),
                               (wanted(topic_id=b"\7" * 16, partitions=[partition]), 13)):  # fmt: skip
            fetch = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1000, topics=[topic])
            await connection.send(fetch, FetchResponse, version=version)
        await connection.close()

    asyncio.run(ask())
    assert "made-up" not in watched.page()
    assert watched.total_alone(written) == before


def test_requests_with_errors_are_counted_as_apache_kafka_counts_them() -> None:
    """The numbers are those of Apache Kafka 4.3.1 after the same requests."""
    with Watched(auto_create_topics_enable="false") as broker:
        talk = Talk(broker.port, "m")
        name = talk.topic("a", 2, max_message_bytes="2000")
        compacted = talk.topic("c", 1, cleanup_policy="compact")
        good = batch(b"x")
        damaged = bytes([*good[:-1], good[-1] ^ 1])
        again = batch(b"x", producer_id=77, producer_epoch=0, base_sequence=50)
        too_large = batch(b"y" * 3000)
        writes = [
            *[(name, good, -1)] * 10,
            *[(name, damaged, -1)] * 2,
            *[("unknown", good, -1)] * 3,
            *[(name, {9: good}, -1)] * 4,
            *[(name, too_large, -1)] * 5,
            *[(name, good, 5)] * 6,
            *[(compacted, good, -1)] * 7,
            *[(name, again, -1)] * 8,  # one of them is new
            (name, {0: good, 9: good, 1: damaged}, -1),
        ]
        for topic, records, acks in writes:
            talk.silently(ApiKey.PRODUCE, 9, **produce(talk, topic, records, acks))
        reads = [
            *[{name: [{}]}] * 2,
            *[{name: [{"fetch_offset": 999}]}] * 3,
            *[{"unknown": [{}]}] * 4,
            *[{name: [{"partition": 9}]}] * 5,
            *[{name: [{"current_leader_epoch": 99}]}] * 6,
        ]
        for topics in reads:
            talk.silently(ApiKey.FETCH, 11, **fetch(talk, topics))
        talk.close()
        kind = "kafka_server_brokertopicmetrics_{}_total"
        totals = {
            "totalproducerequests": 34,
            "failedproducerequests": 7,
            "totalfetchrequests": 11,
            "failedfetchrequests": 0,
            "bytesin": 19 * len(good),
            "bytesrejected": 5 * len(too_large),
            "messagesin": 19,
            "invalidmessagecrcrecords": 3,
        }
        assert {each: broker.total_alone(kind.format(each)) for each in totals} == totals
        errors = broker.samples("kafka_network_requestmetrics_errors_total")
        assert {
            (each.labels["request"], each.labels["error"]): each.value
            for each in errors
            if each.labels["request"] in ("Produce", "Fetch")
        } == {
            ("Produce", "NONE"): 19,
            ("Produce", "CORRUPT_MESSAGE"): 3,
            ("Produce", "INVALID_RECORD"): 7,
            ("Produce", "INVALID_REQUIRED_ACKS"): 6,
            ("Produce", "MESSAGE_TOO_LARGE"): 5,
            ("Produce", "UNKNOWN_TOPIC_OR_PARTITION"): 8,
            ("Fetch", "NONE"): 22,
            ("Fetch", "OFFSET_OUT_OF_RANGE"): 3,
            ("Fetch", "UNKNOWN_LEADER_EPOCH"): 6,
            ("Fetch", "UNKNOWN_TOPIC_OR_PARTITION"): 9,
        }
