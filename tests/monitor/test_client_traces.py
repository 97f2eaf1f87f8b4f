"""Our own client, traced: the producer's span travels in headers, the consumer's links to it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from barnabas.client.cluster import Cluster
from barnabas.client.consumer import Consumer
from barnabas.client.core.address import parse_bootstrap
from barnabas.client.core.topology import TopicPartition
from barnabas.client.producer import NewRecord, Producer, ProducerSettings
from barnabas.monitor.traces import TracingInterceptor
from barnabas.protocol import KafkaError
from barnabas.records.trace_context import context_of
from barnabas.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(overrides={"message.max.bytes": 2000}) as found:
        found.create_topic("orders", partitions=1)
        yield found


class Traces:
    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    def named(self, name: str) -> list[ReadableSpan]:
        return [each for each in self.exporter.get_finished_spans() if each.name == name]


def test_a_record_carries_the_context_of_its_producer_to_its_consumer(broker: Broker) -> None:
    traces = Traces()
    tracing = TracingInterceptor(traces.provider, group="g")

    async def run() -> None:
        async with Cluster(parse_bootstrap(broker.bootstrap)) as cluster:
            async with Producer(cluster, interceptors=[tracing]) as producer:
                with traces.provider.get_tracer("shop").start_as_current_span("order"):
                    await producer.send("orders", b"one", headers=(("a", b"b"),))
                await producer.send_all("orders", [NewRecord(None, None, b"two")])
            consumer = Consumer(cluster, interceptors=[tracing])
            consumer.assign({TopicPartition("orders", 0): 0})
            records = []
            while len(records) < 2:
                records += await consumer.poll(1000)
            with tracing.processing(records[0]) as span:
                assert trace.get_current_span() is span
            await consumer.close()
            assert records[0].headers[0] == ("a", b"b")
            first = context_of(records[0].headers)
            assert first is not None and first.is_sampled

    asyncio.run(run())
    [order] = traces.named("order")
    one, two = traces.named("send orders")
    assert one.parent is not None and one.parent.span_id == order.context.span_id
    assert two.parent is None
    assert one.attributes is not None and one.attributes["messaging.destination.partition.id"] == "0"
    linked = {link.context.span_id for each in traces.named("poll orders") for link in each.links}
    assert linked == {one.context.span_id, two.context.span_id}
    [process] = traces.named("process orders")
    assert [link.context.span_id for link in process.links] == [one.context.span_id]
    assert process.attributes is not None and process.attributes["messaging.consumer.group.name"] == "g"


def test_a_record_that_is_refused_ends_its_span_with_the_error(broker: Broker) -> None:
    traces = Traces()

    async def run() -> None:
        async with Cluster(parse_bootstrap(broker.bootstrap)) as cluster:
            settings = ProducerSettings(retries_max=0)
            async with Producer(
                cluster, settings, interceptors=[TracingInterceptor(traces.provider)]
            ) as producer:
                sent = await producer.send("orders", b"x" * 5000)
                with pytest.raises(KafkaError):
                    await sent

    asyncio.run(run())
    [span] = traces.named("send orders")
    assert not span.status.is_ok


def test_without_a_provider_records_are_sent_as_they_are() -> None:
    assert TracingInterceptor().on_send("orders", (("a", b"b"),)) == (("a", b"b"),)
