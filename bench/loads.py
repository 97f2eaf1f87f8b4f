"""Trials on a running broker: raw produce and fetch, and confluent-kafka as users use it.

In: a broker, a scale. Out: one value for each row. A trial creates and deletes its own topic, so that rounds
are alike. Does not know: which broker it is, the order of rounds, floors.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bench import frames, generator
from bench.brokers import (
    ClientValue,
    Contender,
    ask,
    client_settings,
    create_topics,
    delete_topics,
    memory_bytes,
)
from bench.generator import LoadError, Plan
from bench.pages import touch

FETCH_BYTES_MAX = 1 << 20
BACKLOG = "backlog"
NUMBERED_MAX = 500_000  # requests that are prepared one by one


@dataclass(frozen=True, slots=True)
class Scale:
    """The amount of work in a round."""

    seconds: float = 3.0
    warm_up_s: float = 8.0
    bytes_max: int = 1_500_000_000
    backlog_bytes: int = 1_500_000_000
    client_records: int = 3_000_000
    latency_records: int = 2_000
    partitions: int = 4_000
    warm_pages: bool = True  # see pages.py


QUICK = Scale(1.0, 3.0, 500_000_000, 500_000_000, 500_000, 500)
TINY = Scale(0.05, 0.0, 4_000_000, 4_000_000, 2_000, 20, 20)


@dataclass(frozen=True, slots=True)
class Trial:
    """Measures one row or several: `measure` returns a value for each row, `warm_up` does it for longer."""

    rows: tuple[str, ...]
    measure: Callable[[Contender, Scale], dict[str, float]]
    warm_up: bool = True
    prepare: Callable[[Contender, Scale], None] | None = (
        None  # runs once for each broker; trials that name the same function share it
    )
    overrides: Mapping[str, str] | None = None  # settings of brokers that are started for this trial
    is_once: bool = False  # leaves topics and groups behind, so there is no second round
    peer_may_fail: bool = False  # its floor is a number of our own, and not every machine is enough for both


@dataclass(frozen=True, slots=True)
class Produce:
    """Equal batches from `connections`, each with at most `inflight` requests in flight."""

    row: str
    batch: frames.Batch
    connections: int
    inflight: int
    version: int = frames.PRODUCE_VERSION
    partitions: int = 1  # requests go to them in turn
    together: int = 1  # partitions in each request
    is_idempotent: bool = False
    tls: bool = False

    def load(self, port: int, topic: str, scale: Scale, *, check: bool = True) -> generator.Load:
        requests = max(self.connections, scale.bytes_max // self.batch.size)
        if self.is_idempotent:
            requests = min(requests, NUMBERED_MAX)
            content = self.numbered(topic, requests)
        else:
            content = self.circle(topic)
        error_at = frames.error_at(topic, self.version) if check else -1
        plan = Plan(self.connections, self.inflight, requests, scale.seconds, error_at)
        return generator.run(port, content, plan, tls=self.tls)

    def circle(self, topic: str) -> bytes:
        # Neighbouring frames leave in one call. With a circle of twice `inflight`, a call can send that many.
        copies = max(2 * self.inflight, min(1024, 4_000_000 // self.batch.size))
        turn = b"".join(
            frames.produce_frame(
                topic,
                [(first + index, self.batch.content) for index in range(self.together)],
                version=self.version,
            )
            for first in range(self.partitions)
        )
        return turn * max(1, copies // self.partitions)

    def numbered(self, topic: str, requests: int) -> bytes:
        """Every request of the load, because each sequence number may be sent once."""
        return b"".join(
            frames.produce_frame(topic, [(0, each)], version=self.version)
            for each in frames.numbered(self.batch, requests)
        )

    def measure(self, broker: Contender, scale: Scale) -> dict[str, float]:
        create_topics(broker, {self.row: max(self.partitions, self.together)})
        if scale.warm_pages:
            touch(scale.bytes_max if self.batch.records > 1 else scale.bytes_max // 8)
        try:
            load = self.load(broker.tls_port if self.tls else broker.port, self.row, scale)
        finally:
            delete_topics(broker, self.row)
        return {self.row: self.value(load)}

    def value(self, load: generator.Load) -> float:
        if self.connections == self.inflight == 1:
            return load.p50_us
        if self.batch.records == 1:
            return load.rate / 1e3
        return load.rate * self.batch.size / 1e6


def make_backlog(broker: Contender, scale: Scale) -> None:
    """Fill a topic with batches like those of a Java producer with defaults, of at most 16 KB."""
    create_topics(broker, {BACKLOG: 1})
    batch = frames.batch_of(139)
    load = frames.produce(BACKLOG, batch, 256)
    requests = max(1, scale.backlog_bytes // batch.size)
    generator.run(broker.port, load.frames, Plan(1, 64, requests, 300.0, load.error_at))


def fetch_backlog(broker: Contender, scale: Scale) -> dict[str, float]:
    """One consumer fetches from the first offset to the end, one request at a time, for the given time."""
    batch = frames.batch_of(139)
    records = scale.backlog_bytes // batch.size * batch.records
    frame = bytearray(frames.fetch(BACKLOG, 0, FETCH_BYTES_MAX))
    offset_at, head_bytes = frames.fetch_offset_at(BACKLOG), frames.fetch_head_bytes(BACKLOG)
    answer = bytearray(2 * FETCH_BYTES_MAX)
    view = memoryview(answer)
    offset = total = 0
    with socket.create_connection(("127.0.0.1", broker.port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        began = time.perf_counter()
        end = began + scale.seconds
        while (now := time.perf_counter()) < end:
            struct.pack_into(">q", frame, offset_at, offset)
            connection.sendall(frame)
            connection.recv_into(view, 4, socket.MSG_WAITALL)
            size = int.from_bytes(view[:4], "big")
            connection.recv_into(view[4:], size, socket.MSG_WAITALL)
            whole = (size + 4 - head_bytes) // batch.size
            if whole < 1:
                raise LoadError(
                    f"{broker.name} responded to a fetch at {offset} with {size} bytes: {answer[:80].hex()}"
                )
            total += whole * batch.size
            offset += whole * batch.records
            if offset >= records:
                offset = 0
    return {"fetch": total / (now - began) / 1e6}


def confluent_produce(broker: Contender, scale: Scale) -> dict[str, float]:
    """One confluent-kafka producer, fed in lists, until the last record is acknowledged."""
    from confluent_kafka import Producer

    topic = "confluent-produce"
    create_topics(broker, {topic: 1})
    chunk = [{"value": b"v" * frames.VALUE_BYTES} for _ in range(10_000)]
    settings = {
        "bootstrap.servers": f"127.0.0.1:{broker.port}",
        "acks": "1",
        "queue.buffering.max.messages": 2_000_000,
    }
    producer = Producer(settings)
    try:
        producer.list_topics(topic, 10)
        if scale.warm_pages:
            touch(scale.client_records * (frames.VALUE_BYTES + 20))
        began = time.perf_counter()
        for _ in range(max(1, scale.client_records // len(chunk))):
            rest = chunk[: scale.client_records]
            while sent := producer.produce_batch(topic, rest):
                if sent == len(rest):
                    break
                rest = rest[sent:]
                producer.poll(0.01)
            producer.poll(0)
        left = producer.flush(60)
        seconds = time.perf_counter() - began
        produced = end_offset(broker, topic)
        wanted = max(1, scale.client_records // len(chunk)) * min(len(chunk), scale.client_records)
        if left or produced != wanted:
            raise LoadError(f"{broker.name} holds {produced} of {wanted} records")
    finally:
        delete_topics(broker, topic)
    return {"confluent-produce": wanted / seconds / 1e3}


def end_offset(broker: Contender, topic: str) -> int:
    answer = ask(broker.port, frames.list_offsets({topic: 1}))
    return int(
        frames.LIST_OFFSETS_PARTITION.unpack_from(answer, len(answer) - frames.LIST_OFFSETS_PARTITION.size)[3]
    )


def confluent_consume(broker: Contender, scale: Scale) -> dict[str, float]:
    """One confluent-kafka consumer reads lists of records from the start of the backlog."""
    from confluent_kafka import Consumer, TopicPartition

    wanted = min(scale.client_records, end_offset(broker, BACKLOG))
    # By default librdkafka stops fetching for a second when 100,000 records wait: that would hide the broker.
    settings: dict[str, ClientValue] = {"group.id": "bench", "enable.auto.commit": False}
    consumer = Consumer(client_settings(broker, **settings, **{"fetch.queue.backoff.ms": 1}))
    try:
        consumer.assign([TopicPartition(BACKLOG, 0, 0)])
        first = consumer.consume(1, 30)
        if not first or first[0].error():
            raise LoadError(f"{broker.name} delivered nothing: {first and first[0].error()}")
        began = time.perf_counter()
        seen = 1
        while seen < wanted:
            messages = consumer.consume(10_000, 30)
            if not messages:
                raise LoadError(f"{broker.name} delivered {seen} of {wanted} records")
            seen += len(messages)
        seconds = time.perf_counter() - began
    finally:
        consumer.close()
    return {"confluent-consume": (seen - 1) / seconds / 1e3}


def confluent_latency(broker: Contender, scale: Scale) -> dict[str, float]:
    """One record after the other: the time from `produce` until `poll` of a waiting consumer returns it."""
    from confluent_kafka import Consumer, Producer, TopicPartition

    topic = "latency"
    create_topics(broker, {topic: 1})
    producer = Producer(client_settings(broker, acks="1", **{"linger.ms": 0}))
    settings: dict[str, ClientValue] = {"group.id": "bench", "enable.auto.commit": False}
    consumer = Consumer(client_settings(broker, **settings))
    times_us: list[float] = []
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        deadline = time.perf_counter() + scale.seconds * 4
        while len(times_us) < scale.latency_records and time.perf_counter() < deadline:
            began = time.perf_counter()
            producer.produce(topic, b"v" * frames.VALUE_BYTES)
            message = consumer.poll(30)
            times_us.append((time.perf_counter() - began) * 1e6)
            producer.poll(0)
            if message is None or message.error():
                raise LoadError(f"{broker.name} delivered nothing within 30 s")
        producer.flush(30)
    finally:
        consumer.close()
        delete_topics(broker, topic)
    times_us = sorted(times_us[len(times_us) // 10 :])
    last = len(times_us) - 1
    return {"latency-p50": times_us[last // 2], "latency-p99": times_us[last * 99 // 100]}


PRODUCE = {
    each.row: each
    for each in (
        Produce("produce-880k", frames.batch_of(880, 1000), 1, 4),
        Produce("produce-15k", frames.batch_of(139), 1, 64),
        Produce("produce-pipelined", frames.batch_of(1), 1, 512),
        Produce("produce-64", frames.batch_of(1), 64, 1),
        Produce("produce-rest", frames.batch_of(1), 1, 1),
        Produce("produce-15k-v7", frames.batch_of(139), 1, 64, version=7),
        Produce("produce-pipelined-v7", frames.batch_of(1), 1, 512, version=7),
        Produce("produce-rest-v7", frames.batch_of(1), 1, 1, version=7),
        Produce("produce-15k-4", frames.batch_of(139), 4, 16, partitions=4),
        Produce("produce-idempotent", frames.batch_of(1), 1, 512, is_idempotent=True),
        Produce("produce-together", frames.batch_of(1), 1, 128, together=5),
    )
}


def memory_after_load(broker: Contender, scale: Scale) -> dict[str, float]:
    """Run every kind of raw load once more, then measure the memory of the process."""
    for each in PRODUCE.values():
        each.measure(broker, scale)
    fetch_backlog(broker, scale)
    return {"memory-load": memory_bytes(broker.pid) / 1e6}


TRIALS = (
    *(Trial((each.row,), each.measure) for each in PRODUCE.values()),
    Trial(("fetch",), fetch_backlog, prepare=make_backlog),
    Trial(("confluent-produce",), confluent_produce),
    Trial(("confluent-consume",), confluent_consume, prepare=make_backlog),
    Trial(("latency-p50", "latency-p99"), confluent_latency),
    Trial(("memory-load",), memory_after_load, warm_up=False, prepare=make_backlog),
)
