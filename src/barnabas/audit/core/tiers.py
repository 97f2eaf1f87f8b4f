"""Names of tiers: the places that records pass and are counted at, and which tier each is compared with.

A name is a kind, and for kinds with several members a name behind a slash: `consumer/billing`.
In: names. Out: names. Does not know: counts.
"""

from __future__ import annotations

from collections.abc import Collection

PRODUCER = "producer"
CLUSTER = "cluster"
MIRROR = "mirror"
CONSUMER = "consumer"
ZONE = "zone"
SINK = "sink"

RAW, STAGING, TRUSTED = "raw", "staging", "trusted"
KINDS = (PRODUCER, CLUSTER, MIRROR, CONSUMER, ZONE, SINK)
# Tiers that see the same partitions: they can be compared partition by partition. Mirrors keep partitions.
SAME_PARTITIONS = frozenset({PRODUCER, CLUSTER, MIRROR, CONSUMER})


def mirror(cluster: str) -> str:
    """A cluster that a mirror fills."""
    return f"{MIRROR}/{cluster}"


def consumer(group: str) -> str:
    return f"{CONSUMER}/{group}"


def zone(pipeline: str, name: str) -> str:
    """A zone of a pipeline's lake: raw, staging or trusted."""
    return f"{ZONE}/{pipeline}/{name}"


def sink(name: str) -> str:
    return f"{SINK}/{name}"


def kind_of(tier: str) -> str:
    return tier.partition("/")[0]


def order_of(tier: str) -> tuple[int, str]:
    """A key that sorts tiers in the order in which records pass them."""
    kind = kind_of(tier)
    depth = KINDS.index(kind) if kind in KINDS else len(KINDS)
    last = tier.rpartition("/")[2]
    zone_number = (RAW, STAGING, TRUSTED).index(last) if last in (RAW, STAGING, TRUSTED) else 0
    return depth * 10 + zone_number, tier


def default_reference(tier: str, known: Collection[str]) -> str | None:
    """The tier before this one, of those that count the topic. None if there is none: the tier is first."""
    kind = kind_of(tier)
    before: list[str] = []
    if kind == ZONE:
        pipeline, _, name = tier.rpartition("/")
        if name == TRUSTED:
            before = [f"{pipeline}/{STAGING}", f"{pipeline}/{RAW}"]
        elif name == STAGING:
            before = [f"{pipeline}/{RAW}"]
    if kind == CLUSTER:
        before += [PRODUCER]
    elif kind != PRODUCER:
        before += [CLUSTER, PRODUCER]
    return next((each for each in before if each in known), None)
