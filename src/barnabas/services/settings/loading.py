"""Settings of a service from its properties file and the command line.

In: the name of a service, a file, overrides. Out: `ServiceSettings`. Values may refer to the environment and
to files (`${env:NAME}`, `${file:PATH:KEY}`), so that no file holds a password.
"""

from __future__ import annotations

from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from barnabas.security.clients.references import resolve_properties
from barnabas.services.settings import (
    alert_rows,
    audit_rows,
    connect_rows,
    lag_rows,
    registry_rows,
    rest_rows,
    sql_rows,
    streams_rows,
)
from barnabas.services.settings.service_settings import ServiceSettings, SettingsTable, settings_table
from barnabas.settings.errors import SettingsError
from barnabas.settings.properties import parse, text_of

SERVICES = {
    "alerts": alert_rows,
    "audit": audit_rows,
    "connect": connect_rows,
    "lag": lag_rows,
    "registry": registry_rows,
    "rest": rest_rows,
    "sql": sql_rows,
    "streams": streams_rows,
}
FILE_BYTES_MAX = 16 * 1024 * 1024


@lru_cache(maxsize=len(SERVICES))
def table_of(service: str) -> SettingsTable:
    rows = SERVICES[service]
    return settings_table(
        service, rows.OWN_PREFIX, rows.SETTINGS, rows.ALIASES, rows.PREFIXES, rows.WITHOUT_EFFECT
    )


def load_settings(
    service: str,
    file: Path | None = None,
    overrides: Mapping[str, str] | None = None,
    defaults: Mapping[str, str] | None = None,
) -> ServiceSettings:
    """SettingsError and SecuritySettingsError say which setting is wrong. `overrides` win over the file, the
    file over `defaults`."""
    found = dict(defaults or {})
    if file is not None:
        found |= from_file(file)
    return ServiceSettings(table_of(service), resolve_properties({**found, **(overrides or {})}))


def from_file(path: Path) -> dict[str, str]:
    try:
        with path.open("rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
        if len(data) > FILE_BYTES_MAX:
            raise SettingsError(f"{path} is larger than {FILE_BYTES_MAX} bytes: it is no properties file")
        if b"\0" in data or data[:2] in (BOM_UTF16_LE, BOM_UTF16_BE):
            raise SettingsError(f"{path} is no text file")
        return parse(text_of(data))
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}") from None
