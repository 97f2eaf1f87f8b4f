"""The PostgreSQL connector: Debezium's name, settings and offsets; one task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from barnabas.connect.connectors.postgres_cdc.settings import CONFIG, setting_errors
from barnabas.connect.connectors.postgres_cdc.task import PostgresTask
from barnabas.connect.plugins import SOURCE, ConnectError, Connector


class PostgresConnector(Connector):
    KIND = SOURCE
    CONFIG = CONFIG
    JAVA_NAMES = ("io.debezium.connector.postgresql.PostgresConnector",)
    task = PostgresTask

    def check(self, config: Mapping[str, str]) -> dict[str, list[str]]:
        return setting_errors(config)

    def exactly_once_support(self, config: Mapping[str, str]) -> bool | None:
        return True  # offsets name the last change inside of a transaction, so none is sent again or left out

    def alter_offsets(self, config: Mapping[str, str], offsets: Sequence[tuple[Any, Any]]) -> bool:
        for partition, offset in offsets:
            if not isinstance(partition, dict) or set(partition) != {"server"}:
                raise ConnectError(f'a partition is {{"server": topic.prefix}}, not {partition}')
            if offset is not None and not isinstance(offset.get("lsn_proc", offset.get("lsn")), int):
                raise ConnectError(f"an offset has a whole number lsn_proc: {offset}")
        return True
