"""Names of tiers: the places that records pass and are counted at, and which tier each is compared with.

A name is a kind, and for kinds with several members a name behind a slash: `consumer/billing`. A zone is
`zone/PIPELINE/raw`, or that of one source and one table: `zone/shop/orders/staging.orders`.
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
SAME_PARTITIONS = frozenset({PRODUCER, CLUSTER, MIRROR, CONSUMER, ZONE, SINK})


def mirror(cluster: str) -> str:
    """A cluster that a mirror fills."""
    return f"{MIRROR}/{cluster}"


def consumer(group: str) -> str:
    return f"{CONSUMER}/{group}"


def zone(pipeline: str, name: str) -> str:
    """A zone of a pipeline's lake: raw, staging or trusted."""
    return f"{ZONE}/{pipeline}/{name}"


def zone_of_source(pipeline: str, source: str, name: str, table: str = "") -> str:
    """The rows of one source in a zone of its pipeline: in raw, or in one table of another zone."""
    return zone(f"{pipeline}/{source}", f"{name}.{table}" if table else name)


def sink(name: str) -> str:
    return f"{SINK}/{name}"


def kind_of(tier: str) -> str:
    return tier.partition("/")[0]


def order_of(tier: str) -> tuple[int, str]:
    """A key that sorts tiers in the order in which records pass them."""
    kind = kind_of(tier)
    depth = KINDS.index(kind) if kind in KINDS else len(KINDS)
    name = tier.rpartition("/")[2].partition(".")[0]
    zone_number = (RAW, STAGING, TRUSTED).index(name) if name in (RAW, STAGING, TRUSTED) else 0
    return depth * 10 + zone_number, tier


def default_reference(tier: str, known: Collection[str]) -> str | None:
    """The tier before this one, of those that count the topic. None if there is none: the tier is first."""
    kind = kind_of(tier)
    before: list[str] = []
    if kind == ZONE:
        pipeline, _, name = tier.rpartition("/")
        if "." in name:  # a pipeline writes its tables side by side, each from what is in raw
            before = [f"{pipeline}/{RAW}"]
        elif name == TRUSTED:
            before = [f"{pipeline}/{STAGING}", f"{pipeline}/{RAW}"]
        elif name == STAGING:
            before = [f"{pipeline}/{RAW}"]
    if kind == CLUSTER:
        before += [PRODUCER]
    elif kind != PRODUCER:
        before += [CLUSTER, PRODUCER]
    return next((each for each in before if each in known), None)
