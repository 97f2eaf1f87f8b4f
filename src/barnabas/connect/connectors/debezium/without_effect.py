"""Settings of Debezium's connectors that users bring along and that change nothing here."""

from __future__ import annotations

from typing import Final

COMMON: Final[dict[str, tuple[str | None, str]]] = {
    "converters": (None, "classes of Java are not loaded"),
    "database.initial.statements": (None, "connections execute no statements of their own"),
    "errors.max.retries": ("-1", "a server that is away is asked again without end"),
    "event.processing.failure.handling.mode": ("fail", "changes that cannot be read fail the task"),
    "include.schema.comments": ("false", "comments of columns are not read"),
    "max.queue.size": ("8192", "max.batch.size bounds what waits"),
    "notification.enabled.channels": (None, "notifications are not sent"),
    "notification.sink.topic.name": (None, "notifications are not sent"),
    "poll.interval.ms": ("500", "the server tells changes at once"),
    "retriable.restart.connector.wait.ms": ("10000", "pauses between attempts grow by themselves"),
    "snapshot.isolation.mode": (None, "a snapshot is one transaction with repeatable reads"),
    "snapshot.lock.timeout.ms": ("10000", "the server's own time counts"),
    "snapshot.max.threads": ("1", "one connection reads a snapshot"),
    "snapshot.tables.order.by.row.count": ("disabled", "the connector decides the order"),
    "topic.naming.strategy": (
        "io.debezium.schema.SchemaTopicNamingStrategy",
        "topics have the names of their tables",
    ),
}
