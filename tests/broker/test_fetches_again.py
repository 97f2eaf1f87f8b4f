"""A follower's fetches of partitions that are written in turns: filled templates equal encoded requests."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

from barnabas.broker.replicas.leader_fetcher import TEMPLATES_MAX, Followed, LeaderFetcher

VERSION = 17
SETTINGS = {
    "replica.fetch.max.bytes": 1 << 20,
    "replica.fetch.response.max.bytes": 10 << 20,
    "replica.fetch.wait.max.ms": 500,
    "replica.fetch.min.bytes": 1,
}


def fetcher_of(partitions: int) -> tuple[LeaderFetcher, list[tuple[bytes, int]]]:
    broker: Any = SimpleNamespace(settings=SETTINGS, node_id=2, epoch=7, pieces=None)
    anything: Any = None
    fetcher = LeaderFetcher(broker, anything, 1, anything)
    fetcher._link = SimpleNamespace(version_of=lambda response: VERSION)  # type: ignore[assignment]
    fetcher._session_id, fetcher._session_epoch = 99, 1
    keys = [(bytes([index % 3]) * 16, index) for index in range(partitions)]
    for key in keys:
        log = SimpleNamespace(
            epochs=SimpleNamespace(latest_epoch=4), log_start_offset=0, written_offset=key[1] * 1000
        )
        fetcher._followed[key] = Followed(SimpleNamespace(log=log), 4)  # type: ignore[arg-type]
    return fetcher, keys


def test_templates_of_many_partitions_encode_like_requests() -> None:
    rng = random.Random(1)
    fetcher, keys = fetcher_of(TEMPLATES_MAX // 2)
    filled = 0
    for _ in range(1000):
        key = rng.choice(keys)
        each: Any = fetcher._followed[key]
        log = each.partition.log
        log.written_offset += rng.randrange(3)
        if rng.random() < 0.01:
            each.epoch += 1
        if rng.random() < 0.01:
            log.epochs.latest_epoch += 1
        if rng.random() < 0.01:
            log.log_start_offset += 1
        if rng.random() < 0.01:
            fetcher._broker.epoch += 1
        if rng.random() < 0.005:
            fetcher._session_id += 1
        fetcher._session_epoch += 1
        body = fetcher._repeated_fetch(key)
        if body is not None:
            filled += 1
            assert each.fetch_offset == log.written_offset
            assert body == fetcher._request([key], [], SETTINGS["replica.fetch.wait.max.ms"]).encode(VERSION)
    assert filled > 400


def test_a_fetch_is_not_filled_in_before_its_session_or_after_another_began() -> None:
    fetcher, (key, *_) = fetcher_of(1)
    assert fetcher._repeated_fetch(key) is None
    assert fetcher._repeated_fetch(key) is not None
    fetcher._start_anew()
    fetcher._session_id, fetcher._session_epoch = 99, 0
    assert fetcher._repeated_fetch(key) is None
    assert fetcher._repeated_fetch(key) is None


def test_as_many_templates_are_kept_as_are_allowed() -> None:
    fetcher, keys = fetcher_of(3 * TEMPLATES_MAX)
    for _ in range(3):
        for key in keys:
            fetcher._repeated_fetch(key)
            assert len(fetcher._templates) <= TEMPLATES_MAX
