"""Input of every step of an analysis: the metastore, facts, properties, and who the statement is.

Does not know: statements.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from barnabas.sql.analysis.facts import SERVICE_ID, Facts
from barnabas.sql.metastore.metastore import Metastore
from barnabas.sql.syntax.statements import Statement


@dataclass(frozen=True)
class Context:
    statement: Statement
    text: str
    metastore: Metastore
    facts: Facts
    properties: Mapping[str, str] = field(default_factory=dict)
    number: int = 0

    def setting(self, name: str) -> str | None:
        return self.facts.setting(name, self.properties)

    def application_id(self, query_id: str) -> str:
        """The consumer group of a query, and the prefix of its internal topics."""
        return f"_confluent-ksql-{self.setting(SERVICE_ID)}query_{query_id}"

    def partitions(self, topic: str) -> int | None:
        fact = self.facts.topics.get(topic)
        return None if fact is None else fact.partitions
