"""What traces cost a broker: CPU seconds for the same small produce requests, without and with them.

`python -m bench.traces [records]`. Each case has a broker of its own; the first and the last are the same, so
that their difference shows the noise of the machine.
"""

from __future__ import annotations

import sys
from statistics import median

import psutil
from confluent_kafka import Producer

from barnabas.testing import Broker

RECORDS = 500_000
ROUNDS = 3
A_REQUEST = 10  # records: requests are many and small, so that a cost of each request shows
OTLP = {
    "metric.reporters": "otlp",
    "barnabas.otlp.endpoint": "http://127.0.0.1:9",  # nobody listens: spans are dropped
    "barnabas.outlets.interval.ms": "60000",
    "barnabas.outlets.client.metrics": "false",
}
CASES: dict[str, dict[str, str]] = {
    "off": {},
    "ratio 0.01": {**OTLP, "barnabas.traces.ratio": "0.01"},
    "headers": {**OTLP, "barnabas.traces.headers": "true"},
    "off again": {},
}


def cpu_s(settings: dict[str, str], records: int) -> float:
    with Broker(overrides=settings, in_process=False) as broker:
        broker.create_topic("t", partitions=1)
        process = max(psutil.Process().children(recursive=True), key=lambda each: each.memory_info().rss)
        producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap,
                "batch.num.messages": A_REQUEST,
                "queue.buffering.max.messages": 1_000_000,
                "enable.metrics.push": False,
                "log_level": 0,
            }
        )
        send(producer, 2_000)
        before = process.cpu_times()
        send(producer, records)
        after = process.cpu_times()
    return after.user + after.system - before.user - before.system


def send(producer: Producer, records: int) -> None:
    for number in range(records):
        while True:
            try:
                producer.produce("t", b"x" * 100)
                break
            except BufferError:
                producer.poll(0.1)
        if not number % 1_000:
            producer.poll(0)
    producer.flush()


def main() -> None:
    records = int(sys.argv[1]) if len(sys.argv) > 1 else RECORDS
    found: dict[str, list[float]] = {name: [] for name in CASES}
    for _ in range(ROUNDS):
        for name, settings in CASES.items():
            found[name].append(cpu_s(settings, records))
    base = median(found["off"])
    requests = records / A_REQUEST
    for name, times in found.items():
        middle = median(times)
        more_us = (middle - base) / requests * 1e6
        print(f"{name:12} {middle:6.2f} s  {middle / base:5.2f} x  {more_us:+6.2f} us a request")


if __name__ == "__main__":
    main()
