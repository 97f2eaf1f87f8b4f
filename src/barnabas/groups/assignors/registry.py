"""Assignors by name, in the order of `group.consumer.assignors`; the first is the group's default.

In: the names that the setting lists, and assignors registered by others. Out: a mapping.
Does not know: entry points; whoever loads them passes what was found.
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
    """The setting names an assignor that nobody registered."""


def chosen(names: Iterable[str], registered: Mapping[str, Assignor] | None = None) -> dict[str, Assignor]:
    """The assignors that a node offers; the name of Kafka's class stands for Kafka's name."""
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
