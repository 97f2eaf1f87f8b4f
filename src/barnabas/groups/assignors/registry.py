"""Assignors by name, in the order of `group.consumer.assignors`; the first one is the default.

In: the names in the setting, and assignors registered by plugins. Out: a mapping.
Does not know: entry points; the caller loads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from barnabas.groups.assignors.range import RangeAssignor
from barnabas.groups.assignors.spec import Assignor
from barnabas.groups.assignors.uniform import UniformAssignor

BUILT_IN: Mapping[str, Assignor] = {
    assignor.name: assignor for assignor in (UniformAssignor(), RangeAssignor())
}


class UnknownAssignor(Exception):
    """The setting names an assignor that is not registered."""


def select_assignors(
    names: Iterable[str], registered: Mapping[str, Assignor] | None = None
) -> dict[str, Assignor]:
    """The assignors that a node offers. The class names of Kafka's own assignors are accepted too."""
    known = {**BUILT_IN, **(registered or {})}
    found: dict[str, Assignor] = {}
    for name in names:
        assignor = known.get(name) or known.get(short_name(name))
        if assignor is None:
            raise UnknownAssignor(f"group.consumer.assignors names {name}; known are {', '.join(known)}")
        found[assignor.name] = assignor
    return found


def short_name(name: str) -> str:
    """`org.apache.kafka.coordinator.group.assignor.UniformAssignor` -> `uniform`."""
    return name.rpartition(".")[2].removesuffix("Assignor").lower()
