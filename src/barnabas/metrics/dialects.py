"""Dialects: the names that different sets of rules of the JMX exporter give to the same MBeans.

In: a metric. Out: the shape of its family for Prometheus: name, type, labels. `jmx` follows the exporter's
example files, `strimzi` Strimzi's rules, `confluent` those of Confluent's monitoring stack. A dashboard works
only with the dialect that it was made for. docs/metrics.md has the rules as a table. Does not know: values,
text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from barnabas.metrics.samples import Kind, Metric, Tags

QUOTA_TYPES = frozenset({"Produce", "Fetch", "Request", "ControllerMutation"})
IDLE = "RequestHandlerAvgIdlePercent"
STRIMZI_TYPES = {
    "raft-metrics": "raftmetrics",
    "raft-channel-metrics": "raftchannelmetrics",
    "broker-metadata-metrics": "brokermetadatametrics",
}
STRIMZI_CONNECTIONS = {"clientSoftwareName": "connections_software", "cipher": "connections_tls_info"}
JMX_LABELS = {"client-id": "clientId"}  # of quotas
CONFLUENT_LABELS = {
    "networkProcessor": "network_processor",
    "clientSoftwareName": "client_software_name",
    "clientSoftwareVersion": "client_software_version",
    "client-id": "client_id",
    "apiName": "api_name",
    "apiVersion": "api_version",
}
COUNTER, GAUGE, SUMMARY, UNTYPED = "counter", "gauge", "summary", "untyped"


@dataclass(frozen=True, slots=True)
class Shape:
    """A family of Prometheus' text, as a dialect writes it."""

    name: str
    type: str
    extra: Tags = ()  # labels that every sample gets
    rate: str = ""  # the attribute of a meter that is its value; "": its count
    text_label: str = ""  # the label that holds the value of a text, whose sample is 1
    count_name: str = ""  # where a histogram's count is; "": NAME_count


class Dialect:
    """The JMX exporter's example files."""

    name = "jmx"

    def shape(self, metric: Metric) -> Shape:
        if metric.kind is Kind.TEXT:
            return self.text(metric)
        if not metric.name:
            return self.nameless(metric)
        if metric.kind is Kind.HISTOGRAM:
            return Shape(flat(metric.domain, metric.type, metric.name), SUMMARY)
        if metric.kind is Kind.COUNTER:
            return self.meter(metric)
        return Shape(flat(metric.domain, metric.type, metric.name), GAUGE)

    def meter(self, metric: Metric) -> Shape:
        cut = re.sub(r"PerSec\w*$", "", metric.name)
        if cut != metric.name:
            return Shape(flat(metric.domain, metric.type, cut) + "_total", COUNTER)
        if metric.name.endswith("Percent"):
            cut = metric.name.removesuffix("Percent")
            return Shape(flat(metric.domain, metric.type, cut) + "_percent", GAUGE, rate="MeanRate")
        return Shape(flat(metric.domain, metric.type, metric.name) + "_count", COUNTER)

    def nameless(self, metric: Metric) -> Shape:
        if metric.type in QUOTA_TYPES:
            name = flat(metric.domain, "quota", metric.attribute)
            return Shape(name, type_of(metric), (("resource", metric.type),))
        return Shape(flat(metric.domain, self.type_text(metric), metric.attribute), type_of(metric))

    def text(self, metric: Metric) -> Shape:
        word = metric.name or metric.attribute
        name = flat(metric.domain, self.type_text(metric), word) + "_info"
        return Shape(name, GAUGE, text_label="state" if word == "current-state" else flat(word))

    def type_text(self, metric: Metric) -> str:
        return metric.type

    def label(self, name: str) -> str:
        return JMX_LABELS.get(name) or re.sub(r"\W", "_", name, flags=re.ASCII)


class Strimzi(Dialect):
    name = "strimzi"

    def shape(self, metric: Metric) -> Shape:
        if metric.name.endswith("Percent") and metric.kind is Kind.GAUGE:
            cut = metric.name.removesuffix("Percent")
            return Shape(flat(metric.domain, metric.type, cut) + "_percent", GAUGE)
        return super().shape(metric)

    def nameless(self, metric: Metric) -> Shape:
        if metric.attribute == "connections":
            names = [name for tag, name in STRIMZI_CONNECTIONS.items() if tag in metric.tag_names]
            if names:
                return Shape(flat(metric.domain, metric.type, names[0]), GAUGE)
        return super().nameless(metric)

    def text(self, metric: Metric) -> Shape:
        if metric.attribute == "current-state":
            name = flat(metric.domain, self.type_text(metric), metric.attribute)
            return Shape(name, GAUGE, text_label="current_state")
        return super().text(metric)

    def type_text(self, metric: Metric) -> str:
        return STRIMZI_TYPES.get(metric.type, metric.type)


class Confluent(Dialect):
    name = "confluent"

    def shape(self, metric: Metric) -> Shape:
        if metric.kind is Kind.HISTOGRAM:
            name = flat(metric.domain, metric.type, metric.name or metric.attribute)
            return Shape(name, UNTYPED, count_name=name)
        return super().shape(metric)

    def meter(self, metric: Metric) -> Shape:
        name = flat(metric.domain, metric.type, metric.name)
        if metric.name == IDLE:
            return Shape(f"{name}_oneminuterate", GAUGE, rate="OneMinuteRate")
        if metric.name.endswith("Percent"):
            return Shape(name, GAUGE, rate="OneMinuteRate")
        return Shape(name, UNTYPED)

    def nameless(self, metric: Metric) -> Shape:
        return Shape(flat(metric.domain, self.type_text(metric), metric.attribute), type_of(metric))

    def type_text(self, metric: Metric) -> str:
        return "socketservermetrics" if metric.type == "socket-server-metrics" else metric.type

    def label(self, name: str) -> str:
        return CONFLUENT_LABELS.get(name) or re.sub(r"\W", "_", name, flags=re.ASCII).lower()


DIALECTS: dict[str, Dialect] = {each.name: each for each in (Dialect(), Strimzi(), Confluent())}
DEFAULT = Dialect.name


def flat(*parts: str) -> str:
    """`kafka.log`, `Log`, `Size` is kafka_log_log_size."""
    return re.sub(r"[^a-z0-9]", "_", "_".join(part for part in parts if part).lower())


def type_of(metric: Metric) -> str:
    if metric.kind is Kind.HISTOGRAM:
        return SUMMARY
    return COUNTER if metric.kind is Kind.COUNTER else GAUGE
