"""The metrics of one broker: counters by topic and API, and sources that are looked up when somebody reads.

In: increments of the counters that `topic` and `api` return, sources registered once. Out: a registry under
Kafka's names (`barnabas.metrics`), which outlets walk. Does not know: what the sources look up, formats,
HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Generator, Iterable, Iterator, Mapping, Sequence
from time import monotonic
from typing import Any

from barnabas.broker.metrics import request_tables
from barnabas.broker.metrics.counters import ApiMetrics, SilentApiMetrics, TopicMetrics
from barnabas.metrics import Histogram, Kind, Metric, Registry, Tags, metric_of
from barnabas.metrics.histogram import snapshot_of

# Attribute of TopicMetrics and the name of its MBean (kafka.server:type=BrokerTopicMetrics).
TOPIC_COUNTERS = {
    "bytes_in": ("BytesInPerSec", "Bytes of records produced."),
    "bytes_out": ("BytesOutPerSec", "Bytes of records fetched."),
    "bytes_rejected": ("BytesRejectedPerSec", "Bytes of batches refused for their size."),
    "failed_fetch_requests": (
        "FailedFetchRequestsPerSec",
        "Fetches of a partition that failed for another reason than a wrong offset, epoch or leader.",
    ),
    "failed_produce_requests": (
        "FailedProduceRequestsPerSec",
        "Writes to a partition that failed for another reason than a wrong leader, size or checksum.",
    ),
    "failed_share_acknowledgement_requests": (
        "FailedShareAcknowledgementRequestsPerSec",
        "Acknowledgements of a share group that failed.",
    ),
    "failed_share_fetch_requests": (
        "FailedShareFetchRequestsPerSec",
        "Fetches of a share group that failed.",
    ),
    "fetch_requests": ("TotalFetchRequestsPerSec", "Fetches of a partition."),
    "invalid_crc_records": ("InvalidMessageCrcRecordsPerSec", "Batches refused for their checksum."),
    "invalid_magic_records": ("InvalidMagicNumberRecordsPerSec", "Batches refused for their format."),
    "invalid_sequence_records": (
        "InvalidOffsetOrSequenceRecordsPerSec",
        "Batches refused for their offsets or sequence numbers.",
    ),
    "messages_in": ("MessagesInPerSec", "Records produced."),
    "no_key_records": (
        "NoKeyCompactedTopicRecordsPerSec",
        "Records without a key that compacted topics refused.",
    ),
    "produce_requests": ("TotalProduceRequestsPerSec", "Writes to a partition."),
    "reassignment_bytes_in": (
        "ReassignmentBytesInPerSec",
        "Bytes of records that a replica fetched while a reassignment adds it.",
    ),
    "reassignment_bytes_out": (
        "ReassignmentBytesOutPerSec",
        "Bytes of records sent to replicas that reassignments add.",
    ),
    "replication_bytes_in": ("ReplicationBytesInPerSec", "Bytes of records fetched from leaders."),
    "replication_bytes_out": ("ReplicationBytesOutPerSec", "Bytes of records sent to followers."),
    "share_acknowledgement_requests": (
        "TotalShareAcknowledgementRequestsPerSec",
        "Requests of share groups with acknowledgements.",
    ),
    "share_fetch_requests": ("TotalShareFetchRequestsPerSec", "Fetches of share groups."),
}
# Kafka shows these only for all topics together.
TOTALS_ONLY = frozenset(
    {
        "invalid_crc_records", "invalid_magic_records", "invalid_sequence_records", "no_key_records",
        "reassignment_bytes_in", "reassignment_bytes_out", "replication_bytes_in", "replication_bytes_out",
    }
)  # fmt: skip
TOPICS = "kafka.server", "BrokerTopicMetrics"
NS_PER_MS = 1_000_000
ROTATE_AFTER_S = 60.0
# Batches are stored and sent as they came: there is nothing to count.
NEVER = {
    "ProduceMessageConversionsPerSec": "Always 0: produced records are never converted.",
    "FetchMessageConversionsPerSec": "Always 0: fetched records are never converted.",
}

Labels = Mapping[str, str] | Tags
Value = Callable[[], Any]
LabelledValues = Callable[[], Iterable[tuple[Any, Any]]]


class Metrics:
    __slots__ = (
        "_apis", "_histograms", "_no_topic", "_now_s", "_rotated_s", "_topics", "measures_requests",
        "registry",
    )  # fmt: skip

    def __init__(self, now_s: Callable[[], float] = monotonic, *, measures_requests: bool = True) -> None:
        """`now_s`: monotonic time; a simulation has its own."""
        self._now_s = now_s
        self.measures_requests = measures_requests
        self.registry = Registry(now_s)
        self._topics: dict[str, TopicMetrics] = {}
        # Of topics that were deleted or never existed: in the totals, which never fall.
        self._no_topic = TopicMetrics()
        self._apis: dict[request_tables.ApiId, ApiMetrics] = {}
        self._histograms: list[Histogram] = []
        self._rotated_s = now_s()
        for attribute, (name, help) in TOPIC_COUNTERS.items():
            metric = metric_of(*TOPICS, name, Kind.COUNTER, help)
            self.registry.add(metric, lambda attribute=attribute: self._of_topics(attribute))  # type: ignore[misc]
        for name, help in NEVER.items():
            self.counter(*TOPICS, name, help, lambda: 0)
        request_tables.register(self.registry, lambda: sorted(self._apis.items()), self._produced)

    # -- counting ------------------------------------------------------------------------------

    def topic(self, name: str) -> TopicMetrics:
        found = self._topics.get(name)
        if found is None:
            found = self._topics[name] = TopicMetrics()
        return found

    def named_topic(self, name: str, names: Container[str]) -> TopicMetrics:
        """The counters for a name that a client sent; `names` has the topics that exist. Those of others are
        counted in the totals alone: names that clients make up must not become metrics."""
        return self.topic(name) if name in names else self._no_topic

    def forget_topic(self, name: str) -> None:
        """Show a deleted topic no more; its counts stay in the totals."""
        found = self._topics.pop(name, None)
        if found is not None:
            self._no_topic.add(found)

    def api(self, key: int, version: int = 0, *, is_follower: bool = False) -> ApiMetrics:
        found = self._apis.get((key, version, is_follower))
        if found is None:
            made = ApiMetrics() if self.measures_requests else SilentApiMetrics()
            found = self._apis[key, version, is_follower] = made
        return found

    @property
    def apis(self) -> list[tuple[request_tables.ApiId, ApiMetrics]]:
        return list(self._apis.items())

    # -- sources -------------------------------------------------------------------------------

    def gauge(self, domain: str, kind: str, name: str, help: str, value: Value) -> None:
        """Show what `value` returns: gauge("kafka.server", "ReplicaManager", "LeaderCount", "...", count)."""
        self.gauges(domain, kind, name, help, lambda: [((), value())])

    def gauges(
        self,
        domain: str,
        kind: str,
        name: str,
        help: str,
        values: LabelledValues,
        *,
        tag_names: tuple[str, ...] = (),
    ) -> None:
        """Show several values with labels, such as the size of each partition's log. The result of `values`
        is read with pauses, so it must not depend on a container that may change meanwhile."""
        self.registry.add(metric_of(domain, kind, name, Kind.GAUGE, help, tag_names=tag_names), values)

    def counter(
        self, domain: str, kind: str, name: str, help: str, value: Value, *, rate_unit: str = "SECONDS"
    ) -> None:
        """Show a number that only grows, named `...PerSec` in Kafka."""
        metric = metric_of(domain, kind, name, Kind.COUNTER, help, rate_unit=rate_unit)
        self.registry.add(metric, lambda: [((), value())])

    def counters(self, domain: str, kind: str, name: str, help: str, values: LabelledValues) -> None:
        """The same with labels, see `gauges`."""
        self.registry.add(metric_of(domain, kind, name, Kind.COUNTER, help), values)

    def text(self, domain: str, kind: str, name: str, help: str, value: Callable[[], str]) -> None:
        self.registry.add(metric_of(domain, kind, name, Kind.TEXT, help), lambda: [((), value())])

    def histogram(
        self, domain: str, kind: str, name: str, help: str, unit: float = 1.0, tags: Tags = ()
    ) -> Histogram:
        """A new histogram, to be observed by the caller; `unit` divides its values when they are shown."""
        made = self.adopt(Histogram())
        self.show_histograms(domain, kind, name, help, lambda: [(tags, made)], unit)
        return made

    def adopt(self, histogram: Histogram) -> Histogram:
        """Let the percentiles of a histogram be those of recent values."""
        self._histograms.append(histogram)
        return histogram

    def show_histograms(
        self,
        domain: str,
        kind: str,
        name: str,
        help: str,
        histograms: Callable[[], Iterable[tuple[Labels, Histogram | None]]],
        unit: float = 1.0,
    ) -> None:
        """Show histograms that others own; None is one without values."""
        self.registry.add(
            metric_of(domain, kind, name, Kind.HISTOGRAM, help),
            lambda: (
                (tags, snapshot_of(() if each is None else (each,), unit)) for tags, each in histograms()
            ),
        )

    def table(
        self, columns: Sequence[tuple[Metric, Callable[[Any], Any]]], rows: Callable[[], Iterable[Any]]
    ) -> None:
        """Several metrics of the same things; see `Registry.add_table`."""
        self.registry.add_table(columns, rows)

    def walk(
        self,
        gauges: Sequence[tuple[str, str, str, str]],
        count: Callable[[], Generator[None, None, Sequence[float]]],
    ) -> None:
        """Gauges, as (domain, kind, name, help), that one walk counts in steps; see `Registry.add_walk`."""
        metrics = [metric_of(domain, kind, name, Kind.GAUGE, help) for domain, kind, name, help in gauges]
        self.registry.add_walk(metrics, count)

    # -- time ----------------------------------------------------------------------------------

    def tick(self) -> Generator[None, None, None]:
        """Bring rates up to date and let percentiles forget, in steps. Call it every five seconds."""
        self.forget_old_values()
        yield from self.registry.tick()

    def forget_old_values(self) -> None:
        now_s = self._now_s()
        if now_s - self._rotated_s >= ROTATE_AFTER_S:
            self._rotated_s = now_s
            for api in self._apis.values():
                api.rotate()
            for histogram in self._histograms:
                histogram.rotate()

    # -- reading -------------------------------------------------------------------------------

    def _of_topics(self, attribute: str) -> Iterator[tuple[Tags, int]]:
        topics = sorted(self._topics.items())
        counts = [(topic, getattr(counters, attribute)) for topic, counters in topics]
        yield (), getattr(self._no_topic, attribute) + sum(count for _, count in counts)
        if attribute not in TOTALS_ONLY:
            for topic, count in counts:
                yield (("topic", topic),), count

    def _produced(self) -> int:
        """Writes of clients to partitions that succeeded."""
        counters = [self._no_topic, *self._topics.values()]
        return sum(
            each.produce_requests - each.own_appends - each.refused_produce_requests for each in counters
        )
