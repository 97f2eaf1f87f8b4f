"""Trials of share groups: consumption by several members, acquire to acknowledge, memory in flight.

In: a broker, a scale. Out: one value for each row. Each round has a group of its own, which begins with the
first record of a backlog. Does not know: which broker it is, the order of rounds, floors.
"""

from __future__ import annotations

import itertools
import time

from barnabas.client.core.acknowledgements import AckBatch
from barnabas.client.core.share_session import AcquireMode, Place, ShareLimits
from bench import frames, generator
from bench.brokers import Contender, client_settings, create_topics, memory_bytes
from bench.generator import LoadError, Plan
from bench.groups import wait_for_coordinator
from bench.loads import Scale, Trial
from bench.share_members import ACCEPT, ShareMember, consume, initialize

TOPIC = "share-work"
PARTITIONS = 10
SIZES = (1, 10, 50)
BATCH_RECORDS = 139  # of 100 bytes: a batch of a Java producer with defaults
RECORDS_MAX = 3_000_000
LATENCY_MEMBERS = 10
LATENCY_RECORDS = 10  # in each exchange
IN_FLIGHT = 1_000_000
IN_FLIGHT_PARTITIONS = 100
LOCKS = IN_FLIGHT // IN_FLIGHT_PARTITIONS
LOCK_MS = 600_000
IN_FLIGHT_SETTINGS = {
    "group.share.max.partition.max.record.locks": str(LOCKS),
    "group.share.partition.max.record.locks": str(LOCKS),
    "group.share.max.record.lock.duration.ms": str(LOCK_MS),
    "group.share.record.lock.duration.ms": str(LOCK_MS),
}
_names = itertools.count(1)


def records_of(scale: Scale) -> int:
    return min(RECORDS_MAX, scale.client_records)


def fill(broker: Contender, topic: str, partitions: int, records: int) -> None:
    """Create a topic and fill each partition with so many records, in batches of 15 KB."""
    create_topics(broker, {topic: partitions})
    batch = frames.batch_of(BATCH_RECORDS)
    requests = -(-records // BATCH_RECORDS)
    for partition in range(partitions):
        load = frames.produce(topic, batch, min(requests, 64), partition)
        generator.run(broker.port, load.frames, Plan(1, 16, requests, 300.0, load.error_at))


def make_backlog(broker: Contender, scale: Scale) -> None:
    fill(broker, TOPIC, PARTITIONS, records_of(scale) // PARTITIONS)


def new_group(broker: Contender, topic: str, partitions: int) -> tuple[str, list[Place]]:
    """A group that begins with the first record, and its share partitions."""
    from confluent_kafka.admin import (
        AdminClient,
        AlterConfigOpType,
        ConfigEntry,
        ConfigResource,
        ResourceType,
    )

    wait_for_coordinator(broker)
    name = f"sharing-{next(_names)}"
    entry = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.GROUP, name, incremental_configs=[entry])
    admin = AdminClient(client_settings(broker))
    admin.incremental_alter_configs([resource])[resource].result(60)
    return name, initialize(broker.port, name, topic, partitions)


def share_consume(broker: Contender, scale: Scale) -> dict[str, float]:
    """Groups of 1, 10 and 50 members; each fetches up to 500 records and accepts them with the next fetch."""
    values = {}
    for size in SIZES:
        name, places = new_group(broker, TOPIC, PARTITIONS)
        members = [ShareMember(broker.port, name, places, ShareLimits()) for _ in range(size)]
        try:
            rate = consume(members, records_of(scale) // 2, scale.seconds)
        finally:
            for member in members:
                member.close()
        values[f"share-consume-{size}"] = rate / 1e3
    return values


def acquire_to_acknowledge(broker: Contender, scale: Scale) -> dict[str, float]:
    """Ten members that fetch ten records and acknowledge them, one after the other: the time from the fetch
    to the response to the acknowledgement."""
    name, places = new_group(broker, TOPIC, PARTITIONS)
    limits = ShareLimits(records_max=LATENCY_RECORDS, acquire_mode=AcquireMode.RECORD_LIMIT)
    members = [ShareMember(broker.port, name, places, limits) for _ in range(LATENCY_MEMBERS)]
    took: list[float] = []
    try:
        for member in members:  # the share partitions are loaded
            member.fetch()
            accept(member)
        for member in itertools.islice(itertools.cycle(members), scale.latency_records):
            began = time.perf_counter()
            if not member.fetch():
                raise LoadError("a fetch of a backlog acquired nothing")
            accept(member)
            took.append(time.perf_counter() - began)
    finally:
        for member in members:
            member.close()
    return {"share-latency-p99": sorted(took)[int(len(took) * 0.99)] * 1e6}


def accept(member: ShareMember) -> None:
    acquired, member.acquired = member.acquired, {}
    if acquired:
        member.acknowledge(acquired)


def memory_in_flight(broker: Contender, scale: Scale) -> dict[str, float]:
    """The memory of a broker while a million records are acquired, and one in the middle of each batch is
    accepted already."""
    partitions = IN_FLIGHT_PARTITIONS if scale.seconds >= 1 else 2
    topic = f"in-flight-{next(_names)}"
    broker.start()
    try:
        fill(broker, topic, partitions, LOCKS if scale.seconds >= 1 else 1_000)
        name, places = new_group(broker, topic, partitions)
        wanted = partitions * LOCKS * 0.95 if scale.seconds >= 1 else 1_000
        member = ShareMember(broker.port, name, places, ShareLimits(records_max=2_000))
        held = 0
        try:
            while held < wanted:
                acquired = member.fetch()
                if not acquired:
                    raise LoadError(f"only {held} records are in flight")
                held += acquired
                middles = {
                    place: [
                        AckBatch((first + last) // 2, (first + last) // 2, ACCEPT)
                        for first, last, _ in batches
                    ]
                    for place, batches in member.acquired.items()
                }
                member.acquired = {}
                member.acknowledge(middles)
            return {"share-memory": memory_bytes(broker.pid) / 1e6}
        finally:
            member.close()
    finally:
        broker.stop()


TRIALS = (
    Trial(tuple(f"share-consume-{size}" for size in SIZES), share_consume, prepare=make_backlog),
    Trial(("share-latency-p99",), acquire_to_acknowledge, prepare=make_backlog),
)
FRESH_TRIALS = (Trial(("share-memory",), memory_in_flight, warm_up=False, overrides=IN_FLIGHT_SETTINGS),)
