"""Measures the time from producing an order to its appearance in a served view, alone and under steady load.

In: a broker, a pipeline that runs as `barnabas pipeline run` runs it. Out: the seconds of each order. The
bench queries the view fifty times a second, so that queries do not become the load; a result may therefore be
seen up to 20 ms late. Does not know: how the view is updated.
"""

from __future__ import annotations

import contextlib
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from barnabas.pipeline import Pipeline
from barnabas.pipeline.run.start import supervised
from barnabas.pipeline.serving.access import serving_url
from barnabas.pipeline.serving.http.client import ServingClient, ServingError
from barnabas.testing.broker import Broker
from bench.pipeline_orders import VIEW, Scale, pipeline_of

TOPIC = "latency"
WAIT_S_MAX = 300.0
LOOK_S = 0.02
SHARE = 0.2  # share of the time for the trickle
WARM_UP = 15

Say = Callable[[str], None]


@dataclass(slots=True)
class Latencies:
    """The seconds of each order, in the order of sending."""

    trickle: list[float] = field(default_factory=list)
    steady: list[float] = field(default_factory=list)
    rate: float = 0.0  # orders a second that were sent steadily

    @property
    def early_and_late(self) -> tuple[float, float]:
        """The medians of the first and the last fifth of the trickle, in which each order is a batch."""
        fifth = max(len(self.trickle) // 5, 1)
        return statistics.median(self.trickle[:fifth]), statistics.median(self.trickle[-fifth:])


def latencies(broker: Broker, scale: Scale, work: Path, say: Say) -> Latencies:
    broker.create_topic(TOPIC, partitions=1)
    pipeline = pipeline_of(broker.bootstrap, TOPIC, work / "latency", 100_000, refines=False)
    found = Latencies()
    with running(pipeline), sending(broker) as send:
        shop = Watched(pipeline)
        sent = warm_up(shop, send, say)
        sent = trickle(shop, send, sent, scale, found, say)
        steady(shop, send, sent, scale, found, say)
    return found


@contextlib.contextmanager
def running(pipeline: Pipeline) -> Iterator[None]:
    with supervised(pipeline) as supervisor:
        thread = threading.Thread(target=supervisor.run)
        thread.start()
        try:
            yield
        finally:
            supervisor.stop()
            thread.join()


@contextlib.contextmanager
def sending(broker: Broker) -> Iterator[Callable[[int], None]]:
    from confluent_kafka import Producer

    producer: Any = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0})

    def send(number: int) -> None:
        producer.produce(TOPIC, f'{{"order_id": "o{number}", "shop": "berlin", "amount": 1.0}}')
        producer.poll(0)

    yield send
    producer.flush()


class Watched:
    """The number of orders that the view shows."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._client: ServingClient | None = None

    def count(self) -> int:
        """The number of orders in the view; -1 if the service does not respond."""
        try:
            if self._client is None:
                url = serving_url(self._pipeline)
                if url is None:
                    return -1
                self._client = ServingClient(url, patience_s=1.0)
            rows = self._client.query(VIEW.name)["rows"]
        except ServingError:
            return -1
        return int(rows[0]["orders"]) if rows else 0

    def until(self, number: int) -> None:
        deadline = time.monotonic() + WAIT_S_MAX
        while self.count() < number:
            if time.monotonic() > deadline:
                raise TimeoutError(f"the view does not show {number} orders after {WAIT_S_MAX:g} s")
            time.sleep(LOOK_S)


def warm_up(shop: Watched, send: Callable[[int], None], say: Say) -> int:
    say("latency: starting the pipeline")
    for number in range(WARM_UP):
        send(number)
        shop.until(number + 1)
    return WARM_UP


def trickle(
    shop: Watched, send: Callable[[int], None], sent: int, scale: Scale, found: Latencies, say: Say
) -> int:
    """Send one order after the other, each when the previous one is in the view."""
    deadline = time.monotonic() + scale.share_s(SHARE)
    for number in range(sent, sent + scale.samples):
        if (number - sent) % 25 == 0:
            say(f"latency: a trickle, {number - sent} of {scale.samples}")
        started = time.perf_counter()
        send(number)
        shop.until(number + 1)
        found.trickle.append(time.perf_counter() - started)
        if time.monotonic() > deadline:
            break
    return sent + len(found.trickle)


def steady(
    shop: Watched, send: Callable[[int], None], sent: int, scale: Scale, found: Latencies, say: Say
) -> None:
    """Send orders at a fixed rate. The topic has one partition, so orders appear in order."""
    total = scale.rate * scale.steady_s
    say(f"latency: {scale.rate} orders a second for {scale.steady_s} s")
    times: list[float] = []

    def feed() -> None:
        started = time.perf_counter()
        for number in range(total):
            wait_s = started + number / scale.rate - time.perf_counter()
            if wait_s > 0:
                time.sleep(wait_s)
            times.append(time.perf_counter())
            send(sent + number)

    thread = threading.Thread(target=feed)
    thread.start()
    deadline = time.monotonic() + WAIT_S_MAX
    try:
        while len(found.steady) < total and time.monotonic() < deadline:
            time.sleep(LOOK_S)
            shown, now = shop.count() - sent, time.perf_counter()
            found.steady += [now - at for at in times[len(found.steady) : max(shown, 0)]]
    finally:
        thread.join()
    found.rate = (total - 1) / (times[-1] - times[0])
    if len(found.steady) < total:
        raise TimeoutError(f"{total - len(found.steady)} orders of the steady load are not in the view")
