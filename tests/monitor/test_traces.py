"""Traces of a real cluster: a sampled produce request, its replication and its fetch, exported by OTLP."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.tracing.contexts import contexts_of, has_sampled_context
from barnabas.broker.tracing.sampling import Sampling
from barnabas.broker.tracing.watches import Watch, Watches
from barnabas.records.compression import Compression
from barnabas.records.record import Record, build_batch
from barnabas.records.trace_context import TraceContext, context_of, headers_of, parse_traceparent
from barnabas.testing import Broker
from barnabas.testing.cluster import Cluster
from barnabas.testing.waiting import wait_until

from .receivers import OtlpReceiver, opened

contexts = st.builds(
    TraceContext, st.integers(1, 2**128 - 1), st.integers(1, 2**64 - 1), st.booleans(), st.just("")
)


@given(contexts)
def test_a_context_comes_back_from_its_header(context: TraceContext) -> None:
    assert parse_traceparent(context.traceparent) == context
    assert context_of([("a", b"b"), *headers_of(context)]) == context


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"00-" + b"0" * 32 + b"-" + b"1" * 16 + b"-01",
        b"00-" + b"1" * 32 + b"-" + b"0" * 16 + b"-01",
        b"ff-" + b"1" * 32 + b"-" + b"1" * 16 + b"-01",
        b"00-" + b"1" * 32 + b"-" + b"1" * 16 + b"-01-more",
        b"00-" + b"A" * 32 + b"-" + b"1" * 16 + b"-01",
    ],
)
def test_a_malformed_header_is_none(value: bytes) -> None:
    assert parse_traceparent(value) is None


@given(st.lists(contexts, max_size=5, unique=True), st.binary(max_size=50))
def test_contexts_are_found_in_the_bytes_of_a_batch(given_contexts: list[TraceContext], value: bytes) -> None:
    records = [Record(-1, 0, None, value, tuple(headers_of(each))) for each in given_contexts]
    records.append(Record(-1, 0, b"k", value))
    batch = memoryview(build_batch(records))
    assert contexts_of([None, batch]) == given_contexts
    assert has_sampled_context(batch) is any(each.is_sampled for each in given_contexts)
    assert contexts_of([memoryview(build_batch(records, compression=Compression.GZIP))]) == []


def test_sampling_meets_its_share_and_its_budget() -> None:
    now = [100.0]
    sampling = Sampling(0.1, uses_headers=False, per_second_max=10_000, now_s=lambda: now[0])
    frame = memoryview(b"\0\x03" + bytes(20))
    assert 800 < sum(sampling.wants(frame) for _ in range(10_000)) < 1200
    bounded = Sampling(1.0, uses_headers=False, per_second_max=3, now_s=lambda: now[0])
    assert sum(bounded.wants(frame) for _ in range(100)) == 3
    now[0] += 1
    assert sum(bounded.wants(frame) for _ in range(100)) == 3


def test_a_watch_names_each_reader_once_and_expires() -> None:
    watches: Watches[str] = Watches()
    assert not watches
    watches.add("p", Watch(TraceContext(1, 1), 5, 0))
    assert list(watches.reached("p", "a", 5)) == []
    assert [each.offset for each in watches.reached("p", "a", 6)] == [5]
    assert list(watches.reached("p", "a", 7)) == [] and list(watches.reached("q", "b", 9)) == []
    assert len(list(watches.reached("p", "b", 7))) == 1
    watches.expire(9_999_999_999)
    assert watches
    watches.expire(10_000_000_000)
    assert not watches


# -- a cluster ------------------------------------------------------------------------------------------


class Traced:
    def __init__(self, cluster: Cluster, otlp: OtlpReceiver) -> None:
        self.cluster = cluster
        self.otlp = otlp

    def spans(self, trace_id: int) -> list[Any]:
        return [each for each in list(self.otlp.spans) if int.from_bytes(each.trace_id, "big") == trace_id]


@pytest.fixture(scope="module")
def traced() -> Iterator[Traced]:
    otlp = OtlpReceiver()
    settings = {
        "metric.reporters": "otlp",
        "barnabas.outlets.interval.ms": 300,
        "barnabas.outlets.include": "kafka.server:type=KafkaServer,*",
        "barnabas.otlp.endpoint": f"http://127.0.0.1:{otlp.port}",
        "barnabas.traces.headers": "true",
    }
    with opened(otlp), Cluster(combined=3, overrides=settings) as cluster:
        cluster.create_topic("orders", partitions=1, replication_factor=3)
        yield Traced(cluster, otlp)


def attributes(span: Any) -> dict[str, Any]:
    return {each.key: each.value.string_value or each.value.int_value for each in span.attributes}


def test_a_producers_trace_goes_on_through_produce_replication_and_fetch(traced: Traced) -> None:
    cluster = traced.cluster
    consumer = Consumer(
        {"bootstrap.servers": cluster.bootstrap, "group.id": "g", "client.id": "reader", "log_level": 0,
         "auto.offset.reset": "earliest"}
    )  # fmt: skip
    consumer.subscribe(["orders"])
    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap, "acks": "all", "client.id": "shop", "log_level": 0}
    )
    producer.produce("orders", b"before")
    producer.flush(20)
    wait_until(lambda: consumer.poll(0.2) is not None, 30, "the consumer reads")
    context = TraceContext(0xABCDEF << 64, 7)
    producer.produce("orders", b"payload", headers=dict(headers_of(context)))
    producer.flush(20)
    names: Counter[str] = Counter()

    def is_whole() -> bool:
        consumer.poll(0.1)
        names.clear()
        names.update(each.name for each in traced.spans(context.trace_id))
        replicated = sum(count for name, count in names.items() if name.startswith("replicate to broker"))
        return replicated == 2 and "fetch orders" in names and "Produce orders" in names

    wait_until(is_whole, 30, lambda: f"the whole trace; there is {names}")
    consumer.close()
    spans = {each.name: each for each in traced.spans(context.trace_id)}
    produce = spans["Produce orders"]
    assert produce.parent_span_id == (7).to_bytes(8, "big"), "the producer's span is its parent"
    assert produce.kind == 2 and produce.status.code == 0
    found = attributes(produce)
    assert found["messaging.client.id"] == "shop" and found["messaging.destination.name"] == "orders"
    assert found["messaging.kafka.offset"] == 1
    children = [each for each in spans.values() if each is not produce]
    assert all(each.parent_span_id == produce.span_id for each in children)
    assert {"append", "write", "wait for followers"} <= set(spans)
    assert all(each.start_time_unix_nano <= each.end_time_unix_nano for each in spans.values())
    assert spans["append"].start_time_unix_nano == produce.start_time_unix_nano
    assert attributes(spans["fetch orders"])["messaging.client.id"] == "reader"


def test_records_of_several_traces_are_linked_and_others_are_not_traced(traced: Traced) -> None:
    before = len(traced.otlp.spans)
    quiet, one, two = (TraceContext(number << 100, 9, number != 5) for number in (5, 6, 7))
    producer = Producer({"bootstrap.servers": traced.cluster.bootstrap, "linger.ms": 200, "log_level": 0})
    producer.produce("orders", b"x", headers=dict(headers_of(quiet)))
    producer.flush(20)  # alone in its batch, and its trace is not sampled
    for each in (one, two):
        producer.produce("orders", b"x", headers=dict(headers_of(each)))
    producer.flush(20)

    def linked() -> list[Any]:
        return [each for each in list(traced.otlp.spans)[before:] if each.links]

    wait_until(linked, 30, "a span with links")
    [span] = linked()
    assert {int.from_bytes(each.trace_id, "big") for each in span.links} == {one.trace_id, two.trace_id}
    assert not span.parent_span_id
    assert traced.spans(quiet.trace_id) == []


def test_a_share_of_all_requests_is_traced_and_refusals_are_errors() -> None:
    otlp = OtlpReceiver(over_grpc=True)
    settings = {
        "metric.reporters": "otlp",
        "barnabas.outlets.interval.ms": 100,
        "barnabas.otlp.protocol": "grpc",
        "barnabas.otlp.endpoint": f"http://127.0.0.1:{otlp.port}",
        "barnabas.traces.ratio": "1",
        "barnabas.traces.per.second.max": "100000",
        "message.max.bytes": "1000",
    }
    with opened(otlp), Broker(overrides=settings) as broker:
        broker.create_topic("orders", partitions=1)
        producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        producer.produce("orders", b"x" * 10)
        producer.flush(10)
        producer.produce("orders", b"x" * 5000)
        producer.flush(10)

        def produced() -> list[Any]:
            return [each for each in list(otlp.spans) if each.name == "Produce orders"]

        wait_until(lambda: len(produced()) >= 2, what="both produce requests")
        assert {each.status.message for each in produced()} == {"", "MESSAGE_TOO_LARGE"}
        names = {each.name for each in otlp.spans}
        assert {"ApiVersions", "Metadata", "CreateTopics"} <= names
        assert all(re.fullmatch(r"[\w ]+", name) for name in names)


def test_traces_without_a_reporter_for_them_say_so(caplog: pytest.LogCaptureFixture) -> None:
    with Broker(overrides={"barnabas.traces.ratio": "1"}) as broker:
        broker.create_topic("orders")
    assert "barnabas.traces.ratio and barnabas.traces.headers have no effect" in caplog.text
