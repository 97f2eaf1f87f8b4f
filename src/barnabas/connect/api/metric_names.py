"""Dialects of a worker's metrics: the names that sets of rules of the JMX exporter give to Connect's MBeans.

In: beans with their values. Out: families for Prometheus, one for each name. `confluent` follows the rules of
Confluent's monitoring stack, `strimzi` those of Strimzi's operator. Does not know: where values come from.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

Value = tuple[Mapping[str, str], float]
CONNECT = "kafka.connect"
CONNECTOR, TASK, APP = "connector-metrics", "connector-task-metrics", "app-info"
WORKER, REBALANCE = "connect-worker-metrics", "connect-worker-rebalance-metrics"
CLIENTS = ("connect-metrics", "consumer-metrics", "producer-metrics", "admin-client-metrics")
STRIMZI_TYPES = {
    WORKER: "connect_worker",
    REBALANCE: "connect_worker_rebalance",
    "connect-coordinator-metrics": "connect_coordinator",
    "connect-metrics": "connect",
    "consumer-metrics": "consumer",
    "producer-metrics": "producer",
    "admin-client-metrics": "admin_client",
}


@dataclass(frozen=True, slots=True)
class Bean:
    """An attribute of MBeans of one type: a value for each bean. The value of a text is the label that is
    called like the attribute; its sample is 1."""

    type: str
    attribute: str
    values: Iterable[Value]
    domain: str = CONNECT
    is_text: bool = False


class Named(NamedTuple):
    name: str
    factor: float = 1.0


class Dialect(ABC):
    @abstractmethod
    def names(self, bean: Bean) -> Iterator[Named]:
        """The names that a bean has: none, if the rules leave it out."""

    @abstractmethod
    def label(self, name: str) -> str: ...

    def families(self, beans: Iterable[Bean]) -> list[Metric]:
        found: dict[str, Metric] = {}
        for bean in beans:
            values = list(bean.values)
            for name, factor in self.names(bean):
                family = found.get(name)
                if family is None:
                    family = found[name] = family_of(name, bean)
                for labels, value in values:
                    named = {self.label(label): text for label, text in labels.items()}
                    family.add_sample(name, named, value * factor)
        return list(found.values())


class Confluent(Dialect):
    """The exporter drops `_info` and `_total` from some names since its version 1.0, and dashboards ask for
    what is left: such values have both names."""

    def names(self, bean: Bean) -> Iterator[Named]:
        domain = flat(bean.domain)
        if bean.type == APP:
            yield Named(f"{domain}_app_info")
            yield Named(f"{domain}_app")
            return
        name = f"{domain}_{flat(bean.type)}_{flat(bean.attribute)}"
        yield Named(name)
        if bean.type == CONNECTOR and bean.is_text:
            yield Named(f"{domain}_connector_metrics")
        if name.endswith("_total") and bean.type in (REBALANCE, *CLIENTS):
            yield Named(name.removesuffix("_total"))

    def label(self, name: str) -> str:
        return flat(name)


class Strimzi(Dialect):
    def names(self, bean: Bean) -> Iterator[Named]:
        domain, attribute = flat(bean.domain), flat(bean.attribute)
        if bean.type == APP:
            if bean.attribute == "start-time-ms":
                yield Named(f"{domain}_start_time_seconds", 0.001)
            else:
                yield Named(f"{domain}_{attribute}_info")
        elif bean.type in STRIMZI_TYPES:
            yield Named(f"kafka_{STRIMZI_TYPES[bean.type]}_{attribute}")
        elif not bean.is_text or bean.type == CONNECTOR or (bean.type, attribute) == (TASK, "status"):
            yield Named(f"{domain}_{flat(bean.type.removesuffix('-metrics'))}_{attribute}")

    def label(self, name: str) -> str:
        return "clientid" if name == "client-id" else flat(name)


DIALECTS: dict[str, Dialect] = {"confluent": Confluent(), "strimzi": Strimzi()}
DEFAULT = "confluent"


def family_of(name: str, bean: Bean) -> Metric:
    text = f"{bean.domain}:type={bean.type}, attribute {bean.attribute}."
    if name.endswith("_total"):
        return CounterMetricFamily(name, text)
    return GaugeMetricFamily(name, text)


def flat(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "_", text.lower())
