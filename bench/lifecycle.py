"""Trials that start and stop brokers: start-up time, memory at rest, thousands of partitions.

In: a contender that is not running, on a formatted folder. Out: one value for each row.
Does not know: which broker it is, the order of rounds, floors.
"""

from __future__ import annotations

import time

from bench.brokers import Contender, create_topics, delete_topics, memory_bytes, wait_until_usable
from bench.loads import Scale, Trial

SETTLE_S = 2.0
PARTITIONS_PER_TOPIC = 100


def start_and_rest(broker: Contender, scale: Scale) -> dict[str, float]:
    """The time from spawning the process to its first response, and its memory a moment later."""
    seconds = broker.start()
    try:
        time.sleep(min(SETTLE_S, scale.seconds))
        memory = memory_bytes(broker.pid)
    finally:
        broker.stop()
    return {"start": seconds * 1e3, "memory-rest": memory / 1e6}


def many_partitions(broker: Contender, scale: Scale) -> dict[str, float]:
    """Create all partitions, stop cleanly, start again: each time until every partition responds."""
    per_topic = min(PARTITIONS_PER_TOPIC, scale.partitions)
    topics = {f"many-{i:02}": per_topic for i in range(scale.partitions // per_topic)}
    broker.start()
    try:
        began = time.perf_counter()
        create_topics(broker, topics)
        create_s = time.perf_counter() - began
        memory = memory_bytes(broker.pid)
        broker.stop()
        began = time.perf_counter()
        broker.start()
        wait_until_usable(broker, topics)
        restart_s = time.perf_counter() - began
        memory = max(memory, memory_bytes(broker.pid))
        delete_topics(broker, *topics)
    finally:
        broker.stop()
    return {
        "partitions-create": create_s * 1e3,
        "partitions-restart": restart_s * 1e3,
        "partitions-memory": memory / 1e6,
    }


TRIALS = (
    Trial(("start", "memory-rest"), start_and_rest, warm_up=False),
    Trial(("partitions-create", "partitions-restart", "partitions-memory"), many_partitions, warm_up=False),
)
