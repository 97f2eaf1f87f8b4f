"""Transaction metadata: records of beginnings and ends, and the order of events inside. Pure.

With `provide.transaction.metadata` each event names its transaction and its place in it, and the topic
`<prefix>.transaction` has a record for each beginning and end with the counts of events.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from barnabas.connect.connectors.debezium.envelope import Change
from barnabas.connect.data import (
    INT64,
    OPTIONAL_INT64,
    STRING,
    Column,
    Records,
    array,
    struct,
)

KEY = struct({"id": STRING}, name="io.debezium.connector.common.TransactionMetadataKey", version=1)
COUNT = struct({"data_collection": STRING, "event_count": INT64}, name="event.collection", version=1)
VALUE = struct(
    {
        "status": STRING,
        "id": STRING,
        "event_count": OPTIONAL_INT64,
        "data_collections": array(COUNT, optional=True),
        "ts_ms": INT64,
    },
    name="io.debezium.connector.common.TransactionMetadataValue",
    version=1,
)
Position = tuple[dict[str, Any], dict[str, Any]]


class Transactions:
    """Counts the events of the transaction that is read. Its counts go into offsets, so that they go on after
    a restart in the middle."""

    def __init__(self, topic: str, offset: Mapping[str, Any]) -> None:
        self._topic = topic
        self.id: str | None = offset.get("transaction_id")
        self._counts: dict[str, int] = json.loads(offset.get("transaction_counts") or "{}")

    @property
    def offset(self) -> tuple[tuple[str, Any], ...]:
        if self.id is None:
            return ()
        return (("transaction_counts", json.dumps(self._counts)), ("transaction_id", self.id))

    def begins(self, name: str) -> bool:
        """Whether this is the first event of a transaction."""
        if self.id == name:
            return False
        self.id, self._counts = name, {}
        return True

    def counted(self, table: str, changes: Sequence[Change]) -> list[Change]:
        """The next changes of a table, each with its block `transaction`."""
        found = []
        for each in changes:
            self._counts[table] = self._counts.get(table, 0) + 1
            total = sum(self._counts.values())
            block = {"id": self.id, "total_order": total, "data_collection_order": self._counts[table]}
            found.append(each._replace(transaction=block))
        return found

    def begin(self, time_ms: int, position: Position) -> Records:
        row = {
            "status": "BEGIN",
            "id": self.id,
            "event_count": None,
            "data_collections": None,
            "ts_ms": time_ms,
        }
        return self._records(row, position)

    def end(self, time_ms: int) -> dict[str, Any]:
        """The row of the end; the counts begin anew."""
        counts = [{"data_collection": each, "event_count": count} for each, count in self._counts.items()]
        row = {
            "status": "END", "id": self.id, "event_count": sum(self._counts.values()),
            "data_collections": counts, "ts_ms": time_ms,
        }  # fmt: skip
        self.id, self._counts = None, {}
        return row

    def ended(self, row: dict[str, Any], position: Position) -> Records:
        return self._records(row, position)

    def _records(self, row: dict[str, Any], position: Position) -> Records:
        return Records.of(
            self._topic, Column.of([row], VALUE), Column.of([{"id": row["id"]}], KEY), positions=[position]
        )
