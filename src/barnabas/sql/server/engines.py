"""Makes the engine of the server: the one on Spark."""

from __future__ import annotations

from barnabas.services.settings.service_settings import ServiceSettings
from barnabas.settings.errors import SettingsError
from barnabas.sql.execution.port import Engine
from barnabas.sql.server.settings.server_settings import ServerSettings


def spark_engine(settings: ServiceSettings, server: ServerSettings) -> Engine:
    raise SettingsError("the engine on Spark is not there yet")
