"""The metrics of one broker: counters by topic and API, and callbacks for values looked up at each scrape.

In: increments of the counters that `topic` and `api` return, callbacks registered once. Out: families under
Kafka's names. Does not know: what the callbacks look up, HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from barnabas.broker.metrics.counters import ApiMetrics, TopicMetrics, percentiles_ns, recent_buckets
from barnabas.broker.metrics.families import Family, Labels
from barnabas.broker.metrics.kafka_names import counter_name, prometheus_name
from barnabas.protocol import ApiKey

# Attribute of TopicMetrics and the name of its MBean (kafka.server:type=BrokerTopicMetrics).
TOPIC_COUNTERS = {
    "bytes_in": ("BytesInPerSec", "Bytes of records produced."),
    "bytes_out": ("BytesOutPerSec", "Bytes of records fetched."),
    "bytes_rejected": ("BytesRejectedPerSec", "Bytes of batches refused for their size."),
    "failed_fetch_requests": ("FailedFetchRequestsPerSec", "Fetches of a partition that failed."),
    "failed_produce_requests": ("FailedProduceRequestsPerSec", "Writes to a partition that failed."),
    "failed_share_acknowledgement_requests": (
        "FailedShareAcknowledgementRequestsPerSec",
        "Acknowledgements of a share group that failed.",
    ),
    "failed_share_fetch_requests": (
        "FailedShareFetchRequestsPerSec",
        "Fetches of a share group that failed.",
    ),
    "fetch_requests": ("TotalFetchRequestsPerSec", "Fetches of a partition."),
    "messages_in": ("MessagesInPerSec", "Records produced."),
    "produce_requests": ("TotalProduceRequestsPerSec", "Writes to a partition."),
    "replication_bytes_in": ("ReplicationBytesInPerSec", "Bytes of records fetched from leaders."),
    "replication_bytes_out": ("ReplicationBytesOutPerSec", "Bytes of records sent to followers."),
    "share_acknowledgement_requests": (
        "TotalShareAcknowledgementRequestsPerSec",
        "Requests of share groups with acknowledgements.",
    ),
    "share_fetch_requests": ("TotalShareFetchRequestsPerSec", "Fetches of share groups."),
}
# Kafka's percentiles, as the exporter writes them.
QUANTILES = {"0.50": 0.5, "0.75": 0.75, "0.95": 0.95, "0.98": 0.98, "0.99": 0.99, "0.999": 0.999}
NS_PER_MS = 1_000_000
ROTATE_AFTER_MS = 60_000
VALUES_A_STEP = 64

Value = Callable[[], float]
LabelledValues = Callable[[], Iterable[tuple[Labels, float]]]


class Metrics:
    __slots__ = ("_apis", "_deleted_topics", "_lookups", "_rotated_ms", "_topics")

    def __init__(self) -> None:
        self._topics: dict[str, TopicMetrics] = {}
        self._deleted_topics = TopicMetrics()  # their counts stay in the broker's totals, which never fall
        self._apis: dict[tuple[int, int], ApiMetrics] = {}
        self._lookups: list[tuple[str, str, str, LabelledValues]] = []
        self._rotated_ms = 0

    # -- counting ------------------------------------------------------------------------------

    def topic(self, name: str) -> TopicMetrics:
        found = self._topics.get(name)
        if found is None:
            found = self._topics[name] = TopicMetrics()
        return found

    def forget_topic(self, name: str) -> None:
        """Show a deleted topic no more; its counts stay in the totals."""
        found = self._topics.pop(name, None)
        if found is not None:
            self._deleted_topics.add(found)

    def api(self, key: int, version: int = 0) -> ApiMetrics:
        found = self._apis.get((key, version))
        if found is None:
            found = self._apis[key, version] = ApiMetrics()
        return found

    def gauge(self, domain: str, kind: str, name: str, help: str, value: Value) -> None:
        """Show what `value` returns: gauge("kafka.server", "ReplicaManager", "LeaderCount", "...", count)."""
        self.gauges(domain, kind, name, help, lambda: [({}, value())])

    def gauges(self, domain: str, kind: str, name: str, help: str, values: LabelledValues) -> None:
        """Show several values with labels, such as the size of each partition's log. The result of `values`
        is read with pauses, so it must not depend on a container that may change meanwhile."""
        self._lookups.append((prometheus_name(domain, kind, name), "gauge", help, values))

    def counter(self, domain: str, kind: str, name: str, help: str, value: Value) -> None:
        """Show a number that only grows, named `...PerSec` in Kafka."""
        self.counters(domain, kind, name, help, lambda: [({}, value())])

    def counters(self, domain: str, kind: str, name: str, help: str, values: LabelledValues) -> None:
        """The same with labels, see `gauges`."""
        self._lookups.append((counter_name(domain, kind, name), "counter", help, values))

    # -- reading -------------------------------------------------------------------------------

    def families(self, now_ms: int) -> Iterator[Family | None]:
        """Yield all families, so that the caller may pause between them, and None within long ones, where it
        may pause too."""
        yield from self._topic_families()
        yield from self._api_families()
        for name, kind, help, values in list(self._lookups):
            family = Family(name, kind, help)
            for count, (labels, value) in enumerate(values(), 1):
                family.add(value, labels)
                if not count % VALUES_A_STEP:
                    yield None
            yield family
        if now_ms - self._rotated_ms >= ROTATE_AFTER_MS:
            self._rotated_ms = now_ms
            for api in list(self._apis.values()):
                api.rotate()

    def _topic_families(self) -> Iterator[Family | None]:
        topics = sorted(self._topics.items())
        for attribute, (name, help) in TOPIC_COUNTERS.items():
            family = Family(counter_name("kafka.server", "BrokerTopicMetrics", name), "counter", help)
            counts = [(topic, getattr(counters, attribute)) for topic, counters in topics]
            family.add(getattr(self._deleted_topics, attribute) + sum(count for _, count in counts))
            for number, (topic, count) in enumerate(counts, 1):
                family.add(count, {"topic": topic})
                if not number % VALUES_A_STEP:
                    yield None
            yield family

    def _api_families(self) -> Iterator[Family]:
        requests = Family(
            counter_name("kafka.network", "RequestMetrics", "RequestsPerSec"),
            "counter",
            "Requests that got a response.",
        )
        times = Family(
            prometheus_name("kafka.network", "RequestMetrics", "TotalTimeMs"),
            "summary",
            "Time from reading a request to its response; percentiles of the last minute or two.",
        )
        for (key, version), api in sorted(self._apis.items()):
            for request in request_names(key):
                requests.add(api.count, {"request": request, "version": str(version)})
        yield requests
        for name, apis in self._by_request().items():
            counts = percentiles_ns(recent_buckets(apis), list(QUANTILES.values()))
            for quantile, value_ns in zip(QUANTILES, counts, strict=True):
                times.add(value_ns / NS_PER_MS, {"request": name, "quantile": quantile})
            times.add(sum(api.total_ns for api in apis) / NS_PER_MS, {"request": name}, "_sum")
            times.add(sum(api.count for api in apis), {"request": name}, "_count")
        yield times

    def _by_request(self) -> dict[str, list[ApiMetrics]]:
        found: dict[str, list[ApiMetrics]] = {}
        for (key, _), api in sorted(self._apis.items()):
            for request in request_names(key):
                found.setdefault(request, []).append(api)
        return found


def request_names(key: int) -> tuple[str, ...]:
    """Kafka's labels of a request; a fetch has two: all fetches, and those of consumers."""
    try:
        name = "".join(part.capitalize() for part in ApiKey(key).name.split("_"))
    except ValueError:
        name = str(key)
    return ("Fetch", "FetchConsumer") if key == ApiKey.FETCH else (name,)
