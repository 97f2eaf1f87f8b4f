"""Schema drift: fields that the schema does not name become columns, are rescued, or stop the source.

In: samples of a batch with unknown fields, the table as it is. Out: the columns that the table has from
now on. Does not know: how rows are parsed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from barnabas.engine.errors import NeedsDecision
from barnabas.pipeline.ingest import schemas
from barnabas.pipeline.lake.columns import SYSTEM_COLUMNS
from barnabas.pipeline.spec.model import Drift, Staging

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

FIELDS_SHOWN_MAX = 10


def together(declared: StructType, there: StructType, name: str, source: str) -> StructType:
    """The declared columns and those that drift added. NeedsDecision where a type has changed."""
    from pyspark.sql.types import StructType

    known = {each.name.lower(): each for each in there.fields}
    for each in declared.fields:
        old = known.get(each.name.lower())
        if old is not None and old.dataType != each.dataType:
            raise NeedsDecision(
                f"staging.{name}: the column {each.name} is {old.dataType.simpleString()} in the table and"
                f" {each.dataType.simpleString()} in the file: put the type back, or rebuild the table from"
                f" the raw zone with: barnabas pipeline replay {source} --rebuild"
            )
    names = {each.name.lower() for each in declared.fields}
    added = [
        each for each in there.fields if each.name.lower() not in names and each.name not in SYSTEM_COLUMNS
    ]
    return StructType([*declared.fields, *added])


def columns_to_add(values: Iterable[bytes], known: Iterable[str]) -> str:
    """DDL of columns for the fields of records that are not known yet."""
    names = set(known)
    kinds: dict[str, object] = {}
    for value in values:
        for name, each in json.loads(value).items():
            if name not in names and name.strip() and not name.startswith("_"):
                kinds[name] = schemas.merged(kinds.get(name), schemas.kind_of(each))
    return ", ".join(f"`{name.replace('`', '')}` {schemas.type_text(kind)}" for name, kind in kinds.items())


def stop(staging: Staging, rescued: Iterable[str]) -> NeedsDecision:
    names = sorted({name for text in rescued for name in json.loads(text)})
    shown = ", ".join(names[:FIELDS_SHOWN_MAX])
    return NeedsDecision(
        f"staging.{staging.name}: records have fields that the schema does not name: {shown}; add them to the"
        f" schema, or set drift to {Drift.ADD} or {Drift.RESCUE}"
    )
