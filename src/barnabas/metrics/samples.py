"""A metric, and one sample of it: the key of the registry is (domain, type, name, tags, attribute).

In: names as Kafka's MBeans have them. Out: values that every outlet reads. Kafka has two libraries of
metrics. An MBean of the older one has a name, and attributes such as Value or Count
(`type=ReplicaManager,name=LeaderCount`). An MBean of the newer one has no name: each attribute is a metric
(`type=raft-metrics`, attribute `current-leader`). Does not know: where values come from, how they are
written.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from barnabas.metrics.histogram import Snapshot

Tags = tuple[tuple[str, str], ...]
VALUE, COUNT = "Value", "Count"
OWN_DOMAIN = "barnabas"  # of MBeans that only this project has
SECONDS, NANOSECONDS = "SECONDS", "NANOSECONDS"
# MBeans of the newer library whose type does not tell by a hyphen.
NAMELESS_TYPES = frozenset({"Produce", "Fetch", "Request", "ControllerMutation", "ForwardingManager"})
CALLS = "calls"  # of a timer: a histogram that has rates, too
# The units of meters whose names do not tell them, as Apache Kafka 4.3 says them.
EVENT_TYPES = {
    "AcceptorBlockedPercent": "blocked time",
    "ElectionFromEligibleLeaderReplicasPerSec": "elections",
    "ErrorsPerSec": "requests",
    "ExpiresPerSec": "requests",
    "FailedIsrUpdatesPerSec": "failedUpdates",
    "FetchMessageConversionsPerSec": "requests",
    "IncrementalFetchSessionEvictionsPerSec": "evictions",
    "InvalidMagicNumberRecordsPerSec": "requests",
    "InvalidMessageCrcRecordsPerSec": "requests",
    "InvalidOffsetOrSequenceRecordsPerSec": "requests",
    "IsrExpandsPerSec": "expands",
    "IsrShrinksPerSec": "shrinks",
    "LogFlushRateAndTimeMs": CALLS,
    "NoKeyCompactedTopicRecordsPerSec": "requests",
    "ProduceMessageConversionsPerSec": "requests",
    "RecordAcknowledgementsPerSec": "records",
    "ShareSessionEvictionsPerSec": "evictions",
    "UncleanLeaderElectionsPerSec": "elections",
    "VerificationFailureRate": "failures",
    "cleaner-io": "bytes",
}
# Characters that an MBean's name may not hold unless it is quoted.
QUOTED = frozenset(',=:"*?\n')


class Kind(Enum):
    COUNTER = "counter"  # a number that only grows while the process runs
    GAUGE = "gauge"
    HISTOGRAM = "histogram"  # its value is a `Snapshot`
    TEXT = "text"  # its value is a text


@dataclass(frozen=True, slots=True)
class Metric:
    """One attribute of all MBeans that differ only in their tags."""

    domain: str
    type: str
    name: str  # "": an MBean of the newer library
    attribute: str
    kind: Kind
    help: str
    event_type: str = "events"  # of a counter with a name, which is a meter
    rate_unit: str = SECONDS
    is_detail: bool = False  # one sample for each partition: a setting leaves it out
    tag_names: tuple[
        str, ...
    ] = ()  # where MBeans of one type and attribute differ in the tags that they have

    @property
    def is_meter(self) -> bool:
        """Whether readers of MBeans expect rates over 1, 5 and 15 minutes."""
        return self.kind is Kind.COUNTER and bool(self.name)

    @property
    def is_timer(self) -> bool:
        """Whether readers of MBeans expect rates beside percentiles."""
        return self.kind is Kind.HISTOGRAM and self.event_type == CALLS

    def mbean(self, tags: Tags = ()) -> str:
        """`kafka.log:type=Log,name=Size,topic=t,partition=0`. As in Kafka, a tag without a value is left out:
        a quota of a client id has no `user`."""
        pairs = [("type", self.type), ("name", self.name), *tags]
        shown = ",".join(f"{key}={quoted(value)}" for key, value in pairs if value)
        return f"{self.domain or OWN_DOMAIN}:{shown}"


class Sample(NamedTuple):
    """One value. Its key is (`domain`, `type`, `name`, `tags`, `attribute`)."""

    metric: Metric
    tags: Tags
    value: float | str | Snapshot

    @property
    def domain(self) -> str:
        return self.metric.domain

    @property
    def type(self) -> str:
        return self.metric.type

    @property
    def name(self) -> str:
        return self.metric.name

    @property
    def attribute(self) -> str:
        return self.metric.attribute

    @property
    def kind(self) -> Kind:
        return self.metric.kind

    @property
    def help(self) -> str:
        return self.metric.help

    @property
    def mbean(self) -> str:
        return self.metric.mbean(self.tags)


def metric_of(
    domain: str,
    type: str,
    name: str,
    kind: Kind,
    help: str,
    *,
    rate_unit: str = SECONDS,
    is_detail: bool = False,
    tag_names: tuple[str, ...] = (),
) -> Metric:
    """The metric that Kafka calls so. `name` is an attribute where the MBean is one of the newer library."""
    if "-" in type or type in NAMELESS_TYPES or not domain:
        return Metric(domain, type, "", name, kind, help, is_detail=is_detail, tag_names=tag_names)
    attribute = COUNT if kind is Kind.COUNTER else VALUE
    return Metric(domain, type, name, attribute, kind, help, event_of(name), rate_unit, is_detail, tag_names)


def event_of(name: str) -> str:
    """The unit of a meter, as Kafka says it: bytes, requests, messages, elections."""
    lower, words = name.lower(), ("bytes", "requests", "messages", "percent")
    return EVENT_TYPES.get(name) or next((word for word in words if word in lower), "events")


def quoted(value: str) -> str:
    if not QUOTED.intersection(value):
        return value
    inner = "".join({"\n": "\\n"}.get(c, f"\\{c}" if c in '\\"*?' else c) for c in value)
    return f'"{inner}"'
