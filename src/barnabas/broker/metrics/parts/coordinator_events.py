"""Times of events that all coordinators have, under the names of Kafka's coordinator runtime.

In: a coordinator. Out: sources registered with the metrics. A coordinator works on the event loop and writes
one batch a tick: it has no threads whose idle share could be shown, and its batches do not linger.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.broker.metrics.parts.totals import max_and_percentiles, rate_of

if TYPE_CHECKING:
    from barnabas.broker.coordinators.coordinator import Coordinator
    from barnabas.broker.metrics import Metrics


def coordinator_events(metrics: Metrics, domain: str, kind: str, coordinator: Coordinator[Any]) -> None:
    stats = coordinator.stats
    for stem, help, histogram in (
        (
            "event-processing-time-ms",
            "Time of an event in its shard; one of 8 is measured.",
            stats.processing,
        ),
        (
            "event-purgatory-time-ms",
            "Time of responses until their records were committed; the oldest of each commit is measured.",
            stats.purgatory,
        ),
        ("event-queue-time-ms", "Time of requests behind a long one.", stats.queued),
        ("batch-flush-time-ms", "Time to build and stage a batch.", stats.flushes),
    ):
        max_and_percentiles(metrics, domain, kind, stem, help, lambda histogram=histogram: histogram)  # type: ignore[misc]
    rate_of(metrics, domain, kind, "batch-flush-rate", "Batches a second.", lambda: stats.flushes.count)
    metrics.gauge(
        domain,
        kind,
        "event-queue-size",
        "Requests that wait for a long one.",
        lambda: sum(len(host.work_queue) for host in coordinator.hosts.values()),
    )
