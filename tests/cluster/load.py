"""Clients that work while nodes fail, and what must be true of all they did.

In: a cluster's address. Out: for each kind of work what it was promised (`Numbers.acknowledged`), what it saw
(`Readers`, `Moves`), and when things happened, for `gaps.py`; `check` reads everything back and compares.
Does not know: which faults there are.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from barnabas.testing import apache
from barnabas.testing.waiting import wait_until

NUMBERS, MOVED, JAVA = "numbers", "moved", "java"
QUIET = {"log_level": 0, "socket.timeout.ms": 4_000}  # who asks one that stands still asks another soon
DELIVERY_MS = 120_000
END_S = 120.0
CALL_S = 30.0  # what a call of a transaction may take
STUCK_S = 40.0  # one that takes longer has forgotten it
# The verifiable producer does not try again unless it is told to.
PATIENT = {
    "enable.idempotence": "true",
    "retries": 2**31 - 1,
    "delivery.timeout.ms": DELIVERY_MS,
    "request.timeout.ms": 4_000,
}


@dataclass(slots=True)
class Events:
    """When something went well, by series (a partition, a group), with how long it took."""

    times: dict[object, list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))

    def note(self, series: object, now: float, took_s: float = 0.0) -> None:
        self.times[series].append((now, took_s))

    def count(self) -> int:
        return sum(len(each) for each in list(self.times.values()))


class Work:
    """A thread that works until `stop`."""

    def __init__(self) -> None:
        self.events = Events()
        self.failed: list[str] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join(END_S + 10)
        assert not self._thread.is_alive(), f"{type(self).__name__} does not end"


class Numbers(Work):
    """An idempotent producer that counts in every partition, and knows what was acknowledged."""

    def __init__(self, bootstrap: str, partitions: int = 1, pause_s: float = 0.01) -> None:
        super().__init__()
        self.acknowledged: dict[int, list[int]] = {number: [] for number in range(partitions)}
        self._pause_s = pause_s
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 5,
                "message.timeout.ms": DELIVERY_MS,
                **QUIET,
            }
        )
        self.start()

    @property
    def count(self) -> int:
        return sum(len(each) for each in self.acknowledged.values())

    def _run(self) -> None:
        number = 0
        while not self._is_over.is_set():
            for partition in self.acknowledged:
                self._producer.produce(
                    NUMBERS, str(number).encode(), partition=partition, on_delivery=self._told
                )
            number += 1
            self._producer.poll(self._pause_s)
        self._producer.flush(DELIVERY_MS / 1000)

    def _told(self, error: object, message: Any) -> None:
        if error is not None:
            self.failed.append(str(error))
            return
        self.acknowledged[message.partition()].append(int(message.value()))
        self.events.note(message.partition(), time.monotonic(), message.latency() or 0.0)


class Readers(Work):
    """Two members of a group, of the classic or of the new protocol, that commit what they have read."""

    def __init__(self, bootstrap: str, protocol: str) -> None:
        super().__init__()
        self.protocol = protocol
        self.seen: dict[int, set[int]] = defaultdict(set)
        self._bootstrap = bootstrap
        self._second = threading.Thread(target=self._run, daemon=True)
        self.start()
        self._second.start()

    def _consumer(self) -> Consumer:
        classic = {"session.timeout.ms": 10_000, "heartbeat.interval.ms": 1_000}
        return Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": f"readers-{self.protocol}",
                "group.protocol": self.protocol,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **(classic if self.protocol == "classic" else {}),
                **QUIET,
            }
        )

    def _run(self) -> None:
        consumer = self._consumer()
        consumer.subscribe([NUMBERS])
        while not self._is_over.is_set():
            found = [each for each in consumer.consume(500, 0.2) if each.error() is None]
            for each in found:
                self.seen[each.partition() or 0].add(int(each.value() or b""))
            if found:
                self.events.note(self.protocol, time.monotonic())
                with contextlib.suppress(KafkaException):  # what is not committed is read once more
                    consumer.commit(asynchronous=False)
        consumer.close()

    def missing(self, acknowledged: dict[int, list[int]]) -> int:
        return sum(len(set(numbers) - self.seen[each]) for each, numbers in acknowledged.items())

    def stop(self) -> None:
        super().stop()
        self._second.join(END_S)


class Stuck(KafkaException):
    """A client did not come back when its own time was over."""


def within(seconds: float, call: Callable[..., Any], *given: Any) -> Any:
    """What the call returns or raises; Stuck when it has not come back by then, and is left alone.

    librdkafka's `send_offsets_to_transaction` waits, whatever its timeout, for a group coordinator that left
    the metadata, until some connection comes or goes (its issues 5511 and 5456)."""
    done: Future[Any] = Future()

    def work() -> None:
        try:
            done.set_result(call(*given))
        except Exception as error:
            done.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    try:
        return done.result(seconds)
    except TimeoutError:
        raise Stuck(f"{call} did not come back within {seconds} s") from None


class Moves(Work):
    """Reads, writes and commits its offsets in transactions; whatever fails, it begins anew from what is
    committed, with a client that fences the one before, be it dead or stuck."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__()
        self._bootstrap = bootstrap
        self.moved = self.begun_anew = self.stuck = 0
        self.start()

    def _run(self) -> None:
        while not self._is_over.is_set():
            try:
                self._live()
            except Stuck:
                self.stuck += 1
            except KafkaException:
                pass
            self.begun_anew += 1

    def _live(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": "moves",
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": 10_000,
                **QUIET,
            }
        )
        producer = Producer({"bootstrap.servers": self._bootstrap, "transactional.id": "moves", **QUIET})
        try:
            producer.init_transactions(CALL_S)
            consumer.subscribe([NUMBERS])
            while not self._is_over.is_set():
                self._move(consumer, producer)
        finally:
            producer.purge()
            consumer.close()

    def _move(self, consumer: Consumer, producer: Producer) -> None:
        found = [each for each in consumer.consume(500, 0.2) if each.error() is None]
        if not found:
            return
        producer.begin_transaction()
        for each in found:
            producer.produce(MOVED, each.value(), partition=each.partition() or 0)
        offsets = consumer.position(consumer.assignment())
        read = [each for each in offsets if each.offset >= 0]
        group = consumer.consumer_group_metadata()
        within(STUCK_S, producer.send_offsets_to_transaction, read, group, CALL_S)
        producer.commit_transaction(CALL_S)
        self.moved += len(found)
        self.events.note("transactions", time.monotonic())


class JavaNumbers:
    """Apache Kafka's own verifiable producer, which says what was acknowledged; it counts over partitions."""

    def __init__(self, bootstrap: str, rate: int = 50) -> None:
        self.acknowledged: dict[int, list[int]] = defaultdict(list)
        self.failed: list[str] = []
        self.events = Events()
        settings = tempfile.NamedTemporaryFile("w", suffix=".properties")  # noqa: SIM115
        settings.write("".join(f"{name}={value}\n" for name, value in PATIENT.items()))
        settings.flush()
        self._settings = settings  # as long as this lives
        command = [*apache.jvm(*apache.TOOL_FLAGS), "-cp", f"{apache.jars()}/*"]
        command += ["org.apache.kafka.tools.VerifiableProducer", "--topic", JAVA, "--acks", "-1"]
        command += ["--bootstrap-server", bootstrap, "--throughput", str(rate)]
        self._child = subprocess.Popen(
            [*command, "--command-config", settings.name],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self._child.stdout is not None
        with self._child.stdout as lines:
            for line in lines:
                with contextlib.suppress(ValueError):
                    self._take(json.loads(line))

    def _take(self, said: dict[str, Any]) -> None:
        if said.get("name") == "producer_send_success":
            self.acknowledged[said["partition"]].append(int(said["value"]))
            self.events.note(said["partition"], time.monotonic())
        elif said.get("name") == "producer_send_error":
            self.failed.append(str(said.get("message")))

    def stop(self) -> None:
        self._child.terminate()  # it flushes
        self._child.wait(DELIVERY_MS / 1000)
        self._thread.join(10)
        self._settings.close()


def read_all(bootstrap: str, topic: str, partition: int = 0) -> list[int]:
    """Everything committed in a partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "checker",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            **QUIET,
        }
    )
    where = TopicPartition(topic, partition, 0)
    consumer.assign([where])
    found: list[int] = []

    def is_at_end() -> bool:
        found.extend(int(each.value() or b"") for each in consumer.consume(5000, 0.5) if not each.error())
        return bool(
            consumer.position([where])[0].offset >= consumer.get_watermark_offsets(where, timeout=10)[1]
        )

    wait_until(is_at_end, 90, what=lambda: f"{len(found)} records of {topic}-{partition} are read")
    consumer.close()
    return found


def check_numbers(bootstrap: str, topic: str, numbers: Numbers | JavaNumbers) -> dict[int, list[int]]:
    """Nothing acknowledged is lost, nothing is there twice or out of order. Out: what is there."""
    assert not numbers.failed, f"{len(numbers.failed)} writes failed: {numbers.failed[:3]}"
    there = {}
    for partition, acknowledged in sorted(numbers.acknowledged.items()):
        found = there[partition] = read_all(bootstrap, topic, partition)
        assert found == sorted(set(found)), f"duplicates in {topic}-{partition}, or out of order"
        lost = set(acknowledged) - set(found)
        assert not lost, (
            f"{len(lost)} acknowledged records of {topic}-{partition} are lost: {sorted(lost)[:9]}"
        )
    return there


def check_moves(bootstrap: str, moves: Moves, there: dict[int, list[int]]) -> None:
    """Each input is in the output of the transactions once."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "moves", **QUIET})
    places = [TopicPartition(NUMBERS, partition) for partition in there]
    left: dict[int, int] = {}

    def all_moved() -> bool:
        with contextlib.suppress(KafkaException):
            for each in consumer.committed(places, timeout=10):
                left[each.partition] = consumer.get_watermark_offsets(each, timeout=10)[1] - max(
                    each.offset, 0
                )
        return len(left) == len(there) and not any(left.values())

    wait_until(all_moved, END_S, what=lambda: f"{left} are to be moved yet")
    consumer.close()
    moves.stop()
    for partition, numbers in there.items():
        found = read_all(bootstrap, MOVED, partition)
        assert len(found) == len(set(found)), f"moved twice in partition {partition}"
        assert set(found) == set(numbers)
