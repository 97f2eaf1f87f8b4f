"""Trials of the log cleaner: its speed, and its effect on the latency of producers.

In: a contender that is not running, on a formatted folder, whose cleaner always looks for work. Out: one
value for each row. A trial fills a log with repeated keys and keeps the cleaner from it until the clock
starts. The log is clean when `cleaner-offset-checkpoint`, which both brokers write in the same format, says
so. Does not know: which broker it is, floors.
"""

from __future__ import annotations

import functools
import itertools
import statistics
import struct
import threading
import time
from pathlib import Path
from random import Random

import crc32c

from bench import frames, generator
from bench.brokers import Contender, client_settings, create_topics, delete_topics
from bench.frames import varint
from bench.generator import LoadError, Plan
from bench.loads import Scale, Trial

CLEANER_SETTINGS = {"log.cleaner.backoff.ms": "100"}
BATCH_RECORDS = 139
BATCH_BYTES = 16_500  # about
SEGMENTS = 8
SEGMENT_BYTES_MIN = 1 << 20
CIRCLE_BATCHES_MAX = 2048
CLEAN_TIMEOUT_S = 300.0
WINDOWS = 5  # of a round; the median counts, because other programs disturb some of them
TEMPLATE = "dirty-0000"  # frames are built once for this topic, then renamed: building takes seconds
_names = itertools.count(1)


@functools.cache
def keyed_frames(batches: int) -> bytes:
    """A circle of produce requests with two thirds as many keys as records."""
    rng, now_ms = Random(1), int(time.time() * 1000)
    keys = [b"key-%012d" % number for number in range(batches * BATCH_RECORDS * 2 // 3)]
    value = bytes(ord("a") + i % 26 for i in range(85))
    tail = varint(len(value)) + value + varint(0)
    found = []
    for _ in range(batches):
        body = bytearray()
        for delta in range(BATCH_RECORDS):
            key = rng.choice(keys)
            record = b"\0" + varint(0) + varint(delta) + varint(len(key)) + key + tail
            body += varint(len(record)) + record
        numbers = (0, BATCH_RECORDS - 1, now_ms, now_ms, -1, -1, -1, BATCH_RECORDS)
        covered = struct.pack(">hiqqqhii", *numbers) + body
        head = struct.pack(">qiibI", 0, len(covered) + 9, -1, 2, crc32c.crc32c(covered))
        found.append(frames.produce(TEMPLATE, frames.Batch(head + covered, BATCH_RECORDS), 1).frames)
    return b"".join(found)


class DirtyLog:
    """A topic that stays dirty until `release`."""

    def __init__(self, broker: Contender, scale: Scale) -> None:
        self.broker = broker
        self.topic = f"dirty-{next(_names):04}"
        self.bytes = scale.backlog_bytes // 5
        segment_bytes = max(SEGMENT_BYTES_MIN, self.bytes // SEGMENTS)
        configs = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "1.0"}
        create_topics(broker, {self.topic: 1}, {**configs, "segment.bytes": str(segment_bytes)})
        # At least two segments: the active segment is never cleaned.
        requests = max(self.bytes, 2 * segment_bytes + BATCH_BYTES) // BATCH_BYTES + 1
        circle = keyed_frames(min(CIRCLE_BATCHES_MAX, max(requests // 4, 1)))
        circle = circle.replace(TEMPLATE.encode(), self.topic.encode())
        generator.run(broker.port, circle, Plan(1, 16, requests, CLEAN_TIMEOUT_S))

    @property
    def folder(self) -> Path:
        return self.broker.data / f"{self.topic}-0"

    def segments(self) -> dict[int, int]:
        return {int(path.stem): path.stat().st_size for path in self.folder.glob("*.log")}

    def release(self) -> None:
        """Let the cleaner have the topic from now on."""
        from confluent_kafka.admin import AdminClient
        from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource

        entry = ConfigEntry("min.cleanable.dirty.ratio", "0.0", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.TOPIC, self.topic, incremental_configs=[entry])
        admin = AdminClient(client_settings(self.broker))
        for future in admin.incremental_alter_configs([resource]).values():
            future.result()

    @property
    def is_clean(self) -> bool:
        try:
            lines = (self.broker.data / "cleaner-offset-checkpoint").read_text().splitlines()
        except FileNotFoundError:
            return False
        wanted = f"{self.topic} 0 {self.end_offset}"
        return any(line == wanted for line in lines)

    def begin(self) -> None:
        sizes = self.segments()
        self.end_offset = max(sizes)
        self.dirty_bytes = sum(size for base, size in sizes.items() if base < self.end_offset)
        self.release()

    def wait(self) -> None:
        deadline = time.perf_counter() + CLEAN_TIMEOUT_S
        while not self.is_clean:
            if time.perf_counter() > deadline:
                raise LoadError(f"{self.broker.name} did not clean {self.topic} in {CLEAN_TIMEOUT_S:.0f} s")
            time.sleep(0.005)
        left = sum(size for base, size in self.segments().items() if base < self.end_offset)
        if left > self.dirty_bytes * 2 // 3:
            raise LoadError(f"{self.broker.name} left {left} of {self.dirty_bytes} bytes of {self.topic}")


def clean_speed(broker: Contender, scale: Scale) -> float:
    """Megabytes of a dirty log that are cleaned in a second, from `release` to the checkpoint."""
    dirty = DirtyLog(broker, scale)
    began = time.perf_counter()
    dirty.begin()
    dirty.wait()
    seconds = time.perf_counter() - began
    delete_topics(broker, dirty.topic)
    return dirty.dirty_bytes / seconds / 1e6


def latency_ratio(broker: Contender, scale: Scale) -> float:
    """The p99 of one-record requests, one after the other, during cleaning, divided by that without."""
    topic = f"beside-{next(_names):04}"
    create_topics(broker, {topic: 1})
    load = frames.produce(topic, frames.batch_of(1), 64)
    dirty = DirtyLog(broker, scale)

    def p99_us() -> float:
        plan = Plan(1, 1, 1 << 40, scale.seconds / WINDOWS, load.error_at)
        return generator.run(broker.port, load.frames, plan).p99_us

    p99_us()
    idle = [p99_us() for _ in range(WINDOWS)]
    busy: list[float] = []
    dirty.begin()
    cleaned = threading.Thread(target=dirty.wait)
    cleaned.start()
    while cleaned.is_alive():
        busy.append(p99_us())
    cleaned.join()
    delete_topics(broker, topic, dirty.topic)
    busy = busy[:-1] or busy  # cleaning ended within the last window
    return statistics.median(busy) / statistics.median(idle)


def cleaning(broker: Contender, scale: Scale) -> dict[str, float]:
    broker.start()
    try:
        clean_speed(broker, scale)  # warms up Java's compiler; our broker gets the same load
        return {"cleaner": clean_speed(broker, scale), "cleaner-p99": latency_ratio(broker, scale)}
    finally:
        broker.stop()


TRIALS = (Trial(("cleaner", "cleaner-p99"), cleaning, warm_up=False, overrides=CLEANER_SETTINGS),)
