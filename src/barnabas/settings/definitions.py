"""All settings by name: the tables put together.

In: the rows of `tables/`. Out: `BROKER`, `TOPIC`, `GROUP` by name, `INTERNAL` names, and typed defaults.
Does not know: any configured value.
"""

from __future__ import annotations

from functools import lru_cache

from barnabas.settings.tables import (
    cleaner,
    client_metrics,
    confluent,
    dynamic,
    group,
    groups,
    log,
    network,
    outlets,
    own,
    quorum,
    quotas,
    remote,
    replication,
    sasl,
    server,
    share,
    tls,
    topic,
    transactions,
)
from barnabas.settings.tables.row import Row, Setting
from barnabas.settings.values import Value, parse_list

BROKER_TABLES = (
    server.SETTINGS, server.INTERNAL, network.SETTINGS, log.SETTINGS, log.INTERNAL, cleaner.SETTINGS,
    replication.SETTINGS, replication.INTERNAL, groups.SETTINGS, groups.INTERNAL, share.SETTINGS,
    share.INTERNAL, transactions.SETTINGS, transactions.INTERNAL, quorum.SETTINGS, quorum.INTERNAL,
    remote.SETTINGS, remote.INTERNAL, quotas.SETTINGS, tls.SETTINGS, sasl.SETTINGS, own.SETTINGS,
    outlets.SETTINGS, confluent.SETTINGS, dynamic.SETTINGS,
)  # fmt: skip
INTERNAL_TABLES = (
    server.INTERNAL, log.INTERNAL, replication.INTERNAL, groups.INTERNAL, share.INTERNAL,
    transactions.INTERNAL, quorum.INTERNAL, remote.INTERNAL, topic.INTERNAL,
)  # fmt: skip

BROKER_ROWS: dict[str, Row] = {row[0]: row for table in BROKER_TABLES for row in table}
TOPIC_TABLES = (topic.SETTINGS, own.TOPIC_SETTINGS, confluent.TOPIC_SETTINGS, topic.INTERNAL)
TOPIC_ROWS: dict[str, Row] = {row[0]: row for table in TOPIC_TABLES for row in table}
GROUP_ROWS: dict[str, Row] = {row[0]: row for row in group.SETTINGS}
CLIENT_METRICS_ROWS: dict[str, Row] = {row[0]: row for row in client_metrics.SETTINGS}
INTERNAL: frozenset[str] = frozenset(row[0] for table in INTERNAL_TABLES for row in table)

# Known only while running, and shown only where they are set.
DYNAMIC_ONLY: frozenset[str] = frozenset(row[0] for row in dynamic.SETTINGS)
HIDDEN = INTERNAL | DYNAMIC_ONLY


def broker_setting(name: str) -> Setting | None:
    row = BROKER_ROWS.get(name)
    return row and Setting._make(row)


def topic_setting(name: str) -> Setting | None:
    row = TOPIC_ROWS.get(name)
    return row and Setting._make(row)


def group_setting(name: str) -> Setting | None:
    row = GROUP_ROWS.get(name)
    return row and Setting._make(row)


def default_value(row: Row) -> Value:
    """The typed default of a row; None where there is none or it must be given."""
    default = row[2]
    if default is ...:
        return None
    if row[1] == "list" and isinstance(default, str):
        return parse_list(default)
    if row[1] == "double" and isinstance(default, int | float):
        return float(default)
    return default


@lru_cache(maxsize=1)
def broker_defaults() -> dict[str, Value]:
    return {name: default_value(row) for name, row in BROKER_ROWS.items()}


@lru_cache(maxsize=1)
def topic_defaults() -> dict[str, Value]:
    return {name: default_value(row) for name, row in TOPIC_ROWS.items()}
