"""The lake: where its tables lie, and how to read them.

In: the lake's folder or URL, and settings of object stores. Out: paths; rows by zone and name. A table is a
folder `<zone>/<name>` in Delta's format. Does not know: what is in the tables.

    <lake>/raw/<source>            bytes as they came
    <lake>/staging/<staging>       parsed, typed, deduplicated
    <lake>/trusted/<trusted>       checked and masked
    <lake>/refined/<refined>       business tables
    <lake>/quarantine/<name>       rows of the staging or trusted table <name> that were refused
    <lake>/_barnabas/…             applied file, lock, timeline, serving store
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.engine.delta.log import URL, newest_version
from barnabas.engine.places.object_store import SCHEMES
from barnabas.engine.secrets import Text
from barnabas.pipeline.lake.columns import SYSTEM_COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Zone(StrEnum):
    RAW = "raw"
    STAGING = "staging"
    TRUSTED = "trusted"
    REFINED = "refined"
    QUARANTINE = "quarantine"


OWN = "_barnabas"
STORE_SETTINGS = "spark.hadoop.fs."


@dataclass(frozen=True, slots=True)
class TableName:
    """The name of a table of the lake: `trusted.orders`."""

    zone: Zone
    name: str

    def __str__(self) -> str:
        return f"{self.zone}.{self.name}"

    @classmethod
    def parse(cls, text: str) -> TableName:
        zone, dot, name = text.partition(".")
        if not dot or zone not in set(Zone):
            raise ValueError(f"{text!r} is not a table of the lake: write zone.name, as in trusted.orders")
        return cls(Zone(zone), name)


@dataclass(frozen=True, slots=True)
class Lake:
    """The lake at a folder or URL. `store` has Spark's settings, of which a URL needs some."""

    root: str
    store: Mapping[str, Text] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def at(cls, place: str, base: Path | None = None, store: Mapping[str, Text] | None = None) -> Lake:
        """A relative folder is relative to `base`, the folder of the pipeline's file."""
        if URL.match(place):
            given = {name: value for name, value in (store or {}).items() if name.startswith(STORE_SETTINGS)}
            return cls(place.rstrip("/"), given)
        return cls(str((base or Path.cwd()).joinpath(Path(place).expanduser()).absolute()))

    @property
    def is_local(self) -> bool:
        return URL.match(self.root) is None

    def table_path(self, zone: Zone | str, name: str) -> str:
        return f"{self.root}/{Zone(zone)}/{name}"

    def path(self, table: TableName) -> str:
        return self.table_path(table.zone, table.name)

    def own_path(self, *parts: str) -> str:
        """A path in the folder that the platform keeps for itself."""
        return "/".join((self.root, OWN, *parts))

    def identifier(self, table: TableName) -> str:
        """The table's name in SQL: delta.`path`."""
        return f"delta.`{self.path(table)}`"

    @property
    def is_read_by_us(self) -> bool:
        """Whether logs of tables are read without Spark."""
        return self.is_local or self.root.partition("://")[0] in SCHEMES

    def exists(self, spark: SparkSession, table: TableName) -> bool:
        """Whether a table was committed. Delta makes the folders of a table before its first commit, so a
        killed process may leave a folder that is none."""
        if self.is_read_by_us:
            return self.version(spark, table) >= 0
        from pyspark.errors import AnalysisException

        try:
            spark.read.format("delta").load(self.path(table)).schema  # noqa: B018 (reading it fails where there is no table)
        except AnalysisException:
            return False
        return True

    def read(self, spark: SparkSession, table: TableName, version: int | None = None) -> DataFrame:
        reader = spark.read.format("delta")
        if version is not None:
            reader = reader.option("versionAsOf", version)
        return reader.load(self.path(table))

    def version(self, spark: SparkSession, table: TableName) -> int:
        """The newest version of a table; -1 if the table does not exist."""
        if self.is_read_by_us:
            return newest_version(f"{self.path(table)}/_delta_log", self.store)
        if not self.exists(spark, table):
            return -1
        newest = spark.sql(f"DESCRIBE HISTORY {self.identifier(table)} LIMIT 1").first()
        return -1 if newest is None else int(newest["version"])

    def schema_ddl(self, spark: SparkSession, table: TableName) -> str:
        from pyspark.sql.types import StructType

        schema = self.read(spark, table).schema
        fields = [field for field in schema.fields if field.name not in SYSTEM_COLUMNS]
        return ", ".join(
            f"`{field.name}` {field.dataType.simpleString()}" for field in StructType(fields).fields
        )
