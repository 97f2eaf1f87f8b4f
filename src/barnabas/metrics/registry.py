"""The registry: sources of samples, and the walk over all of them.

In: sources, registered once: a metric, and a function that gives its rows, (tags, value), whenever somebody
reads. Out: readings (a metric with its rows) and samples, both lazily: a reader may pause between any two, so
a long walk never holds an event loop. Values that need a walk of their own, such as counts of partitions, are
counted in steps. A source's rows must not depend on a container that may change meanwhile. What is read is
read in the thread that owns the sources: a broker's loop. Rates of meters are kept for those who ask. Does
not know: formats, the network, clocks other than the one that it is given.
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
ROWS_A_PART = 128  # of a table that are made together
FORGOTTEN_S = 900.0  # rates that nobody has asked for, and that are not those of the first rows
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


Counting = Generator[None, None, Sequence[Any]]


class Walk(NamedTuple):
    """Several metrics whose values one walk counts together, in steps."""

    metrics: Sequence[Metric]
    begin: Callable[[], Counting]


class Registry:
    __slots__ = ("_by_metric", "_now_s", "_rates", "_sources", "_started_s")

    def __init__(self, now_s: Callable[[], float] = lambda: 0.0) -> None:
        """`now_s`: monotonic time, for rates."""
        self._now_s = now_s
        self._started_s = now_s()
        self._sources: list[Source | Table | Walk] = []
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

    def add_walk(self, metrics: Sequence[Metric], count: Callable[[], Counting]) -> None:
        """`count` yields where its reader may pause, and returns a value for each of the metrics."""
        self._sources.append(Walk(metrics, count))
        self._by_metric.update(dict.fromkeys(metrics))

    @property
    def metrics(self) -> list[Metric]:
        """All metrics, whether they have samples now or not."""
        return list(self._by_metric)

    # -- reading -----------------------------------------------------------------------------------

    def readings(self, wanted: Wanted | None = None) -> list[Reading]:
        """Readings of the wanted metrics. No value is looked up before its row is iterated. A reader on a
        loop takes the pauses of `steps_of` before it iterates the rows."""
        found: list[Reading] = []
        for source in self._sources:
            if isinstance(source, Source):
                if wanted is None or wanted(source.metric):
                    found.append(Reading(source.metric, tagged(source.rows)))
                continue
            if isinstance(source, Walk):
                walked = Walked(source.begin)
                found += [
                    Reading(metric, Place(walked, index))
                    for index, metric in enumerate(source.metrics)
                    if wanted is None or wanted(metric)
                ]
                continue
            columns = [column for column in source.columns if wanted is None or wanted(column[0])]
            if columns:
                shared = Shared(source.rows)
                found += [Reading(metric, Column(shared, look)) for metric, look in columns]
        return found

    def samples(self, wanted: Wanted | None = None) -> Iterator[Sample]:
        """Every sample, one after the other. The caller may pause wherever it likes."""
        return (sample for sample in self.samples_and_pauses(wanted) if sample is not None)

    def samples_and_pauses(self, wanted: Wanted | None = None) -> Iterator[Sample | None]:
        """The same for readers on a loop: None where a sample needs several steps, and one is done."""
        for reading in self.readings(wanted):
            yield from steps_of(reading)
            for tags, value in reading.rows:
                yield Sample(reading.metric, tags, value)

    def attributes(self, sample: Sample) -> dict[str, float | str]:
        """All attributes that the MBean of a sample has through it, as a reader of JMX sees them."""
        metric, value = sample.metric, sample.value
        if isinstance(value, Snapshot):
            found: dict[str, float | str] = {**value.attributes()}
            if metric.is_timer:
                found |= {"EventType": metric.event_type, "RateUnit": metric.rate_unit}
                found |= {"LatencyUnit": "MILLISECONDS", **self.rates(metric, sample.tags, value.count)}
            return found
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
        found.asked_s = now_s
        found.tick(count, now_s)
        return found.attributes(count, now_s, NS_A_SECOND if metric.rate_unit == NANOSECONDS else 1.0)

    def tick(self) -> Generator[None, None, None]:
        """Bring rates up to date, in steps. Call it every five seconds. The first rows of each metric have
        rates, as long as there is room; the first one is that of all topics together. Other rates stay while
        somebody asks for them."""
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
            # On a busy machine the next tick begins before this one ends, and may have dropped it.
            found = self._rates.get(key)
            if found is not None and now_s - found.asked_s > FORGOTTEN_S:
                del self._rates[key]


class Shared:
    """The rows of a table. Each is made when the first column needs it."""

    __slots__ = ("_look", "_made", "_rows")

    def __init__(self, look: Callable[[], Iterable[Row]]) -> None:
        self._look = look
        self._rows: Iterator[tuple[Tags, Any]] | None = None
        self._made: list[tuple[Tags, Any]] = []

    def part(self, start: int, count: int) -> list[tuple[Tags, Any]]:
        """At most `count` rows from `start` on; none at the end of the table."""
        if self._rows is None:
            self._rows = tagged(self._look)
        missing = start + count - len(self._made)
        if missing > 0:
            self._made += islice(self._rows, missing)
        return self._made[start : start + count]


class Column:
    """The rows of one metric of a table. A reader that must be fast takes parts of the shared rows and looks
    at each itself."""

    __slots__ = ("look", "shared")

    def __init__(self, shared: Shared, look: Callable[[Any], Any]) -> None:
        self.shared = shared
        self.look = look

    def __iter__(self) -> Iterator[tuple[Tags, Any]]:
        look, start = self.look, 0
        while some := self.shared.part(start, ROWS_A_PART):
            for tags, thing in some:
                yield tags, look(thing)
            start += ROWS_A_PART


class Walked:
    """The values of a walk, counted when the first of its metrics is read."""

    __slots__ = ("_count", "_steps", "_values")

    def __init__(self, count: Callable[[], Counting]) -> None:
        self._count = count
        self._steps: Counting | None = None
        self._values: Sequence[Any] | None = None

    def steps(self) -> Iterator[None]:
        """Count, and pause after each step. Nothing if all is counted."""
        if self._steps is None:
            self._steps = self._count()
        while self._values is None:
            try:
                next(self._steps)
            except StopIteration as done:
                self._values = done.value
            else:
                yield

    def values(self) -> Sequence[Any]:
        for _ in self.steps():
            pass
        assert self._values is not None
        return self._values


class Place:
    """The single row of one metric of a walk."""

    __slots__ = ("_index", "walked")

    def __init__(self, walked: Walked, index: int) -> None:
        self.walked = walked
        self._index = index

    def __iter__(self) -> Iterator[tuple[Tags, Any]]:
        yield (), self.walked.values()[self._index]


def steps_of(reading: Reading) -> Iterator[None]:
    """The pauses that a reader takes before it iterates the rows; most readings need none."""
    return reading.rows.walked.steps() if isinstance(reading.rows, Place) else iter(())


def tagged(look: Callable[[], Iterable[Row]]) -> Iterator[tuple[Tags, Any]]:
    for labels, value in look():
        yield labels if type(labels) is tuple else tuple(labels.items()), value  # type: ignore[union-attr]
