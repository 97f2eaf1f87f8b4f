"""The settings of one service: typed values by Confluent's names.

In: a service's table, and names with texts. Out: `ServiceSettings`, with warnings for names that are unknown
or have no effect; SettingsError for a value that is not allowed.
Does not know: files, the environment, what settings mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from barnabas.services.settings.http_rows import SHARED, Row
from barnabas.services.settings.listeners import Listener, parse_listeners
from barnabas.settings.errors import SettingsError
from barnabas.settings.tables.row import READ_ONLY, Setting
from barnabas.settings.validators import check_value
from barnabas.settings.values import Password, Value, parse_list, parse_value

PROVIDERS = "config.providers"


@dataclass(frozen=True, slots=True)
class SettingsTable:
    """The settings that a service knows. `own_prefix` may stand before each name. Any name below one of
    `prefixes` is a property of a client."""

    service: str
    own_prefix: str
    rows: Mapping[str, Setting]
    aliases: Mapping[str, str]
    prefixes: tuple[str, ...]
    without_effect: frozenset[str]


def settings_table(
    service: str,
    own_prefix: str,
    rows: Iterable[Row],
    aliases: Mapping[str, str],
    prefixes: tuple[str, ...],
    without_effect: frozenset[str],
) -> SettingsTable:
    known = {
        name: Setting(name, kind, default, valid, "medium", READ_ONLY, text)
        for name, kind, default, valid, text in (*rows, *SHARED)
    }
    return SettingsTable(service, own_prefix, known, aliases, prefixes, without_effect)


class ServiceSettings:
    """Immutable by convention."""

    def __init__(self, table: SettingsTable, properties: Mapping[str, str]) -> None:
        self.service = table.service
        self.warnings: list[str] = []
        self.given: dict[str, str] = {}  # texts, passwords among them
        self._table = table
        self._values = {name: default_value(row) for name, row in table.rows.items()}
        for name, text in properties.items():
            self._set(name, text)
        for name, row in table.rows.items():
            if row.required and name not in self.given:
                raise SettingsError(
                    f'Missing required configuration "{name}" which has no default value.', name=name
                )
        self.listeners: tuple[Listener, ...] = parse_listeners("listeners", self["listeners"])
        self.beside: ServiceSettings | None = None  # of the listeners that serve `Service.beside` alone

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __repr__(self) -> str:
        return f"ServiceSettings({self.service!r}, {sorted(self.given)})"

    def knows(self, name: str) -> bool:
        """Whether the service has a setting of this name."""
        return name in self._table.rows

    def names(self) -> frozenset[str]:
        """All settings that the service has."""
        return frozenset(self._table.rows)

    def is_set(self, name: str) -> bool:
        return name in self.given

    def secret(self, name: str) -> str | None:
        """The text of a setting that is a password."""
        value = self._values[name]
        return value.value if isinstance(value, Password) else None

    def below(self, prefix: str) -> dict[str, str]:
        """The properties behind this prefix, without it. Settings of the service itself are left out."""
        return {
            name.removeprefix(prefix): text
            for name, text in self.given.items()
            if name.startswith(prefix) and name not in self._table.rows
        }

    def listening_on(self, listeners: Iterable[Listener]) -> ServiceSettings:
        """The same settings with these listeners: their ports are known once they are bound."""
        found = ServiceSettings(self._table, {**self.given, "listeners": ",".join(map(str, listeners))})
        found.beside = self.beside
        return found

    def _set(self, name: str, text: str) -> None:
        table = self._table
        if name in table.aliases:
            modern = table.aliases[name]
            self.warnings.append(f"{name} is an old name: use {modern}.")
            name = modern
        if name not in table.rows and name.removeprefix(table.own_prefix) in table.rows:
            name = name.removeprefix(table.own_prefix)
        row = table.rows.get(name)
        if row is not None:
            value = parse_value(name, row.type, text)
            check_value(row, value)
            self._values[name] = value
            self.given[name] = text
        elif name in table.without_effect:
            self.warnings.append(f"{name} has no effect here.")
        elif name.startswith(table.prefixes):
            self.given[name] = text
        elif not name.startswith(PROVIDERS):
            close = get_close_matches(name, table.rows, n=1, cutoff=0.8)
            hint = f"; did you mean {close[0]}?" if close else "."
            self.warnings.append(f"Unknown setting {name} is ignored{hint}")


def default_value(row: Setting) -> Value:
    if row.default is ...:
        return None
    if row.type == "list" and isinstance(row.default, str):
        return parse_list(row.default)
    return row.default
