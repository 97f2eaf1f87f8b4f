"""Finding a topology by its name, and what decides whether its state can be kept.

In: `module:attribute`. Out: a plan, and the facts of it that an upgrade must not change: where each store
is kept, its kind and its formats. Does not know: how plans run.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from barnabas.engine.upgrades import QueryPlan
from barnabas.plans.plan import Plan
from barnabas.streams.dsl.optimizing import wanted

TOPOLOGY = "topology"
OPTIMIZATION = "topology.optimization"


class TopologyError(ValueError):
    """The topology cannot be found or used; the message says why."""


def load_attribute(reference: str, what: str) -> Any:
    """The object that `module:attribute` names, in a module of the current folder or one that is installed.
    Functions of the module go to executors by value, which need not have it."""
    module_name, colon, attribute = reference.partition(":")
    if not colon or not module_name or not attribute:
        raise TopologyError(f"{reference!r} is not a {what}: give module:attribute, as in words:{what}")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise TopologyError(f"the module {module_name} cannot be imported: {error}") from error
    if not hasattr(module, attribute):
        raise TopologyError(f"the module {module_name} has no {attribute}")
    send_by_value(module)
    return getattr(module, attribute)


def load_plan(reference: str, application_id: str, optimization: str = "none") -> Plan:
    """The plan that `module:attribute` names: a plan, a builder, or a function of the application id that
    gives one of them. Plans of builders are optimized as `topology.optimization` says."""
    found = load_attribute(reference, "topology")
    if callable(found) and not isinstance(found, Plan) and not hasattr(found, "build"):
        found = found(application_id)
    if isinstance(found, Plan):
        plan = found
        if wanted(optimization):
            raise TopologyError(f"{reference} is a plan: {OPTIMIZATION} needs the builder that makes it")
    else:
        plan = found.build(optimization) if wanted(optimization) else found.build()
    if plan.application_id != application_id:
        raise TopologyError(
            f"{reference} is built for the application {plan.application_id!r}, not for {application_id!r}:"
            " make it a function that takes the application id"
        )
    return plan


def send_by_value(module: Any) -> None:
    """Functions of the user's module go to executors, which need not have it."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]


def query_plan(plan: Plan) -> QueryPlan:
    """Everything that decides about the meaning of the state."""
    stores = {
        store.name: {
            "sub-topology": subtopology.number,
            "kind": store.kind.value,
            "key": format_of(store.key_serde),
            "value": format_of(store.value_serde),
            "window size": store.window_size_ms,
        }
        for subtopology in plan.subtopologies
        for store in subtopology.stores
    }
    return QueryPlan(TOPOLOGY, {"stores": stores})


def format_of(serde: Any) -> str:
    return "bytes" if serde is None else str(serde.format)


def judge(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Stores may come and go; one that stays must stay as it is."""
    changes = []
    for name, before in old["stores"].items():
        after = new["stores"].get(name)
        if after is not None:
            changes += [
                f"store {name}: {fact} was {before[fact]}, is {after[fact]}"
                for fact in before
                if before[fact] != after.get(fact)
            ]
    return "; ".join(changes)
