"""A topic of changes by key, and a sink whose worker is killed again and again while it writes them, and
whose store goes away and comes back."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import orjson
from confluent_kafka import Producer
from tests.connect.connectors.worker import running_worker, until

Rows = list[tuple[str, dict[str, Any] | None]]
KILLS = 3
START_S = 90.0  # of a worker on a busy machine
RETRIED = "records again in"  # the worker's line about records that a store does not take


def changes(seed: str, count: int, keys: int, *, deletes: bool = True) -> Rows:
    """Random changes: each value has the number of its change; one in ten deletes."""
    rng = random.Random(seed)
    return [
        (
            f"k{rng.randrange(keys)}",
            None if deletes and rng.random() < 0.1 else {"id": number, "text": f"t{number}"},
        )
        for number in range(count)
    ]


def last_of_each(rows: Rows) -> dict[str, dict[str, Any]]:
    """What remains of these changes."""
    return {key: value for key, value in dict(rows).items() if value is not None}


def produce(bootstrap: str, topic: str, rows: Rows) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    for key, value in rows:
        producer.produce(topic, None if value is None else orjson.dumps(value), key)
        producer.poll(0)
    assert producer.flush(30) == 0


class Store(Protocol):
    """A store that a test kills and starts again. `start` returns when it takes records. `is_needed`: nothing
    is written while it is away."""

    is_needed: bool

    def stop(self) -> None: ...

    def start(self) -> None: ...


def run_with_kills(
    folder: Path,
    bootstrap: str,
    connector: dict[str, str],
    rows: Rows,
    highest: Callable[[], int],
    store: Store | None = None,
    **worker: str,
) -> None:
    """Write `rows` through the connector. `highest` is the highest number that the store has: the worker is
    killed when the first records of a part are there, most of them not. Ends when the last worker has
    written everything. With a store, one worker is killed while the store is away, and the last one lives
    through a restart of the store, with records that came meanwhile."""
    topic = connector["topics"]
    given = {"key.converter": "org.apache.kafka.connect.storage.StringConverter", **connector}
    part = len(rows) // (KILLS + 1)
    for number in range(KILLS):
        produce(bootstrap, topic, rows[number * part : (number + 1) * part])
        first = number * part
        with running_worker(folder, bootstrap, given, **worker) as running:
            until(lambda first=first: highest() >= first, START_S)
            if store is not None and number == 1:
                store.stop()
                running.kill()
                store.start()
            else:
                running.kill()
    middle = len(rows) - part // 2
    produce(bootstrap, topic, rows[KILLS * part : middle])
    with running_worker(folder, bootstrap, given, **worker) as running:
        until(lambda: highest() >= KILLS * part, START_S)
        if store is not None:
            before = len(running.text())
            store.stop()
        produce(bootstrap, topic, rows[middle:])
        if store is not None:
            if store.is_needed:
                until(lambda: RETRIED in running.text()[before:], START_S)
            store.start()
        last = max(value["id"] for _, value in rows if value is not None)
        until(lambda: highest() >= last, START_S)
