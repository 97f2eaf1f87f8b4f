"""Totals with their rates, as Kafka's newer library has them: `x-total` and `x-rate`, or `x-count` and
`x-rate`.

In: a name and a function that counts. Out: two metrics. The rate is an average that forgets exponentially
over a minute (`barnabas.metrics.rates`), where Kafka has the mean of the last 30 seconds. Does not know: what
is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from barnabas.metrics import Kind, Tags, metric_of
from barnabas.metrics.histogram import SHARES, Histogram, mean, percentiles

if TYPE_CHECKING:
    from barnabas.broker.metrics import Metrics

NS_PER_MS = 1_000_000
LIBRARY_SHARES = {"p50": 0, "p95": 2, "p99": 4, "p999": 5}  # places in SHARES


def total_and_rate(
    metrics: Metrics,
    domain: str,
    kind: str,
    stem: str,
    help: str,
    values: Callable[[], Iterable[tuple[Tags, int]]],
    ending: str = "total",
) -> None:
    metric = metric_of(domain, kind, f"{stem}-{ending}", Kind.COUNTER, help)
    registry = metrics.registry

    def rates() -> Iterator[tuple[Tags, float]]:
        for tags, count in values():
            yield tags, registry.rates(metric, tags, count)["OneMinuteRate"]

    registry.add(metric, values)
    registry.add(metric_of(domain, kind, f"{stem}-rate", Kind.GAUGE, f"{help[:-1]}, a second."), rates)


def rate_of(metrics: Metrics, domain: str, kind: str, name: str, help: str, count: Callable[[], int]) -> None:
    """A rate whose total Kafka does not show."""
    metric = metric_of(domain, kind, name.replace("-rate", "-total"), Kind.COUNTER, help)
    registry = metrics.registry
    metrics.gauge(domain, kind, name, help, lambda: registry.rates(metric, (), count())["OneMinuteRate"])


def average_and_max(
    metrics: Metrics,
    domain: str,
    kind: str,
    stem: str,
    help: str,
    histogram: Callable[[], Histogram],
    *,
    tags: Tags = (),
    unit: int = NS_PER_MS,
) -> None:
    """`x-avg` and `x-max`, in milliseconds unless `unit` says else, of the last one to two minutes; 0 where
    there were none."""
    metrics.adopt(histogram())
    text = f"{help[:-1]}, {{}} of recent ones{', in ms' if unit == NS_PER_MS else ''}."
    for name, of in (("avg", mean), ("max", lambda buckets: percentiles(buckets, [1.0])[0])):
        metrics.gauges(
            domain,
            kind,
            f"{stem}-{name}",
            text.format(name),
            lambda of=of: [(tags, of(histogram().recent) / unit)],  # type: ignore[misc]
        )


def max_and_percentiles(
    metrics: Metrics, domain: str, kind: str, stem: str, help: str, histogram: Callable[[], Histogram]
) -> None:
    """`x-max`, `x-p50`, `x-p95`, `x-p99` and `x-p999` in milliseconds, of the last one to two minutes."""
    metrics.adopt(histogram())

    def values() -> dict[str, float]:
        buckets = histogram().recent
        found = percentiles(buckets, [*SHARES, 1.0])
        return {
            "max": found[-1] / NS_PER_MS,
            **{name: found[place] / NS_PER_MS for name, place in LIBRARY_SHARES.items()},
        }

    for name in ("max", *LIBRARY_SHARES):
        look: Any = lambda name=name: values()[name]  # noqa: E731
        metrics.gauge(domain, kind, f"{stem}-{name}", f"{help[:-1]}, {name}, in ms.", look)
