"""Prometheus names for Kafka's MBeans, as the JMX exporter's example configuration for Kafka builds them.

In: domain, type and name of an MBean (`kafka.server`, `BrokerTopicMetrics`, `BytesInPerSec`). Out: the name
in lower case, with `_total` instead of `PerSec`, and escaped label values. docs/metrics.md explains the rule.
"""

from __future__ import annotations

import re


def prometheus_name(domain: str, kind: str, name: str) -> str:
    """`kafka.log`, `Log`, `Size` is kafka_log_log_size."""
    return re.sub(r"[^a-z0-9]", "_", f"{domain}_{kind}_{name}".lower())


def counter_name(domain: str, kind: str, name: str) -> str:
    """`kafka.server`, `ReplicaManager`, `IsrShrinksPerSec`: kafka_server_replicamanager_isrshrinks_total."""
    return prometheus_name(domain, kind, re.sub(r"PerSec\w*$", "", name)) + "_total"


def label_text(labels: dict[str, str]) -> str:
    """`{topic="t"}`, or nothing without labels."""
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{escaped(value)}"' for name, value in labels.items()) + "}"


def escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
