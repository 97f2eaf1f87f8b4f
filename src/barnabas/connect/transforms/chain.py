"""A chain of transforms with predicates, as a connector's settings name it.

In: records, settings. Out: records after all steps, and failures by the index that a record had before the
first. Records that a predicate leaves out keep their place. Where only some records were changed, their
schemas may differ from the others': then the answer has several parts, in the order of the records. A step
that fails on a batch is tried on halves of it until the records at fault stand alone. Does not know: what
becomes of records that fail.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.data import Column, DataError, Records
from barnabas.connect.plugins import ConnectError, Kind, Plugins, RetriableError
from barnabas.connect.transforms.contract import SchemaError, Transformed, joined, with_column

Operation = Callable[[], Any]
Retrying = Callable[[Operation], Any]


@dataclass(frozen=True, slots=True)
class Step:
    """One transform of a chain, with the predicate that guards it."""

    alias: str
    name: str  # the class as configured
    transform: Any
    predicate: Any = None
    negate: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """Records of one schema after the chain, with the indices that they had before it."""

    indices: Sequence[int]
    records: Records


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a record did not come through."""

    step: Step
    error: Exception


@dataclass
class Chained:
    """Result of a batch; indices that are neither in a part nor failed were dropped."""

    parts: list[Part] = field(default_factory=list)
    failures: dict[int, Failure] = field(default_factory=dict)


def at_once(operation: Operation) -> Any:
    return operation()


class TransformChain:
    """Transforms in their order. `retrying` runs an operation, again if it may succeed later."""

    def __init__(self, steps: Sequence[Step], retrying: Retrying = at_once) -> None:
        self.steps = steps
        self._retrying = retrying

    @classmethod
    def of(cls, config: Mapping[str, str], plugins: Plugins, retrying: Retrying = at_once) -> TransformChain:
        """The transforms of a connector, configured, in order."""
        predicates = {}
        for alias in aliases(config.get("predicates")):
            own = under(config, f"predicates.{alias}.")
            predicates[alias] = plugins.load(named(own, "predicates", alias), Kind.PREDICATE)()
            predicates[alias].configure(own)
        steps = []
        for alias in aliases(config.get("transforms")):
            own = under(config, f"transforms.{alias}.")
            name = named(own, "transforms", alias)
            predicate = own.pop("predicate", None)
            if predicate is not None and predicate not in predicates:
                known = ", ".join(predicates) or "none"
                raise ConnectError(
                    f"transforms.{alias}.predicate names {predicate!r}; `predicates` has {known}"
                )
            negate = own.pop("negate", "false").strip().lower() == "true"
            transform = plugins.load(name, Kind.TRANSFORMATION)()
            transform.configure(own)
            guard = None if predicate is None else predicates[predicate]
            steps.append(Step(alias, name, transform, guard, negate))
        return cls(steps, retrying)

    def apply(self, records: Records) -> Chained:
        """Send records through all steps."""
        done = Chained([Part(range(len(records)), records)])
        for step in self.steps:
            done.parts = [
                after
                for part in done.parts
                if len(part.records)
                for after in self._step(step, part, done.failures)
            ]
        done.parts = [part for part in done.parts if len(part.records)]
        return done

    def close(self) -> None:
        for step in self.steps:
            for each in (step.transform, step.predicate):
                close = getattr(each, "close", None)
                if close is not None:
                    close()

    def _step(self, step: Step, part: Part, failures: dict[int, Failure]) -> list[Part]:
        if step.predicate is None:
            return self._changed(step, part, failures)
        try:
            mask = self._retrying(lambda: step.predicate.test(part.records))
            chosen = np.array(pc.fill_null(mask, False), bool) != step.negate
        except Exception as error:
            failures |= dict.fromkeys(part.indices, Failure(step, error))
            return []
        if chosen.all():
            return self._changed(step, part, failures)
        if not chosen.any():
            return [part]
        inside, outside = np.flatnonzero(chosen), np.flatnonzero(~chosen)
        after = self._changed(step, taken(part, inside.tolist()), failures)
        return in_order([*after, taken(part, outside.tolist())])

    def _changed(self, step: Step, part: Part, failures: dict[int, Failure]) -> list[Part]:
        """A tombstone has no schema, although it stands in a column of one: it is changed by itself."""
        absent = tombstones(step.transform, part.records)
        if absent is None:
            return [self._whole(step, part, failures)]
        on = step.transform.on
        gone = taken(part, np.flatnonzero(absent).tolist())
        without = Part(gone.indices, with_column(gone.records, on, Column.nulls(len(gone.indices))))
        after = self._whole(step, taken(part, np.flatnonzero(~absent).tolist()), failures)
        alone = self._whole(step, without, failures)
        schema = getattr(after.records, on).schema
        made = getattr(alone.records, on)
        if schema is not None and not schema.optional and made.schema is None and not any_value(made):
            nulls = Column(schema, pa.nulls(len(made), schema.arrow))
            alone = Part(alone.indices, with_column(alone.records, on, nulls))
        return in_order([after, alone])

    def _whole(self, step: Step, part: Part, failures: dict[int, Failure]) -> Part:
        made = self._applied(step, part.records)
        failures |= {part.indices[row]: Failure(step, error) for row, error in made.failures.items()}
        whole = len(made.indices) == len(part.indices)
        return Part(part.indices if whole else [part.indices[row] for row in made.indices], made.records)

    def _applied(self, step: Step, records: Records) -> Transformed:
        """Results of the transform for the records; those that fail are named by their index."""
        count = len(records)
        try:
            return as_transformed(step, self._retrying(lambda: step.transform.apply(records)), records)
        except (SchemaError, RetriableError, ShapeError) as error:  # halves would fail alike
            return Transformed(records.take([]), [], dict.fromkeys(range(count), error))
        except Exception as error:
            if count <= 1:
                return Transformed(records.take([]), [], dict.fromkeys(range(count), error))
        middle = count // 2
        one, two = (self._applied(step, records.take(some)) for some in (range(middle), range(middle, count)))
        kept = [half.records for half in (one, two) if len(half.records)]
        return Transformed(
            joined(kept) if kept else records.take([]),
            [*one.indices, *(index + middle for index in two.indices)],
            {**one.failures, **{index + middle: error for index, error in two.failures.items()}},
        )


class ShapeError(DataError):
    """A transform answered with what nobody can assign to its records."""


def as_transformed(step: Step, made: Any, records: Records) -> Transformed:
    """The answer of a transform; one that knows nothing of indices returns as many records, or None."""
    if isinstance(made, Transformed):
        return made
    if made is None:
        return Transformed(records.take([]), [])
    if len(made) != len(records):
        raise ShapeError(
            f"transform {step.alias} ({step.name}) made {len(made)} of {len(records)} records; one that "
            "drops records returns Transformed(records, indices)"
        )
    return Transformed(made, range(len(records)))


def aliases(text: str | None) -> list[str]:
    return [each.strip() for each in (text or "").split(",") if each.strip()]


def under(config: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {name.removeprefix(prefix): value for name, value in config.items() if name.startswith(prefix)}


def named(own: dict[str, str], kind: str, alias: str) -> str:
    """The class of a transform or predicate; its version is not part of the settings either."""
    own.pop("plugin.version", None)
    name = own.pop("type", None)
    if name is None:
        raise ConnectError(f"{kind}.{alias}.type is missing: it names the class")
    return name


def taken(part: Part, places: list[int]) -> Part:
    return Part([part.indices[place] for place in places], part.records.take(places))


def tombstones(transform: Any, records: Records) -> Any:
    """Indices of records without value and schema on the side that a transform reads, or None."""
    on = getattr(transform, "on", None)
    if on is None:
        return None
    column: Column = getattr(records, on)
    if column.schema is None or column.schema.optional or not column.data.null_count:
        return None
    return np.asarray(column.data.is_null())


def any_value(column: Column) -> bool:
    return any(value is not None for value in column.data)


def in_order(parts: list[Part]) -> list[Part]:
    """Parts of one batch in the order of the records: as one if their schemas are equal, else in runs."""
    parts = [part for part in parts if len(part.records)]
    if len(parts) < 2:
        return parts
    rows = sorted(
        (index, side, place) for side, part in enumerate(parts) for place, index in enumerate(part.indices)
    )
    schemas = [(part.records.keys.schema, part.records.values.schema) for part in parts]
    if all(each == schemas[0] for each in schemas):
        starts = np.cumsum([0, *(len(part.records) for part in parts)]).tolist()
        order = [starts[side] + place for _, side, place in rows]
        whole = joined([part.records for part in parts]).take(order)
        return [Part([index for index, _, _ in rows], whole)]
    found: list[Part] = []
    start = 0
    for end in range(1, len(rows) + 1):
        if end == len(rows) or rows[end][1] != rows[start][1]:
            found.append(taken(parts[rows[start][1]], [place for _, _, place in rows[start:end]]))
            start = end
    return found
