"""The cost of metrics: one-record requests on a broker that measures and is scraped, and on one that does
neither.

In: one of our brokers with metrics. Out: requests in a second of CPU time with metrics, by those without, in
turns; and how long a scrape of many partitions takes. Without means: no times, phases and sizes of requests,
no endpoint; counters of topics stay. Does not know: the order of rounds, floors.
"""

from __future__ import annotations

import statistics
import threading
import time
import urllib.request
from dataclasses import replace

from barnabas.runtime.tcp_ports import free_ports
from bench.brokers import Barnabas, Contender, cpu_seconds, create_topics, delete_topics
from bench.loads import PRODUCE, Scale, Trial

COST, SCRAPE = "metrics-cost", "metrics-scrape"
TOPIC = "measured"
TURNS = 8
CPU_TICK_S = 0.01
SCRAPES_EVERY_S = 5.0
SCRAPES = 5
PARTITIONS, PARTITIONS_TINY = 10_000, 50
A_TOPIC = 1_000
PIPELINED = PRODUCE["produce-pipelined"]
[PORT] = free_ports(1)
URL = f"http://127.0.0.1:{PORT}/metrics"
WITH = {"barnabas.metrics.port": str(PORT)}
WITHOUT = {"barnabas.metrics.requests": "false"}


class Scraping:
    """Scrapes every five seconds, as Prometheus does."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(SCRAPES_EVERY_S):
            scrape()


def scrape() -> float:
    """The seconds of one scrape."""
    began = time.perf_counter()
    with urllib.request.urlopen(URL, timeout=60) as answer:
        answer.read()
    return time.perf_counter() - began


def measure(broker: Contender, scale: Scale) -> dict[str, float]:
    if not isinstance(broker, Barnabas):
        return {}
    plain = Barnabas(overrides=WITHOUT)
    try:
        for each in (broker, plain):
            each.start()
            create_topics(each, {TOPIC: 1})
            PIPELINED.load(each.port, TOPIC, replace(scale, seconds=scale.warm_up_s / 2 + 0.05))
        by_cpu = {True: 0.0, False: 0.0}  # the most requests in a second of CPU, with metrics and without
        with Scraping():
            for turn in range(TURNS if scale.seconds >= 1 else 1):
                both = [(True, broker), (False, plain)]
                for has_metrics, each in both if turn % 2 else reversed(both):
                    before = cpu_seconds(each.pid)
                    load = PIPELINED.load(each.port, TOPIC, scale)
                    used = max(cpu_seconds(each.pid) - before, CPU_TICK_S)
                    by_cpu[has_metrics] = max(by_cpu[has_metrics], load.requests / used)
        delete_topics(broker, TOPIC)
        return {COST: by_cpu[True] / by_cpu[False]}
    finally:
        plain.close()
        broker.stop()


def measure_scrapes(broker: Contender, scale: Scale) -> dict[str, float]:
    if not isinstance(broker, Barnabas):
        return {}
    broker.start()
    try:
        left, number = PARTITIONS if scale.seconds >= 1 else PARTITIONS_TINY, 0
        while left > 0:
            create_topics(broker, {f"scraped-{number}": min(left, A_TOPIC)})
            left, number = left - A_TOPIC, number + 1
        scrape()
        return {SCRAPE: statistics.median(scrape() for _ in range(SCRAPES)) * 1000}
    finally:
        broker.close()


TRIALS = (
    Trial((COST,), measure, warm_up=False, overrides=WITH),
    Trial((SCRAPE,), measure_scrapes, warm_up=False, overrides=WITH, is_once=True),
)
