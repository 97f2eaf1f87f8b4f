"""A setting: a row of a table, and the same row with named columns.

In: rows of the tables, which are plain tuples, so that importing hundreds of them is cheap. Out: `Setting`,
created on demand.
Does not know: how values are parsed, which settings exist.
"""

from __future__ import annotations

from types import EllipsisType
from typing import NamedTuple

READ_ONLY = "read-only"
PER_BROKER = "per-broker"
CLUSTER_WIDE = "cluster-wide"

# name, type, default (`...`: must be given), allowed values, importance, how it can be changed, documentation
Row = tuple[str, str, "str | int | float | bool | EllipsisType | None", str, str, str, str]


class Setting(NamedTuple):
    name: str
    type: str
    default: str | int | float | bool | EllipsisType | None
    valid: str
    importance: str
    update: str
    documentation: str

    @property
    def required(self) -> bool:
        return self.default is ...

    @property
    def sensitive(self) -> bool:
        return self.type == "password"
