"""Settings of the engine, in ksqlDB's names.

In: properties as text, those of a client among them. Out: checked values. A property may carry the prefix
`ksql.streams.`. Does not know: HTTP, the command topic.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from barnabas.client.core.address import Address, parse_bootstrap
from barnabas.spark.basics.settings import ClientSettings, OptionError, client_settings
from barnabas.sql.errors import SqlError
from barnabas.sql.formats.registries import RegistryPlace
from barnabas.sql.running.processing_log import LogSettings
from barnabas.streams.run.settings import METADATA_AGE, REPLICAS, creation_of, seconds_of
from barnabas.streams.spark.internal_topics import Creation
from barnabas.streams.spark.renewing import METADATA_AGE_S

STREAMS = "ksql.streams."
GUARANTEES = {"at_least_once": False, "exactly_once": True, "exactly_once_v2": True}
RESETS = ("earliest", "latest")
GUARANTEE = "processing.guarantee"
RESET = "auto.offset.reset"
FAILS_ON_BAD_BYTES = "ksql.fail.on.deserialization.error"
FAILS_ON_BAD_TIMES = "ksql.timestamp.throw.on.invalid"
FAILS_ON_BAD_ROWS = "ksql.fail.on.production.error"
LOG_ROWS = "ksql.logging.processing.rows.include"
LOG_TOPIC = "ksql.logging.processing.topic.name"
LOG_CREATE = "ksql.logging.processing.topic.auto.create"
LOG_PARTITIONS = "ksql.logging.processing.topic.partitions"
RETRY_FIRST_MS = "ksql.query.retry.backoff.initial.ms"
RETRY_MAX_MS = "ksql.query.retry.backoff.max.ms"
SPARK_SQL = "barnabas.sql.spark.enabled"
CLIENT_PREFIXES = ("security.", "sasl.", "ssl.", "client.id", "request.timeout.ms")


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """`properties` are those of all statements; `spark` are settings of the session."""

    service_id: str
    client: ClientSettings
    state_dir: Path
    registry: RegistryPlace
    master: str = "local[*]"
    spark: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    internal_replicas: int | None = None

    @classmethod
    def of(cls, given: Mapping[str, str]) -> EngineSettings:
        """From the properties of a server: `bootstrap.servers`, `ksql.…`, `spark.…`, those of clients."""
        plain = {name.removeprefix(STREAMS): value for name, value in given.items()}
        options = {
            f"kafka.{name}": value for name, value in plain.items() if name.startswith(CLIENT_PREFIXES)
        }
        options |= {
            "kafka.bootstrap.servers": plain.get("bootstrap.servers", ""),
            "kafka.isolation.level": "read_committed",
        }
        spark = {name: value for name, value in plain.items() if name.startswith("spark.")}
        folder = plain.get("state.dir") or str(Path(tempfile.gettempdir()) / "kafka-streams")
        replicas = plain.get("ksql.internal.topic.replicas")
        return cls(
            plain.get("ksql.service.id", "default_"),
            client_settings(options),
            Path(folder).absolute(),
            RegistryPlace.of(given),
            spark.pop("spark.master", "local[*]"),
            spark,
            plain,
            int(replicas) if replicas else None,
        )

    @property
    def bootstrap(self) -> list[Address]:
        return list(parse_bootstrap(self.client.bootstrap_servers))

    @property
    def log_topic(self) -> str:
        return self.properties.get(LOG_TOPIC) or f"{self.service_id}ksql_processing_log"

    @property
    def reads_lakes(self) -> bool:
        return self.properties.get(SPARK_SQL, "false").lower() == "true"

    def setting(self, name: str, default: str, properties: Mapping[str, str]) -> str:
        """A statement's own property, else the server's, else the default."""
        for found in (properties, self.properties):
            for key in (name, STREAMS + name):
                if key in found:
                    return found[key]
        return default

    def is_exactly_once(self, properties: Mapping[str, str]) -> bool:
        text = self.setting(GUARANTEE, "at_least_once", properties)
        if text not in GUARANTEES:
            raise SqlError(f"{GUARANTEE} is {text!r}, it may be {', '.join(GUARANTEES)}")
        return GUARANTEES[text]

    def reset(self, properties: Mapping[str, str]) -> str:
        text = self.setting(RESET, RESETS[1], properties).lower()
        if text not in RESETS:
            raise SqlError(f"{RESET} is {text!r}, it may be {' or '.join(RESETS)}")
        return text

    def creation(self, properties: Mapping[str, str]) -> Creation:
        """How changelogs and repartition topics are created: `ksql.streams.replication.factor`, else
        `ksql.internal.topic.replicas` where that is more than one, else the brokers' default;
        `ksql.streams.topic.…`."""
        given = {
            name.removeprefix(STREAMS): value
            for some in (self.properties, properties)
            for name, value in some.items()
        }
        if self.internal_replicas is not None and self.internal_replicas > 1:
            given.setdefault(REPLICAS, str(self.internal_replicas))
        try:
            return creation_of(given)
        except OptionError as error:
            raise SqlError(str(error)) from None

    @property
    def metadata_age_s(self) -> float:
        """How often topics are looked at for new partitions."""
        try:
            return seconds_of(self.properties, METADATA_AGE, METADATA_AGE_S)
        except OptionError as error:
            raise SqlError(str(error)) from None

    def log_settings(self, query_id: str, topic: str | None, properties: Mapping[str, str]) -> LogSettings:
        def is_true(name: str, default: str = "false") -> bool:
            return self.setting(name, default, properties).lower() == "true"

        return LogSettings(
            query_id,
            topic,
            fails_on_bad_bytes=is_true(FAILS_ON_BAD_BYTES),
            fails_on_bad_times=is_true(FAILS_ON_BAD_TIMES),
            fails_on_bad_rows=is_true(FAILS_ON_BAD_ROWS, "true"),
            includes_rows=is_true(LOG_ROWS),
        )

    def retry_ms(self) -> tuple[int, int]:
        first = int(self.properties.get(RETRY_FIRST_MS, 15_000))
        return first, int(self.properties.get(RETRY_MAX_MS, 900_000))
