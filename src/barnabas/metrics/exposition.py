"""The text of a scrape in Prometheus' format, written in steps.

In: a registry, a dialect, what is wanted. Out: parts of the text, one after the other; after each the caller
may pause. All samples of a family stand together, whichever metrics they come from. Does not know: the
network.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from barnabas.metrics.dialects import DEFAULT, DIALECTS, Dialect, Shape
from barnabas.metrics.histogram import Snapshot
from barnabas.metrics.registry import Column, Reading, Registry, Shared, steps_of
from barnabas.metrics.samples import Kind, Metric, Tags

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
QUANTILES = ("0.50", "0.75", "0.95", "0.98", "0.99", "0.999")
LINES_A_STEP = 128
ENDINGS = ("_total", "_count", "_sum")

Write = Callable[[str], object]


class Page:
    """One scrape."""

    def __init__(
        self,
        registry: Registry,
        dialect: str = DEFAULT,
        *,
        names: Collection[str] = (),
        with_details: bool = True,
    ) -> None:
        """`names`: only families, or samples, of these names (Prometheus' `name[]`)."""
        self._registry = registry
        self._dialect: Dialect = DIALECTS[dialect]
        self._names = {name for wanted in names for name in (wanted, without_ending(wanted))}
        self._with_details = with_details
        self._texts: dict[Tags, str] = {}
        self._label_names: dict[str, str] = {}
        self._tables: dict[Shared, list[str]] = {}

    def parts(self) -> Iterator[str]:
        families: dict[str, list[tuple[Shape, Reading]]] = {}
        for reading in self._registry.readings(self._is_wanted):
            shape = self._dialect.shape(reading.metric)
            families.setdefault(shape.name, []).append((shape, reading))
        for name, readings in families.items():
            shape, metric = readings[0][0], readings[0][1].metric
            head = f"# HELP {name} {help_text(metric.help)}\n# TYPE {name} {shape.type}\n"
            lines = [head]
            for shape, reading in readings:
                if isinstance(reading.rows, Column) and is_plain(shape, metric):
                    yield "".join(lines)
                    lines = []
                    yield from self._column(shape, reading.rows)
                    continue
                for _ in steps_of(reading):
                    yield ""
                # A histogram adds up thousands of buckets: it is a step of its own.
                most = 1 if metric.kind is Kind.HISTOGRAM else LINES_A_STEP
                for line in self._lines(shape, reading):
                    lines.append(line)
                    if len(lines) >= most:
                        yield "".join(lines)
                        lines = []
            if lines and lines != [head]:  # a family without samples says nothing
                yield "".join(lines)

    def _is_wanted(self, metric: Metric) -> bool:
        if metric.is_detail and not self._with_details and not self._names:
            return False
        if not self._names:
            return True
        name = self._dialect.shape(metric).name
        return name in self._names or without_ending(name) in self._names

    def _column(self, shape: Shape, column: Column) -> Iterator[str]:
        """The samples of a metric of a table. Texts of labels are made once for all metrics of it."""
        name, look, start = shape.name, column.look, 0
        texts = self._tables.setdefault(column.shared, [])
        while some := column.shared.part(start, LINES_A_STEP):
            if len(texts) <= start:
                texts += [self._labels(tags) for tags, _ in some]
            yield "".join(
                [
                    f"{name}{text} {value if type(value := look(thing)) is int else number_text(value)}\n"
                    for (_, thing), text in zip(some, texts[start : start + LINES_A_STEP], strict=True)
                ]
            )
            start += LINES_A_STEP

    def _lines(self, shape: Shape, reading: Reading) -> Iterator[str]:
        metric, name, texts = reading.metric, shape.name, self._texts
        if metric.kind is Kind.HISTOGRAM:
            for tags, value in reading.rows:
                yield self._histogram(shape, tags, value)
        elif shape.text_label:
            for tags, value in reading.rows:
                labels = (*tags, *shape.extra, (shape.text_label, str(value)))
                yield f"{name}{self._text(labels)} 1\n"
        elif shape.rate:
            for tags, value in reading.rows:
                rate = self._registry.rates(metric, tags, value)[shape.rate]
                yield f"{name}{self._text((*tags, *shape.extra))} {number_text(rate)}\n"
        else:
            extra = shape.extra
            for tags, value in reading.rows:
                labels = (*tags, *extra) if extra else tags
                text = texts.get(labels)
                if text is None:
                    text = self._text(labels)
                yield (
                    f"{name}{text} {value}\n"
                    if type(value) is int
                    else f"{name}{text} {number_text(value)}\n"
                )

    def _histogram(self, shape: Shape, tags: Tags, value: Snapshot) -> str:
        """The quantiles, the count, and the sum, which Kafka's MBeans have not."""
        labels = (*tags, *shape.extra)
        lines = [
            f"{shape.name}{self._text((*labels, ('quantile', quantile)))} {number_text(found)}\n"
            for quantile, found in zip(QUANTILES, value.percentiles, strict=True)
        ]
        text = self._text(labels)
        if shape.count_name:
            lines.append(f"{shape.count_name}{text} {value.count}\n")
        else:
            lines.append(f"{shape.name}_sum{text} {number_text(value.sum)}\n")
            lines.append(f"{shape.name}_count{text} {value.count}\n")
        return "".join(lines)

    def _text(self, labels: Tags) -> str:
        """`{topic="t"}`, or nothing without labels."""
        found = self._texts.get(labels)
        if found is None:
            found = self._texts[labels] = self._labels(labels)
        return found

    def _labels(self, labels: Tags) -> str:
        names = self._label_names
        parts = []
        for name, value in labels:
            shown = names.get(name)
            if shown is None:
                shown = names[name] = self._dialect.label(name)
            parts.append(f'{shown}="{escaped(value)}"')
        return "{" + ",".join(parts) + "}" if parts else ""


def is_plain(shape: Shape, metric: Metric) -> bool:
    """Whether a sample is a line with its value."""
    return not (shape.extra or shape.rate or shape.text_label) and metric.kind in (Kind.GAUGE, Kind.COUNTER)


def without_ending(name: str) -> str:
    for ending in ENDINGS:
        if name.endswith(ending):
            return name.removesuffix(ending)
    return name


def escaped(value: str) -> str:
    if value.isalnum():  # most often
        return value
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def help_text(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def number_text(value: float) -> str:
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if isinstance(value, bool) else str(value)  # Prometheus does not parse "False"
