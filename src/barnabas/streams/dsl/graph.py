"""The growing plan: nodes in order, stores, names numbered as Kafka Streams numbers them.

In: nodes. Out: a `Plan`. Does not know: the faces of the DSL.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from barnabas.plans.nodes import Node
from barnabas.plans.plan import Plan, PlanError
from barnabas.plans.serdes import Serde
from barnabas.plans.stores import StoreSpec
from barnabas.streams.dsl.optimizing import Repartition, optimized
from barnabas.streams.serdes.formats import JSON

N = TypeVar("N", bound=Node)


class Graph:
    """Shared by all streams and tables of one builder."""

    def __init__(
        self, application_id: str, make_stream: Callable[..., Any], default_serde: Serde = JSON
    ) -> None:
        self.application_id, self.default_serde = application_id, default_serde
        self.make_stream = make_stream  # tables become streams again without importing them
        self.nodes: list[Node] = []
        self.stores: dict[str, StoreSpec] = {}
        self.copartitioned: list[frozenset[str]] = []
        self.moved: dict[str, tuple[str, Any]] = {}  # by topic: node before, stream behind
        self.repartitions: list[Repartition] = []  # those that a step needs, not the user's own
        self.tables: list[str] = []  # read from topics of the user
        self._index = 0

    def name(self, prefix: str, given: str | None = None) -> str:
        """A new name; a given one takes its place, and uses up the number too."""
        name = f"{prefix}{self._index:010d}"
        self._index += 1
        return name if given is None else given

    def store_name(self, prefix: str, given: str | None = None) -> str:
        return given if given is not None else self.name(f"{prefix}STATE-STORE-")

    def add(self, node: N) -> N:
        self.nodes.append(node)
        return node

    def add_store(self, spec: StoreSpec) -> str:
        if spec.name in self.stores:
            raise PlanError(f"two stores have the name {spec.name}")
        self.stores[spec.name] = spec
        return spec.name

    def plan(self, optimizations: frozenset[str] = frozenset()) -> Plan:
        plan = Plan(tuple(self.nodes), dict(self.stores), tuple(self.copartitioned), self.application_id)
        return optimized(plan, self.repartitions, self.tables, optimizations)


def checked(function: Any, what: str, *, takes_batches: bool = False) -> Any:
    """A function of the user; None and things that cannot be called are refused where the topology is built,
    so are functions over batches (`pandas_function`, `arrow_function`) where single values are given."""
    from barnabas.plans.expressions import Expression

    kind = getattr(function, "vectorised", None)
    if kind is not None and not takes_batches:
        raise TypeError(
            f"{what} is a {kind}_function: such functions are for map_values (without with_key) and filter of"
            " a KStream; give a function of single values"
        )

    if function is None or not (callable(function) or isinstance(function, Expression | tuple)):
        raise TypeError(f"{what} is {function!r}: a function or an expression is needed")
    return function
