"""Dashboards and rules as values, and queries that can be written in several dialects of names.

A query names a metric by its MBean in angle brackets, after a letter for its kind: `<c kafka.server:type=
BrokerTopicMetrics,name=BytesInPerSec>` (counter), `g` (gauge), `h` (histogram; `n` is its count), `t` (text;
`l` is the label that holds the text). An attribute of an MBean without a name stands behind `#`. `@clientId`
is a label whose spelling depends on the dialect. `[[S]]` selects the variables job and instance, `[[J]]` job.
In: these texts. Out: PromQL in one dialect. Does not know: Grafana's JSON, Prometheus' YAML.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from barnabas.metrics.dialects import DIALECTS
from barnabas.metrics.object_names import parse_object_name
from barnabas.metrics.samples import COUNT, VALUE, Kind, Metric

KINDS = {
    "c": Kind.COUNTER,
    "g": Kind.GAUGE,
    "h": Kind.HISTOGRAM,
    "n": Kind.HISTOGRAM,
    "t": Kind.TEXT,
    "l": Kind.TEXT,
}
METRIC = re.compile(r"<([cghntl]) ([^<>#]+)(?:#([^<>]+))?>")
LABEL = re.compile(r"@([A-Za-z][\w-]*)")
SELECTORS = {"[[S]]": 'job=~"$job",instance=~"$instance"', "[[J]]": 'job=~"$job"'}
TIMESERIES, STAT, TABLE, BARS = "timeseries", "stat", "table", "bargauge"
CRITICAL, WARNING = "critical", "warning"


@dataclass(frozen=True, slots=True)
class Query:
    text: str
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    title: str
    queries: Sequence[Query]
    help: str  # what it shows, and what is good
    unit: str = "short"
    kind: str = TIMESERIES
    width: int = 8  # of 24
    height: int = 8
    red_above: float | None = None  # a threshold of a number
    is_often_empty: bool = False  # no data is a good sign: nothing failed
    column: str = "value"  # of a table's values; "": they are not shown


@dataclass(frozen=True, slots=True)
class Row:
    title: str
    panels: Sequence[Panel]


@dataclass(frozen=True, slots=True)
class Variable:
    name: str
    label: str
    query: str  # label_values(...)
    with_all: bool = True


@dataclass(frozen=True, slots=True)
class Dashboard:
    name: str  # of its file and its address
    title: str
    help: str
    rows: Sequence[Row]
    variables: Sequence[Variable] = ()
    needs: str = ""  # the part of the platform that must run beside brokers; "": none

    @property
    def panels(self) -> Iterator[Panel]:
        return (panel for row in self.rows for panel in row.panels)


@dataclass(frozen=True, slots=True)
class Alert:
    name: str
    text: str
    for_s: int
    severity: str
    summary: str
    look_at: str  # what to look at
    command: str  # the command to run first
    needs: str = ""


@dataclass(frozen=True, slots=True)
class Recording:
    name: str
    text: str


def promql(text: str, dialect: str) -> str:
    """The query in one dialect. ValueError names a dialect or a metric that is unknown."""
    if dialect not in DIALECTS:
        raise ValueError(f"dialect {dialect}: it must be one of {', '.join(DIALECTS)}")
    rules = DIALECTS[dialect]

    def named(found: re.Match[str]) -> str:
        shape = rules.shape(metric_in(found))
        if found[1] == "n":
            return shape.count_name or f"{shape.name}_count"
        return shape.text_label if found[1] == "l" else shape.name

    for short, selector in SELECTORS.items():
        text = text.replace(short, selector)
    return LABEL.sub(lambda found: rules.label(found[1]), METRIC.sub(named, text))


def metrics_in(text: str) -> list[Metric]:
    """The metrics of brokers that a query names."""
    return [metric_in(found) for found in METRIC.finditer(text)]


def metric_in(found: re.Match[str]) -> Metric:
    letter, mbean, attribute = found.groups()
    name = parse_object_name(mbean)
    keys = dict(name.properties)
    kind = KINDS[letter]
    if attribute is None and "name" not in keys:
        raise ValueError(f"{found[0]} names neither an MBean with a name nor an attribute")
    default = COUNT if kind is Kind.COUNTER else VALUE
    return Metric(name.domain, keys["type"], keys.get("name", ""), attribute or default, kind, "")


def counter_rate(mbean: str, selector: str, by: str = "", legend: str = "") -> Query:
    """Events a second of a counter, summed over brokers."""
    grouped = f" by ({by})" if by else ""
    return Query(f"sum{grouped} (rate(<c {mbean}>{{{selector}}}[$__rate_interval]))", legend)


def but_zero(query: Query) -> Query:
    """Without what is zero now: names that nobody uses would hide the others in a legend."""
    return Query(f"{query.text} > 0", query.legend)
