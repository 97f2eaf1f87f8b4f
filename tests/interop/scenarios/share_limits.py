"""How much a ShareFetch acquires: record limits, batch sizes, acquire modes, bytes, waiting."""

from __future__ import annotations

from ..sharers import ACCEPT, Sharer, load, share_group
from ..talk import Talk, scenario

NOW = {"max_wait_ms": 0, "min_bytes": 0}
OPTIMIZED, LIMIT = 0, 1


def loaded(talk: Talk, suffix: str, **configs: str) -> tuple[str, str]:
    topic = talk.topic(suffix)
    load(talk, topic, (5, 5, 5))
    return topic, share_group(talk, [topic], suffix, **configs)


@scenario
def record_limits(talk: Talk) -> None:
    for mode in (OPTIMIZED, LIMIT):
        for count, size in ((3, 10), (7, 7), (12, 4)):
            topic, name = loaded(talk, f"m{mode}-{count}-{size}")
            ann = Sharer(talk, name)
            limits = {"max_records": count, "batch_size": size, "share_acquire_mode": mode}
            ann.fetch(f"acquires {count} in batches of {size}, mode {mode}", {topic: {0: ()}}, **limits)
            ann.fetch("and again", {}, **limits, **NOW)


@scenario
def limits_that_are_wrong(talk: Talk) -> None:
    for label, fields in (
        ("no records", {"max_records": 0, "max_wait_ms": 500}),
        ("batches of 0", {"batch_size": 0}),
        ("batches of -1", {"batch_size": -1}),
        ("no bytes", {"max_bytes": 0, "max_wait_ms": 500}),
        ("-1 bytes", {"max_bytes": -1, "max_wait_ms": 500}),
        ("mode 2", {"share_acquire_mode": 2}),
        ("mode -1", {"share_acquire_mode": -1}),
        ("more bytes at least than at most", {"min_bytes": 1000, "max_bytes": 100}),
    ):
        topic, name = loaded(talk, label.replace(" ", "-"))
        Sharer(talk, name).fetch(f"asks for {label}", {topic: {0: ()}}, **fields)


@scenario
def few_bytes(talk: Talk) -> None:
    topic, name = loaded(talk, "bytes")
    ann = Sharer(talk, name)
    ann.fetch("one byte at most", {topic: {0: ()}}, max_bytes=1)
    ann.fetch("one byte again", {}, max_bytes=1)
    ann.fetch("more", {}, max_bytes=200)


@scenario
def several_partitions(talk: Talk) -> None:
    topic = talk.topic(partitions=3)
    for partition in range(3):
        load(talk, topic, (2,), partition=partition)
    name = share_group(talk, [topic])
    ann = Sharer(talk, name)
    counts = 0
    while counts < 6:
        answer = ann.silently_fetch({topic: {0: (), 1: (), 2: ()}} if ann.epoch == 0 else {})
        for partition in answer["responses"][0]["partitions"]:
            counts += 2 * len(partition["acquired_records"])
    accepts = {topic: {partition: [(0, 1, [ACCEPT])] for partition in range(3)}}
    ann.acknowledge("accepts all", accepts)


@scenario
def locks_have_a_limit(talk: Talk) -> None:
    topic = talk.topic()
    load(talk, topic, (100,) * 3)
    name = share_group(talk, [topic], share_partition_max_record_locks="100")
    ann = Sharer(talk, name)
    ann.fetch("acquires", {topic: {0: ()}})
    ann.fetch("acquires no more", {}, **NOW)
    ann.acknowledge("accepts the first ten", {topic: {0: [(0, 9, [ACCEPT])]}})
    ann.fetch("and fetches", {}, **NOW)
    ann.acknowledge("accepts the rest", {topic: {0: [(10, 99, [ACCEPT])]}})
    ann.fetch("acquires no more than that", {}, max_wait_ms=300)


@scenario
def beginning_at_the_end(talk: Talk) -> None:
    topic = talk.topic()
    load(talk, topic, (3,))
    name = share_group(talk, [topic], share_auto_offset_reset="latest")
    ann = Sharer(talk, name)
    ann.fetch("finds nothing", {topic: {0: ()}}, max_wait_ms=500)
    load(talk, topic, (2,))
    ann.fetch("gets new records", {})
