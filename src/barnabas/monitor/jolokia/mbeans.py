"""MBeans made of a registry's samples, looked up in steps.

In: a registry, the name or the pattern of an MBean. Out: names with their attributes. An MBean is all samples
with the same domain, type, name and tags. Only sources that the name may mean are looked up.
Does not know: Jolokia's JSON, the network.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from barnabas.broker.reporters.collecting import could_match
from barnabas.metrics.object_names import ObjectName, parse_object_name
from barnabas.metrics.registry import Place
from barnabas.metrics.samples import Kind, Metric

if TYPE_CHECKING:
    from barnabas.metrics.registry import Registry
    from barnabas.runtime.pieces import Steps

SAMPLES_A_STEP = 64
Value = float | str
Found = dict[ObjectName, dict[str, Value]]
TYPES = {bool: "boolean", int: "long", float: "double", str: "java.lang.String"}


def find(registry: Registry, pattern: ObjectName | None) -> Steps[Found]:
    """MBeans that match, with their attributes. None: all."""
    found: Found = {}
    wanted = None if pattern is None else lambda metric: may_have(metric, pattern)
    for count, sample in enumerate(registry.samples_and_pauses(wanted), 1):
        if sample is None:
            yield
            continue
        name = parse_object_name(sample.mbean)
        if pattern is None or pattern.matches(name):
            found.setdefault(name, {}).update(registry.attributes(sample))
        if not count % SAMPLES_A_STEP or sample.kind is Kind.HISTOGRAM:
            yield
    return found


def names(registry: Registry, pattern: ObjectName) -> Steps[list[ObjectName]]:
    """Names alone: no histogram is computed for them."""
    found: dict[ObjectName, None] = {}
    for count, (metric, tags) in enumerate(keys(registry, pattern), 1):
        name = parse_object_name(metric.mbean(tags))
        if pattern.matches(name):
            found[name] = None
        if not count % SAMPLES_A_STEP:
            yield
    return list(found)


def keys(registry: Registry, pattern: ObjectName) -> Iterator[tuple[Metric, tuple[tuple[str, str], ...]]]:
    for metric, rows in registry.readings(lambda metric: may_have(metric, pattern)):
        if isinstance(rows, Place):
            yield metric, ()  # nothing is counted for a name
            continue
        for tags, _ in rows:
            yield metric, tags


def may_have(metric: Metric, pattern: ObjectName) -> bool:
    return could_match(pattern, parse_object_name(metric.mbean()))


def attribute_descriptions(attributes: Mapping[str, Value]) -> dict[str, object]:
    """Jolokia's description of attributes in `list`."""
    return {
        name: {
            "rw": False,
            "type": TYPES.get(type(value), "double"),
            "desc": "Attribute exposed for management",
        }
        for name, value in attributes.items()
    }
