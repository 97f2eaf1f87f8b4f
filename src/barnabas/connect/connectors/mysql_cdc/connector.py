"""The MySQL and MariaDB connectors: Debezium's names, settings and offsets; one task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from barnabas.connect.connectors.mysql_cdc.settings import CONFIG, setting_errors
from barnabas.connect.connectors.mysql_cdc.task import MariaDbTask, MySqlTask
from barnabas.connect.plugins import SOURCE, ConnectError, Connector


class MySqlConnector(Connector):
    KIND = SOURCE
    CONFIG = CONFIG
    JAVA_NAMES = ("io.debezium.connector.mysql.MySqlConnector",)
    task = MySqlTask

    def check(self, config: Mapping[str, str]) -> dict[str, list[str]]:
        return setting_errors(config)

    def exactly_once_support(self, config: Mapping[str, str]) -> bool | None:
        return True  # offsets name the last row inside of a transaction, so none is sent again or left out

    def alter_offsets(self, config: Mapping[str, str], offsets: Sequence[tuple[Any, Any]]) -> bool:
        for partition, offset in offsets:
            if not isinstance(partition, dict) or set(partition) != {"server"}:
                raise ConnectError(f'a partition is {{"server": topic.prefix}}, not {partition}')
            if offset is not None and not (isinstance(offset.get("pos"), int) and offset.get("file")):
                raise ConnectError(f"an offset has a file and a whole number pos: {offset}")
        return True


class MariaDbConnector(MySqlConnector):
    JAVA_NAMES = ("io.debezium.connector.mariadb.MariaDbConnector",)
    task = MariaDbTask
