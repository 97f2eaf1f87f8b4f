"""Upgrades with state kept: whether a new version of a query may continue with the state of the old one.

In: plans of queries, a place. Out: which queries are new, unchanged or changed; or an error that says what to
do. A plan holds what decides about the meaning of the state (keys, windows, sources), as JSON. The kind of
application says which changes it can bear (`judge`); without one, any change is refused.
Does not know: what a query computes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from barnabas.engine.checkpoints import checkpoint_of, plan_file
from barnabas.engine.places.place import Place

# Gets the old and the new plan; returns why the state cannot be continued, empty if it can.
Judge = Callable[[Mapping[str, Any], Mapping[str, Any]], str]


class IncompatibleState(Exception):
    """The state of a query cannot be continued; the message says why and what to do."""


class Continuation(StrEnum):
    NEW = "new"
    UNCHANGED = "unchanged"
    CHANGED = "changed"  # the state is continued by another plan


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """Everything that decides about the meaning of a query's state. Values must be JSON."""

    query: str
    plan: Mapping[str, Any]

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(json.dumps(self.plan, sort_keys=True).encode()).hexdigest()[:16]


def refuse_all(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    changed = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
    return f"{', '.join(changed)} changed"


def continue_plans(
    place: Place, application: str, plans: Sequence[QueryPlan], judge: Judge = refuse_all
) -> dict[str, Continuation]:
    """Check all plans, then store them. IncompatibleState names every query that cannot continue; nothing is
    stored then. Call it under the lease of the application."""
    found: dict[str, Continuation] = {}
    refused: list[str] = []
    for each in plans:
        stored = stored_plan(place, application, each.query)
        if stored is None:
            found[each.query] = Continuation.NEW
        elif stored.fingerprint == each.fingerprint:
            found[each.query] = Continuation.UNCHANGED
        elif reason := judge(stored.plan, each.plan):
            refused.append(f"query {each.query}: {reason}")
        else:
            found[each.query] = Continuation.CHANGED
    if refused:
        where = checkpoint_of(place.root, application, "QUERY").removesuffix("/QUERY")
        raise IncompatibleState(
            f"application {application} cannot continue with its state in {where}: {'; '.join(refused)}."
            " Undo the change, give the query another name (it starts anew beside the old state), or delete"
            f" the state: barnabas engine reset {application} QUERY --place {place.root}"
        )
    for each in plans:
        if found[each.query] is not Continuation.UNCHANGED:
            body = {"fingerprint": each.fingerprint, "plan": each.plan}
            place.write(plan_file(application, each.query), json.dumps(body).encode())
    return found


def stored_plan(place: Place, application: str, query: str) -> QueryPlan | None:
    data = place.read(plan_file(application, query))
    return None if data is None else QueryPlan(query, json.loads(data)["plan"])


def reset_query(place: Place, application: str, query: str) -> int:
    """Delete the state of a query: its plan and its checkpoint. The number of deleted files."""
    deleted = place.delete_all(checkpoint_of("", application, query).lstrip("/"))
    if place.read(plan_file(application, query)) is not None:
        place.delete(plan_file(application, query))
        deleted += 1
    return deleted
