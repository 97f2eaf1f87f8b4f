"""Makes the engine of the server: the one on Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.services.settings.service_settings import ServiceSettings
from barnabas.settings.errors import SettingsError
from barnabas.spark.basics.settings import OptionError
from barnabas.sql.execution.port import Engine
from barnabas.sql.formats.registries import PREFIX, URL
from barnabas.sql.running.engine import SparkEngine
from barnabas.sql.running.settings import SPARK_SQL, EngineSettings
from barnabas.sql.server.settings.server_settings import ServerSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OF_LISTENERS = ("ssl.", "sasl.", "security.")  # those of the client are in `server.client`


def spark_engine(
    settings: ServiceSettings, server: ServerSettings, spark: SparkSession | None = None
) -> Engine:
    """Make the engine, on the event loop that uses it. `spark`: a session that stays open; its own unless
    given."""
    registry = {f"{PREFIX}{name}": text for name, text in server.registry.items()}
    given = {
        **{name: text for name, text in settings.given.items() if not name.startswith(OF_LISTENERS)},
        **server.defaults,
        **server.client,
        **(registry | {URL: server.registry_url} if server.registry_url else {}),
        "ksql.service.id": server.service_id,
        "ksql.internal.topic.replicas": str(server.internal_replicas),
        SPARK_SQL: str(server.takes_spark).lower(),
    }
    try:
        return SparkEngine(EngineSettings.of(given), spark=spark)
    except OptionError as error:
        raise SettingsError(str(error)) from error
