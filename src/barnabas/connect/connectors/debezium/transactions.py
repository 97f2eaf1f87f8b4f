"""Transaction metadata: records of beginnings and ends, and the order of events inside. Pure.

With `provide.transaction.metadata` each event names its transaction and its place in it, and the topic
`<prefix>.transaction` has a record for each beginning and end with the counts of events.
"""

from __future__ import annotations

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
        "data_collections": array(COUNT.as_optional(), optional=True),
        "ts_ms": INT64,
    },
    name="io.debezium.connector.common.TransactionMetadataValue",
    version=1,
)
ORDER = "transaction_data_collection_order_"
Position = tuple[dict[str, Any], dict[str, Any]]


class Transactions:
    """Counts the events of the transaction that is read. Its counts go into offsets, so that they go on after
    a restart in the middle."""

    def __init__(self, topic: str, offset: Mapping[str, Any]) -> None:
        self._topic = topic
        self.id: str | None = offset.get("transaction_id")
        self._counts: dict[str, int] = {
            name.removeprefix(ORDER): int(count) for name, count in offset.items() if name.startswith(ORDER)
        }

    @property
    def offset(self) -> tuple[tuple[str, Any], ...]:
        if self.id is None:
            return ()
        orders = tuple((ORDER + name, count) for name, count in self._counts.items())
        return (*orders, ("transaction_id", self.id))

    def begins(self, name: str) -> bool:
        """Whether this is the first event of a transaction."""
        if self.id == name:
            return False
        self.id, self._counts = name, {}
        return True

    def counted(self, table: str, changes: Sequence[Change], name: str | None = None) -> list[Change]:
        """The next changes of a table, each with its block `transaction`, whose id may be another."""
        return [each._replace(transaction=self.block(table, name)) for each in changes]

    def block(self, name: str, other_id: str | None = None) -> dict[str, Any]:
        """The block of the next event of a table, or of logical messages."""
        self._counts[name] = self._counts.get(name, 0) + 1
        total = sum(self._counts.values())
        return {"id": other_id or self.id, "total_order": total, "data_collection_order": self._counts[name]}

    def begin(self, time_ms: int, position: Position) -> Records:
        row = {
            "status": "BEGIN",
            "id": self.id,
            "event_count": None,
            "data_collections": None,
            "ts_ms": time_ms,
        }
        return self._records(row, position)

    def end(self, time_ms: int, name: str | None = None) -> dict[str, Any]:
        """The row of the end, with the id of the transaction or another; the counts begin anew."""
        counts = [{"data_collection": each, "event_count": count} for each, count in self._counts.items()]
        row = {
            "status": "END", "id": name or self.id, "event_count": sum(self._counts.values()),
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
