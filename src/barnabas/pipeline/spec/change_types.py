"""Names of types that Debezium gives to columns of change events, and the unit of each type of time.

A time in a change event is a number. Which one depends on the database and on the column: MySQL's DATETIME is
milliseconds, its DATETIME(6) microseconds. An event that carries its schema says so by these names; for
events without schemas a pipeline's file does. Does not know: Spark, events.
"""

from __future__ import annotations

from collections.abc import Mapping

TIMES = "io.debezium.time."
CONNECT = "org.apache.kafka.connect.data."

MILLISECONDS, MICROSECONDS, NANOSECONDS = "milliseconds", "microseconds", "nanoseconds"
UNITS: Mapping[str, str] = {
    TIMES + "Timestamp": MILLISECONDS,
    CONNECT + "Timestamp": MILLISECONDS,
    TIMES + "MicroTimestamp": MICROSECONDS,
    TIMES + "NanoTimestamp": NANOSECONDS,
}
# Of columns whose type nobody names: DATETIME of MySQL, timestamp of PostgreSQL.
UNITS_OF_CONNECTORS: Mapping[str, str] = {
    "mysql": MILLISECONDS,
    "mariadb": MILLISECONDS,
    "postgresql": MICROSECONDS,
}

DECIMAL_BYTES = CONNECT + "Decimal"
DECIMAL_TEXT = "string"  # with `decimal.handling.mode=string` the column has no other name than its kind
KNOWN = (*UNITS, DECIMAL_BYTES, DECIMAL_TEXT)
