"""Finds the reporters that `metric.reporters` names.

In: names: of outlets that come with Barnabas (otlp, graphite, statsd, cloudwatch), of entry points in the
group `barnabas.metric_reporters`, or `package.module:Name`. Out: objects, configured. A reporter that cannot
be loaded is logged and left out: metrics must not keep a node from starting. Kafka's JmxReporter needs no
object: the metrics port serves MBeans in Jolokia's form, and the `jmx` tool reads them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any

log = logging.getLogger("barnabas.reporters")
GROUP = "barnabas.metric_reporters"
# Loaded by name, because they stand above the broker and need packages that a broker alone does not.
BUILT_IN = {
    "otlp": "barnabas.monitor.outlets.otlp:OtlpOutlet",
    "graphite": "barnabas.monitor.outlets.graphite:GraphiteOutlet",
    "statsd": "barnabas.monitor.outlets.statsd:StatsdOutlet",
    "cloudwatch": "barnabas.monitor.outlets.cloudwatch:CloudWatchOutlet",
}
EXTRA = {"otlp": "barnabas[otlp]"}
NEED_NO_OBJECT = (
    "org.apache.kafka.common.metrics.JmxReporter",
    "io.confluent.metrics.reporter.ConfluentMetricsReporter",
)


def load_reporters(names: Iterable[str], settings: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Names and objects of the reporters that could be loaded."""
    for name in names:
        if name in NEED_NO_OBJECT:
            continue
        try:
            reporter = load(name)()
            configure = getattr(reporter, "configure", None)
            if configure is not None:
                configure(settings)
        except ModuleNotFoundError as error:
            needed = EXTRA.get(name)
            hint = f": install {needed}" if needed else ""
            log.error("metric.reporters: %s is not used: %s%s", name, error, hint)
        except Exception as error:  # reporters are code of other packages
            log.error("metric.reporters: %s is not used: %s", name, error)
        else:
            yield name, reporter


def load(name: str) -> Any:
    """The class or function of this name. LookupError, ImportError or AttributeError if there is none."""
    path = BUILT_IN.get(name, name)
    module, colon, attribute = path.partition(":")
    if colon:
        return getattr(import_module(module), attribute)
    from importlib.metadata import entry_points  # reads the metadata of all packages

    for found in entry_points(group=GROUP, name=name):
        return found.load()
    raise LookupError(f"no installed package has an entry point {name!r} in {GROUP}")
