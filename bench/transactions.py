"""Trials of transactions: latency, throughput, consume-transform-produce, reads with aborted transactions.

In: a broker, a scale. Out: one value for each row. Does not know: which broker it is, the order of rounds,
floors.
"""

from __future__ import annotations

import itertools
import selectors
import socket
import struct
import time
from contextlib import closing

from bench import frames, generator
from bench import transaction_frames as wire
from bench.brokers import ClientValue, Contender, client_settings, create_topics
from bench.generator import LoadError, Plan
from bench.loads import FETCH_BYTES_MAX, Scale, Trial

TOPIC = "transactions"
PARTITIONS = 8
MANY = 50
ABORTED_TOPIC = "tenth-aborted"
BATCHES_PER_TRANSACTION = 32
ABORTED_BYTES_MAX = 400_000_000
LOOP_SOURCE, LOOP_TARGET = "loop-source", "loop-target"
LOOP_RECORDS_PER_TRANSACTION = 100
COORDINATOR_TIMEOUT_S = 60.0
LATER = (14, 15, 16, 51)  # coordinator loading, not available, moved; previous transaction not complete
_names = itertools.count(1)
SMALL = frames.batch_of(1)


class Transactor:
    """One producer on one connection: a record, then its commit, then the next."""

    __slots__ = ("connection", "is_ending", "partition", "producer", "rest", "times_us", "topic")

    def __init__(self, port: int, topic: str, partition: int) -> None:
        self.topic, self.partition = topic, partition
        self.producer = wire.Producer(f"bench-{next(_names)}")
        self.connection = socket.create_connection(("127.0.0.1", port), 30)
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.is_ending = False
        self.rest = b""
        self.times_us: list[tuple[float, float]] = []  # from the record on, from the commit on
        deadline = time.perf_counter() + COORDINATOR_TIMEOUT_S
        while self._init():
            if time.perf_counter() > deadline:
                raise LoadError("a transactional id has no coordinator")
            time.sleep(0.01)

    def close(self) -> None:
        self.connection.close()

    def _init(self) -> int:
        found = struct.unpack_from(">h", self.ask(wire.find_coordinator(self.producer.transactional_id)), 8)[
            0
        ]
        if found:
            return int(found)
        error, self.producer.producer_id, self.producer.epoch = wire.initialized(
            self.ask(wire.init_producer_id(self.producer.transactional_id))
        )
        return error

    def ask(self, frame: bytes) -> bytes:
        self.connection.sendall(frame)
        return self.receive()

    def receive(self) -> bytes:
        """Wait for the next response; return it without its size."""
        data = self.rest
        while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
            more = self.connection.recv(65536)
            if not more:
                raise LoadError("connection closed by the broker")
            data += more
        end = 4 + int.from_bytes(data[:4], "big")
        self.rest = data[end:]
        return data[4:end]

    def send(self) -> None:
        """Send the next request: a record or its commit."""
        if self.is_ending:
            frame = wire.end(self.producer)
        else:
            frame = wire.produce(self.producer, self.topic, self.partition, SMALL)
        self.connection.sendall(frame)

    def take(self, answer: bytes) -> bool:
        """Handle a response; return whether a transaction is complete."""
        if not self.is_ending:
            error = wire.produce_error(answer, self.topic)
            if error and error not in LATER:
                raise LoadError(f"a record was refused with error {error}")
            self.is_ending = not error
            return False
        error, producer_id, epoch = wire.ended(answer)
        if error in LATER:
            return False
        if error:
            raise LoadError(f"a commit was refused with error {error}")
        self.producer.producer_id, self.producer.epoch = producer_id, epoch
        self.is_ending = False
        return True

    def transact(self) -> None:
        """One transaction, timed."""
        began = time.perf_counter()
        self.send()
        while not self.is_ending:
            self.take(self.receive())
            if not self.is_ending:
                self.send()
        written = time.perf_counter()
        self.send()
        while not self.take(self.receive()):
            self.send()
        ended = time.perf_counter()
        self.times_us.append(((ended - began) * 1e6, (ended - written) * 1e6))


def make_topic(broker: Contender, scale: Scale) -> None:
    create_topics(broker, {TOPIC: PARTITIONS})


def one_producer(broker: Contender, scale: Scale) -> dict[str, float]:
    """Run transactions of one record, one after the other."""
    with closing(Transactor(broker.port, TOPIC, 0)) as transactor:
        began = time.perf_counter()
        end = began + scale.seconds
        while time.perf_counter() < end or not transactor.times_us:
            transactor.transact()
        seconds = time.perf_counter() - began
        whole, commit = (sorted(column) for column in zip(*transactor.times_us, strict=True))
    middle = len(whole) // 2
    return {
        "transaction-latency": whole[middle],
        "transaction-commit": commit[middle],
        "transactions-1": len(whole) / seconds,
    }


def many_producers(broker: Contender, scale: Scale) -> dict[str, float]:
    """Run the same from fifty producers at once."""
    transactors = [Transactor(broker.port, TOPIC, number % PARTITIONS) for number in range(MANY)]
    count = 0
    with selectors.DefaultSelector() as selector:
        try:
            for transactor in transactors:
                selector.register(transactor.connection, selectors.EVENT_READ, transactor)
            began = time.perf_counter()
            end = began + scale.seconds
            for transactor in transactors:
                transactor.send()
            while (now := time.perf_counter()) < end or not count:
                for key, _ in selector.select(1):
                    transactor = key.data
                    count += transactor.take(transactor.receive())
                    transactor.send()
        finally:
            for transactor in transactors:
                transactor.close()
    return {"transactions-50": count / (now - began)}


def make_loop(broker: Contender, scale: Scale) -> None:
    create_topics(broker, {LOOP_SOURCE: 1, LOOP_TARGET: 1})
    batch = frames.batch_of(139)
    load = frames.produce(LOOP_SOURCE, batch, 64)
    requests = max(1, scale.client_records // 4 // batch.records)
    generator.run(broker.port, load.frames, Plan(1, 32, requests, 300.0, load.error_at))


def move_records(broker: Contender, scale: Scale) -> dict[str, float]:
    """confluent-kafka as users use it: read, write, commit offsets, a hundred records in each transaction."""
    from confluent_kafka import Consumer, Producer

    name = f"loop-{next(_names)}"
    reading: dict[str, ClientValue] = {
        "group.id": name,
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
    }
    writing: dict[str, ClientValue] = {"transactional.id": name, "linger.ms": 0}
    consumer = Consumer(client_settings(broker, **reading))
    producer = Producer(client_settings(broker, **writing))
    moved = 0
    try:
        producer.init_transactions(30)
        consumer.subscribe([LOOP_SOURCE])
        first = consumer.consume(1, 30)
        if not first or first[0].error():
            raise LoadError(f"{broker.name} delivered nothing: {first and first[0].error()}")
        began = time.perf_counter()
        end = began + scale.seconds
        while (now := time.perf_counter()) < end or not moved:
            messages = consumer.consume(LOOP_RECORDS_PER_TRANSACTION, 5)
            if not messages:
                raise LoadError(f"{broker.name} delivered {moved} records and then none")
            producer.begin_transaction()
            for message in messages:
                producer.produce(LOOP_TARGET, message.value())
            places = consumer.position(consumer.assignment())
            producer.send_offsets_to_transaction(places, consumer.consumer_group_metadata(), 30)
            producer.commit_transaction(30)
            moved += len(messages)
    finally:
        consumer.close()
    return {"transaction-loop": moved / (now - began) / 1e3}


def make_aborted(broker: Contender, scale: Scale) -> None:
    """Fill a topic with transactions of half a megabyte, every tenth of them aborted."""
    create_topics(broker, {ABORTED_TOPIC: 1})
    batch = frames.batch_of(139)
    transaction_bytes = BATCHES_PER_TRANSACTION * batch.size
    with closing(Transactor(broker.port, ABORTED_TOPIC, 0)) as transactor:
        for number in range(max(10, min(scale.backlog_bytes, ABORTED_BYTES_MAX) // transaction_bytes)):
            write_transaction(transactor, batch, commit=number % 10 > 0)


def write_transaction(transactor: Transactor, batch: frames.Batch, *, commit: bool) -> None:
    """Send the first batch alone, because the previous transaction may not be complete; then the others."""
    producer = transactor.producer
    while error := wire.produce_error(
        transactor.ask(wire.produce(producer, ABORTED_TOPIC, 0, batch)), ABORTED_TOPIC
    ):
        if error not in LATER:
            raise LoadError(f"a batch was refused with error {error}")
    sequences = range(batch.records, BATCHES_PER_TRANSACTION * batch.records, batch.records)
    load = [wire.produce(producer, ABORTED_TOPIC, 0, batch, sequence) for sequence in sequences]
    transactor.connection.sendall(b"".join(load))
    for _ in load:
        if error := wire.produce_error(transactor.receive(), ABORTED_TOPIC):
            raise LoadError(f"a batch was refused with error {error}")
    while True:
        error, producer_id, epoch = wire.ended(transactor.ask(wire.end(producer, commit=commit)))
        if not error:
            break
        if error not in LATER:
            raise LoadError(f"an end was refused with error {error}")
    producer.producer_id, producer.epoch = producer_id, epoch


def fetch_committed(broker: Contender, scale: Scale) -> dict[str, float]:
    """One consumer fetches from the first offset to the end, one request at a time, for the given time."""
    frame = bytearray(frames.fetch(ABORTED_TOPIC, 0, FETCH_BYTES_MAX))
    isolation_at = frame.index(struct.pack(">iiiib", -1, 0, 1, FETCH_BYTES_MAX, 0)) + 16
    frame[isolation_at] = wire.READ_COMMITTED
    offset_at = frames.fetch_offset_at(ABORTED_TOPIC)
    answer = memoryview(bytearray(2 * FETCH_BYTES_MAX))
    offset = total = aborted = 0
    with socket.create_connection(("127.0.0.1", broker.port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        began = time.perf_counter()
        end = began + scale.seconds
        while (now := time.perf_counter()) < end:
            struct.pack_into(">q", frame, offset_at, offset)
            connection.sendall(frame)
            connection.recv_into(answer, 4, socket.MSG_WAITALL)
            size = int.from_bytes(answer[:4], "big")
            connection.recv_into(answer, size, socket.MSG_WAITALL)
            found = wire.fetched(answer, ABORTED_TOPIC)
            if found.error:
                raise LoadError(f"{broker.name} responded to a fetch at {offset} with error {found.error}")
            records = answer[found.records_at : found.records_at + found.records_bytes]
            following, whole_bytes = wire.next_offset(records)
            if following < 0 and not offset:
                raise LoadError(f"{broker.name} has nothing to read")
            offset = max(following, 0)  # -1 at the end: start again
            total += whole_bytes
            aborted += max(found.aborted, 0)
    if not aborted:
        raise LoadError(f"{broker.name} named no aborted transaction")
    return {"transaction-fetch": total / (now - began) / 1e6}


TRIALS = (
    Trial(("transaction-latency", "transaction-commit", "transactions-1"), one_producer, prepare=make_topic),
    Trial(("transactions-50",), many_producers, prepare=make_topic),
    Trial(("transaction-loop",), move_records, prepare=make_loop),
    Trial(("transaction-fetch",), fetch_committed, prepare=make_aborted),
)
