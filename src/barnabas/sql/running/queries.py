"""Persistent queries as they run: their state, their errors, when a failed one starts again.

In: works of statements, what the conductor knows of their sub-topologies. Out: statuses. Pure but for the
conductor's queries that it holds. Does not know: threads, Spark.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from barnabas.engine.backoff import Backoff
from barnabas.sql.analysis.work import QueryWork
from barnabas.sql.columns import loading
from barnabas.sql.execution.port import Explanation, Prepared, QueryError, QueryState, QueryStatus
from barnabas.sql.formats.codecs import NO_REGISTRY
from barnabas.sql.running.binding import bound
from barnabas.streams.columns.roads import Road, roads
from barnabas.streams.spark.conductor import Query

assert loading.FORMS
ERRORS_KEPT_MAX = 10
USER_WORDS = ("deserialization", "processing of record", "production of record", "does not exist")


@dataclass
class RunningQuery:
    """A query of this node. `parts` are its sub-topologies while they run; None before they do, and while it
    is paused or has failed."""

    prepared: Prepared
    work: QueryWork
    parts: list[Query] | None = None
    is_paused: bool = False
    is_stopped: bool = False
    errors: deque[QueryError] = field(default_factory=lambda: deque(maxlen=ERRORS_KEPT_MAX))
    has_failed: bool = False
    retry_at: float = 0.0
    began: float = 0.0  # when it was last started
    backoff: Backoff = field(default_factory=Backoff)
    before: Counter[str] = field(default_factory=Counter)  # counts of earlier runs on this node
    dropped_before: Counter[str] = field(default_factory=Counter)

    @property
    def query_id(self) -> str:
        return self.work.query_id or ""

    @property
    def state(self) -> QueryState:
        if self.is_stopped:
            return QueryState.STOPPED
        if self.has_failed:
            return QueryState.ERROR
        return QueryState.PAUSED if self.is_paused else QueryState.RUNNING

    @property
    def failed_part(self) -> Query | None:
        return next((each for each in self.parts or () if each.error is not None), None)

    def fail(self, message: str, now: float, first_ms: int, max_ms: int) -> None:
        """Note a failure: the query starts again after a time that doubles with each failure. After a
        healthy while, a failure counts as the first again."""
        kind = "USER" if any(word in message for word in USER_WORDS) else "SYSTEM"
        self.errors.append(QueryError(int(now * 1000), kind, message))
        self.has_failed = True
        self.backoff.first_s, self.backoff.most_s = first_ms / 1000, max_ms / 1000
        self.retry_at = now + self.backoff.failed(now - self.began)

    def forget_parts(self) -> None:
        """Keep the counts of parts that run no more."""
        for each in self.parts or ():
            self.before.update(records=each.records, outputs=each.outputs)
            self.dropped_before.update(each.metrics.dropped)
        self.parts = None

    def metrics(self) -> dict[str, dict[str, float]]:
        """Metrics of all parts; what is measured of a part as a whole gets the number of the part."""
        found: dict[str, dict[str, float]] = {}
        for part in self.parts or ():
            for name, values in part.metrics.snapshot().items():
                named = {each or str(part.number): value for each, value in values.items()}
                found.setdefault(name, {}).update(named)
        return found

    def status(self) -> QueryStatus:
        parts = self.parts or []
        dropped = Counter(self.dropped_before)
        for each in parts:
            dropped.update(each.metrics.dropped)
        return QueryStatus(
            self.query_id,
            self.state,
            self.work.application_id,
            tuple(self.errors),
            self.before["records"] + sum(each.records for each in parts),
            self.before["outputs"] + sum(each.outputs for each in parts),
            dict(dropped),
            sum(each.metrics.lag for each in parts) if parts else None,
        )


def explanation_of(prepared: Prepared, work: QueryWork) -> Explanation:
    return Explanation(
        work.query_id,
        prepared.text,
        prepared.schema,
        tuple(each.name for each in work.sources),
        (work.sink.name,) if work.sink is not None else (),
        work.execution_plan,
        work.topology,
        road_of(work),
        prepared.properties,
    )


def road_of(work: QueryWork) -> str:
    """The code that runs each part of a query, and the reason."""
    if work.plan is None:
        return "a lookup in the rows of the table's topic, kept in this process"
    if work.sink is None:
        where = {
            part.number: ["record by record, in the server's process"] for part in work.plan.subtopologies
        }
    else:
        found = roads(bound(work.plan, NO_REGISTRY))
        where = {number: road_lines(some) for number, some in found.items()}
    lines = []
    for part in work.plan.subtopologies:
        names = ", ".join(type(node).__name__ for node in part.nodes)
        kept = ", ".join(each.name for each in part.stores)
        why = f"it keeps state ({kept})" if kept else "it keeps no state"
        first, *more = where.get(part.number, ["loaded by each worker"])
        lines += [f"sub-topology {part.number} ({names}): {first}; {why}", *more]
    return "\n".join(lines)


def road_lines(some: Sequence[Road]) -> list[str]:
    """The road of a sub-topology; then a line for each step that keeps it from columns, or uses Python."""
    obstacles = [each for each in some if each.obstacle is not None and not each.follows]
    if obstacles:
        first = "record by record, in a task of a Spark job"
        return [first, *(f"  {each.node}: {each.obstacle}" for each in obstacles)]
    slow = [each for each in some if each.python]
    return [
        "over columns, in a task of a Spark job",
        *(f"  {each.node}: Python for each value: {'; '.join(each.python)}" for each in slow),
    ]
