"""A source whose worker is killed again and again while it reads what comes, and the records of its topic."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer
from tests.connect.connectors.killed_sink import KILLS, START_S, Store
from tests.connect.connectors.worker import running_worker, until

NumberOf = Callable[[bytes], int]


def read_with_kills(
    folder: Path,
    bootstrap: str,
    connector: dict[str, str],
    topic: str,
    write: Callable[[int, int], None],
    number_of: NumberOf,
    count: int,
    store: Store | None = None,
    **worker: str,
) -> None:
    """`write` puts the entries from a number to another into the store. The worker is killed when the first
    ones of a part are in the topic; with a store, that goes away under the last worker. All entries must
    come, those that come again in their order."""
    part = count // (KILLS + 1)

    def seen() -> list[int]:
        return read(bootstrap, topic, number_of)

    for number in range(KILLS):
        first = number * part
        write(first, first + part)
        with running_worker(folder, bootstrap, connector, **worker) as running:
            until(lambda first=first: max(seen(), default=-1) >= first, START_S)
            running.kill()
    middle = count - part // 2
    write(KILLS * part, middle)
    with running_worker(folder, bootstrap, connector, **worker):
        until(lambda: max(seen(), default=-1) >= KILLS * part, START_S)
        if store is not None:
            store.stop()
            store.start()
        write(middle, count)
        until(lambda: set(range(count)) <= set(seen()), START_S)
    assert_in_order(seen())


def assert_in_order(numbers: list[int]) -> None:
    for before, after in pairwise(numbers):
        assert after <= before + 1, f"records are missing between {before} and {after}"


def read(bootstrap: str, topic: str, number_of: NumberOf) -> list[int]:
    """The numbers in the topic, from its beginning to its end."""
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "group.id": f"{topic}-reader",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": "false",
        "enable.partition.eof": "true",
    }
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    found: list[int] = []
    try:
        while True:
            message = consumer.poll(30)
            assert message is not None, "the topic has no end"
            if message.error() is not None:
                return found  # the end
            found.append(number_of(message.value()))
    finally:
        consumer.close()
