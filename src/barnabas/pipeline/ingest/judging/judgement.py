"""A judgement: which rows of a batch go where. Two judges make it; writers do not see which.

Out: values. `what_to_judge` describes the tables and how rows go into them. Does not know: how rows are
judged, commits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from barnabas.pipeline.ingest.dedupe.known_keys import KnownKeys
from barnabas.pipeline.lake.tables import TableName
from barnabas.pipeline.spec.model import Merging, Rule, RuleKind, Staging, Trusted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class KeysOf(Protocol):
    def __call__(
        self, table: TableName, columns: Sequence[str], within_us: int | None = None
    ) -> KnownKeys | None:
        """Keys that the table holds and keeps; None where rows replace those of their key."""
        ...


@dataclass(frozen=True, slots=True)
class Case:
    """Input of a judgement: tables, how rows merge, the keys that tables have."""

    stagings: Sequence[Staging]
    trusteds: Sequence[tuple[Staging, Trusted]]
    merging: Merging
    own_batch: int  # its rows do not count as duplicates
    known: KeysOf
    is_staged: bool = False  # staging has the rows already, only trusted tables are judged
    only: str = ""  # the only trusted table that is judged

    def trusted(self) -> list[tuple[int, Staging, Trusted]]:
        return [
            (index, staging, trusted)
            for index, (staging, trusted) in enumerate(self.trusteds)
            if not self.only or trusted.name == self.only
        ]


@dataclass(frozen=True, slots=True)
class Chosen:
    """Rows that go to one table: how many, and a frame with all columns of the parsed batch."""

    count: int
    rows: Callable[[], DataFrame]


def nothing_to_note(version: int) -> None:
    """The rows of the commit need not be remembered."""


@dataclass(slots=True)
class Judgement:
    """`refused` rows have the bits of broken rules as `_bits`. Call `committed` with the version of a table
    when its rows are there."""

    malformed: Chosen
    late: int = 0
    staged: list[Chosen] = field(default_factory=list)  # for each staging table
    duplicates: int = 0
    repeated: list[Chosen] = field(default_factory=list)  # the duplicates, for each staging table
    accepted: dict[int, Chosen] = field(default_factory=dict)  # by the number of the trusted table
    refused: dict[int, Chosen] = field(default_factory=dict)
    committed: dict[TableName, Callable[[int], None]] = field(default_factory=dict)


def unique_rules(trusted: Trusted) -> list[tuple[int, Rule]]:
    """Rules `unique` of a table, with their numbers."""
    return [(number, rule) for number, rule in enumerate(trusted.rules) if rule.kind is RuleKind.UNIQUE]


def within_us(remembering: Staging | Rule) -> int | None:
    """The horizon of a key or of a rule `unique`."""
    return None if remembering.within_s is None else int(remembering.within_s * 1e6)


def horizons_us(stagings: Sequence[Staging], trusteds: Iterable[Trusted]) -> list[int]:
    """All horizons of tables."""
    rules = [rule for trusted in trusteds for _, rule in unique_rules(trusted)]
    found = [*map(within_us, stagings), *map(within_us, rules)]
    return [each for each in found if each is not None]
