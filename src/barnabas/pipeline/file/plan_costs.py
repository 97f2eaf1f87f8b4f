"""Costs of keys and rules `unique` with every batch, for the plan.

In: a pipeline. Out: lines for a person. A batch looks up its keys among those that count; without a horizon
these are all keys of the table. Does not know: Spark, how large tables are.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.pipeline.spec.durations import duration_text
from barnabas.pipeline.spec.model import Merging, Pipeline, RuleKind


def costs(pipeline: Pipeline) -> list[str]:
    found = [*key_costs(pipeline), *unique_costs(pipeline)]
    return ["", "What every batch costs beside its rows:", *found] if found else []


def key_costs(pipeline: Pipeline) -> Iterator[str]:
    sources = {each.name: each for each in pipeline.sources}
    for staging in pipeline.staging:
        source = sources.get(staging.source)
        if not staging.key or source is None or source.merging is not Merging.INSERT_NEW:
            continue
        if staging.within_s is not None:
            yield (
                f"  staging.{staging.name}: a look at the keys of the last {duration_text(staging.within_s)};"
                " a duplicate that comes later is a new row"
            )
        else:
            columns = ", ".join(staging.key)
            yield (
                f"  staging.{staging.name}: a look at all keys of the table, which grows with it, unless keys"
                f" grow with time; `key: {{columns: [{columns}], within: 7 days}}` bounds it"
            )


def unique_costs(pipeline: Pipeline) -> Iterator[str]:
    for trusted in pipeline.trusted:
        for rule in trusted.rules:
            if rule.kind is not RuleKind.UNIQUE:
                continue
            place = f"  trusted.{trusted.name}: rule {rule.label}: a look at"
            if rule.within_s is not None:
                yield (
                    f"{place} the values of the last {duration_text(rule.within_s)}; an equal one that comes"
                    " later passes"
                )
            else:
                columns = ", ".join(rule.columns)
                yield (
                    f"{place} all values of the table, which grows with it;"
                    f" `unique: {{columns: [{columns}], within: 7 days}}` bounds it"
                )
