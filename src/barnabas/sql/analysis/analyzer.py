"""The two questions of an engine: what must be looked up for a statement, and what is to be done for it.

    needed = lookups_of(statement, metastore, settings)
    facts = Facts(topics=..., schemas=..., settings=server_settings, now_ms=...)
    prepared = analyze(statement, text, metastore, facts, properties, number)

Pure: nothing is looked up, created or started here. SqlError says what is wrong, where, and what would be
right.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.sql.analysis.facts import NOTHING, Facts, Lookups
from barnabas.sql.errors import SqlError
from barnabas.sql.execution.port import Prepared
from barnabas.sql.metastore.metastore import Metastore
from barnabas.sql.syntax.statements import Statement


def lookups_of(
    statement: Statement,
    metastore: Metastore,
    settings: Mapping[str, str] = NOTHING,
    properties: Mapping[str, str] = NOTHING,
) -> Lookups:
    """Topics and schemas that `analyze` wants to know of. Those that do not exist are left out of `Facts`."""
    return Lookups()


def analyze(
    statement: Statement,
    text: str,
    metastore: Metastore,
    facts: Facts,
    properties: Mapping[str, str] = NOTHING,
    number: int = 0,
) -> Prepared:
    """The statement, checked. `Prepared.work` is a `QueryWork` (`analysis/work.py`) or None.

    `Prepared.topics` has topics that are missing; `Prepared.schemas` is empty: schemas of sinks are texts of
    a format, so the engine adds them from `work.sink` or the source that the changes put."""
    raise SqlError(f"{type(statement).__name__} cannot be analyzed yet", statement.at, text)
