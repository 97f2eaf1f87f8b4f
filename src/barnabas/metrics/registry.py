"""The registry: sources of samples, and the walk over all of them.

In: sources, registered once: a metric, and a function that gives its rows, (tags, value), whenever somebody
reads. Out: readings (a metric with its rows) and samples, both lazily: a reader may pause between any two, so
a long walk never holds an event loop. A source's rows must not depend on a container that may change
meanwhile. What is read is read in the thread that owns the sources: a broker's loop. Rates of meters are kept
for those who ask. Does not know: formats, the network, clocks other than the one that it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from barnabas.metrics.histogram import Snapshot
from barnabas.metrics.rates import Rates
from barnabas.metrics.samples import NANOSECONDS, Kind, Metric, Sample, Tags

Value = float | str | Snapshot
Labels = Tags | Mapping[str, str]
Row = tuple[Labels, Any]
Wanted = Callable[[Metric], bool]
T = TypeVar("T")
METERS_MAX = 2_000  # that have rates by ticks; those of others are computed between two looks
ROWS_WITH_RATES = 50  # of a metric
NS_A_SECOND = 1e9


class Reading(NamedTuple):
    """A metric, and its rows at this moment, to be iterated once."""

    metric: Metric
    rows: Iterable[tuple[Tags, Any]]


class Source(NamedTuple):
    metric: Metric
    rows: Callable[[], Iterable[Row]]


class Table(NamedTuple):
    """Several metrics of the same things, such as partitions, whose tags are made once for a walk."""

    columns: Sequence[tuple[Metric, Callable[[Any], Any]]]
    rows: Callable[[], Iterable[Row]]


class Registry:
    __slots__ = ("_by_metric", "_now_s", "_rates", "_sources", "_started_s")

    def __init__(self, now_s: Callable[[], float] = lambda: 0.0) -> None:
        """`now_s`: monotonic time, for rates."""
        self._now_s = now_s
        self._started_s = now_s()
        self._sources: list[Source | Table] = []
        self._by_metric: dict[Metric, None] = {}
        self._rates: dict[tuple[Metric, Tags], Rates] = {}

    # -- registering -------------------------------------------------------------------------------

    def add(self, metric: Metric, rows: Callable[[], Iterable[Row]]) -> None:
        """`rows` gives (tags, value) for each MBean that has this metric now."""
        self._sources.append(Source(metric, rows))
        self._by_metric[metric] = None

    def add_table(
        self,
        columns: Sequence[tuple[Metric, Callable[[T], Any]]],
        rows: Callable[[], Iterable[tuple[Tags, T]]],
    ) -> None:
        """`rows` gives (tags, thing) once for a walk; each column gives a value of the thing."""
        self._sources.append(Table(columns, rows))
        self._by_metric.update(dict.fromkeys(metric for metric, _ in columns))

    @property
    def metrics(self) -> list[Metric]:
        """All metrics, whether they have samples now or not."""
        return list(self._by_metric)

    # -- reading -----------------------------------------------------------------------------------

    def readings(self, wanted: Wanted | None = None) -> list[Reading]:
        """Those of the wanted metrics. No value is looked up before its row is iterated."""
        found: list[Reading] = []
        for source in self._sources:
            if isinstance(source, Source):
                if wanted is None or wanted(source.metric):
                    found.append(Reading(source.metric, tagged(source.rows)))
                continue
            columns = [column for column in source.columns if wanted is None or wanted(column[0])]
            if columns:
                shared = Shared(source.rows)
                found += [Reading(metric, Column(shared, look)) for metric, look in columns]
        return found

    def samples(self, wanted: Wanted | None = None) -> Iterator[Sample]:
        """Every sample, one after the other. The caller may pause wherever it likes."""
        for metric, rows in self.readings(wanted):
            for tags, value in rows:
                yield Sample(metric, tags, value)

    def attributes(self, sample: Sample) -> dict[str, float | str]:
        """All attributes that the MBean of a sample has through it, as a reader of JMX sees them."""
        metric, value = sample.metric, sample.value
        if isinstance(value, Snapshot):
            return {**value.attributes()}
        if metric.is_meter and not isinstance(value, str):
            return {
                "Count": value,
                "EventType": metric.event_type,
                "RateUnit": metric.rate_unit,
                **self.rates(metric, sample.tags, value),
            }
        return {metric.attribute: value}

    # -- rates of meters ---------------------------------------------------------------------------

    def rates(self, metric: Metric, tags: Tags, count: float) -> dict[str, float]:
        """MeanRate, OneMinuteRate, FiveMinuteRate and FifteenMinuteRate of a meter."""
        now_s = self._now_s()
        found = self._rates.get((metric, tags))
        if found is None:
            found = Rates(0, self._started_s)  # nobody looked yet: the mean is all that is known
            if len(self._rates) < METERS_MAX:
                self._rates[metric, tags] = found
        found.tick(count, now_s)
        return found.attributes(count, now_s, NS_A_SECOND if metric.rate_unit == NANOSECONDS else 1.0)

    def tick(self) -> Generator[None, None, None]:
        """Bring rates up to date, in steps. Call it every five seconds. The first rows of each metric have
        rates, as long as there is room; the first one is that of all topics together."""
        now_s = self._now_s()
        gone = set(self._rates)
        for metric, rows in self.readings(lambda metric: metric.kind is Kind.COUNTER):
            yield
            for tags, count in islice(rows, ROWS_WITH_RATES):
                key = (metric, tags)
                found = self._rates.get(key)
                if found is not None:
                    found.tick(count, now_s)
                    gone.discard(key)
                elif len(self._rates) < METERS_MAX:
                    self._rates[key] = Rates(count, now_s, self._started_s)
        for key in gone:
            del self._rates[key]


class Shared:
    """The rows of a table, looked up when the first column needs them."""

    __slots__ = ("_look", "_rows")

    def __init__(self, look: Callable[[], Iterable[Row]]) -> None:
        self._look = look
        self._rows: list[tuple[Tags, Any]] | None = None

    def rows(self) -> list[tuple[Tags, Any]]:
        if self._rows is None:
            self._rows = list(tagged(self._look))
        return self._rows


class Column:
    """The rows of one metric of a table. Who needs them fast takes the shared rows and looks at each
    himself."""

    __slots__ = ("look", "shared")

    def __init__(self, shared: Shared, look: Callable[[Any], Any]) -> None:
        self.shared = shared
        self.look = look

    def __iter__(self) -> Iterator[tuple[Tags, Any]]:
        look = self.look
        for tags, thing in self.shared.rows():
            yield tags, look(thing)


def tagged(look: Callable[[], Iterable[Row]]) -> Iterator[tuple[Tags, Any]]:
    for labels, value in look():
        yield labels if type(labels) is tuple else tuple(labels.items()), value  # type: ignore[union-attr]
